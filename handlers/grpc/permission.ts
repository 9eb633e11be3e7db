import { admit, requireLogin } from '../admission.ts';
import type { App, Call } from '../http/context.ts';
import type { GrpcMethod } from './call.ts';

/**
 * What the route is to a request of HTTP: tells the audit what the call does, also where it is refused, and throws, or rejects, unless the caller may do it
 * (options-and-security.md section 9). Nothing of the call has been read by then, so that who may do nothing holds nothing.
 */
export function permit(call: Call, app: App, { access, audit, refused }: GrpcMethod): void | Promise<void> {
  if (audit !== undefined) call.audited = { action: audit, target: null, details: null };
  const told = (error: unknown): never => { throw refused?.(error, { call, app }) ?? error; };
  try {
    requireLogin(call, app, access);
    return admit(call, app, access)?.catch(told);
  } catch (error) {
    told(error);
  }
}
