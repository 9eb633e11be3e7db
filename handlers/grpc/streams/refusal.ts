import { isSkuaError } from '../../../core/base/errors.ts';
import type { Audited } from '../../http/context.ts';
import { auditWrite } from '../../streams/audit-write.ts';
import type { GrpcCall } from '../call.ts';

/** Records in the audit log an append of several in one call that was refused before anything of it was decided. */
export function sendRefusal({ call, audit }: GrpcCall, stream: string, error: unknown): void {
  if (audit == null || (!isSkuaError(error, 'access_denied') && !isSkuaError(error, 'not_authenticated'))) return;
  const target: { audited: Audited | null } = { audited: null };
  auditWrite(target, stream);
  if (target.audited !== null) audit.failed({ ...call, audited: target.audited }, 403, error);
}
