import { SkuaError } from '../core/errors.ts';
import type { Principal } from '../core/security/principal.ts';
import { utf8Of } from './credentials.ts';

/** Longest value that is looked at, in characters. */
const TRUSTED_LENGTH_MAX = 8_192;

/**
 * The caller whom a trusted proxy names in `ES-TrustedAuth: user; group, group` (options-and-security.md section 6.4);
 * null without the header. Errors: `not_authenticated` for every other form, and for two headers that name different
 * callers: the client may have sent the one that the proxy does not know.
 */
export function trustedPrincipalOf(headers: Headers): Principal | null {
  const current = headers.get('kurrent-trustedauth');
  const older = headers.get('es-trustedauth');
  const value = current ?? older;
  if (value === null) return null;
  if (current !== null && older !== null && current !== older) throw malformed('Kurrent-TrustedAuth and ES-TrustedAuth name different callers.');
  if (value.length > TRUSTED_LENGTH_MAX) throw malformed(`The value has more than ${TRUSTED_LENGTH_MAX} characters.`);
  const [user = '', groups = '', ...more] = utf8Of(value).split(';');
  const name = user.trim();
  // A comma in the name comes from a header that was sent twice.
  if (name === '' || name.includes(',') || more.length > 0) throw malformed('It must be one user, and behind a semicolon the groups.');
  return { name, roles: groups.split(',').map((group) => group.trim()).filter((group) => group !== '') };
}

function malformed(what: string): SkuaError {
  return new SkuaError('not_authenticated', `The trusted header of the proxy can't be used. ${what} Send "ES-TrustedAuth: user; group, group".`);
}
