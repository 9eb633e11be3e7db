import { timestampText } from '../../core/time.ts';
import type { LicenceClaims } from '../../core/security/licence-token.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Io } from '../cli/io.ts';
import { line } from '../cli/io.ts';

const DAY_MS = 86_400_000;

export interface Inspection {
  readonly claims: LicenceClaims;
  /** Whether the issuer's public key verifies it; null where none was given. */
  readonly isVerified: boolean | null;
  /** Why it is worth nothing now; null when it is worth something. */
  readonly refusal: string | null;
}

/** The claims as they are reported to programs. */
export function claimsDocument({ features, expiresAtMs, notBeforeMs, issuedAtMs, holder, id }: LicenceClaims) {
  return { id, holder, features, issuedAt: timeText(issuedAtMs), notBefore: timeText(notBeforeMs), expiresAt: timeText(expiresAtMs) };
}

export function showInspection({ claims, isVerified, refusal }: Inspection, nowMs: number, io: Io): void {
  const { green, red, dim } = coloursFor(io.stdout, io.env);
  const row = (name: string, value: string) => line(io.stdout, `${name.padEnd(11)}${value}`);
  row('grants', claims.features.length === 0 ? red('nothing') : claims.features.join(', '));
  row('expires', `${timeText(claims.expiresAtMs)!}${refusal === null ? ` (in ${Math.floor((claims.expiresAtMs - nowMs) / DAY_MS)} days)` : ''}`);
  if (claims.notBeforeMs !== null) row('valid from', timeText(claims.notBeforeMs)!);
  if (claims.issuedAtMs !== null) row('issued', timeText(claims.issuedAtMs)!);
  row('holder', claims.holder ?? dim('none'));
  row('id', claims.id ?? dim('none'));
  row('signature', isVerified === null ? dim('not verified: give the issuer\'s public key with --issuer-key') : isVerified ? green('by this issuer') : red('not by this issuer, or changed afterwards'));
  if (refusal !== null) line(io.stdout, red(refusal));
}

function timeText(ms: number): string;
function timeText(ms: number | null): string | null;
function timeText(ms: number | null): string | null {
  return ms === null ? null : timestampText(Math.floor(ms), 0);
}
