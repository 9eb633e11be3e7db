import type { AuditAction } from '../../core/ports/audit.ts';
import { requireAccess } from '../http/authorization.ts';
import type { Access } from '../http/route.ts';
import type { GrpcCall } from './call.ts';

/**
 * What the route is to a request of HTTP: tells the audit what the call does, also where it is refused, and throws unless the caller may do it
 * (options-and-security.md section 9).
 */
export function permit({ call, app }: GrpcCall, access: Access, action?: AuditAction, target: string | null = null): void {
  if (action !== undefined) call.audited = { action, target, details: null };
  requireAccess(call, app, access);
}
