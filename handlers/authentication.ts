import { SYSTEM } from '../core/security/principal.ts';
import type { Principal } from '../core/security/principal.ts';
import type { App, Call } from './context.ts';

/** Who is calling (options-and-security.md section 6.1). */
export function authenticate(_call: Call, _app: App): Principal | Promise<Principal> {
  return SYSTEM;
}
