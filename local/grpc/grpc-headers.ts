import type { GrpcEnding } from '../../handlers/grpc/call.ts';

/**
 * Longest message of a status, and longest trailer, in characters as they are sent: clients take 16 KiB of headers in
 * all.
 */
const MESSAGE_LENGTH_MAX = 2_048;
const TRAILER_LENGTH_MAX = 4_096;

const SPACE = 0x20;
const TILDE = 0x7e;
const PERCENT = 0x25;
const encoder = new TextEncoder();

export type HeaderFields = Record<string, string>;

/** The status of a call with what belongs to it, as trailers. */
export function trailersOf({ status, message, trailers }: GrpcEnding, fields: HeaderFields = {}): HeaderFields {
  fields['grpc-status'] = String(status);
  if (message !== '') fields['grpc-message'] = percentEncoded(message, true).slice(0, MESSAGE_LENGTH_MAX);
  for (const name in trailers) {
    const value = trailers[name]!;
    if (value.length === 0) continue;
    const text =
      typeof value === 'string'
        ? isHeaderText(value)
          ? value
          : percentEncoded(value, false)
        : Buffer.from(value).toString('base64');
    if (text.length <= TRAILER_LENGTH_MAX) fields[name] = text;
    // The beginning of a name says more than nothing; that of a message of bytes does not.
    else if (typeof value === 'string') fields[name] = text.slice(0, TRAILER_LENGTH_MAX);
  }
  return fields;
}

/** Whether a value can stand in a header as it is. */
function isHeaderText(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < SPACE || code > TILDE) return false;
  }
  return text.charCodeAt(0) !== SPACE && text.charCodeAt(text.length - 1) !== SPACE;
}

/**
 * As the status message is sent, and what else is no header text: UTF-8, of which all but printable ASCII is written
 * `%XX`, the percent sign, too, and spaces at either end. Only that much is encoded as can be sent.
 */
function percentEncoded(text: string, isMessage: boolean): string {
  if (isHeaderText(text) && (!isMessage || !text.includes('%'))) return text;
  const bytes = encoder.encode(text.slice(0, TRAILER_LENGTH_MAX).toWellFormed());
  let out = '';
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    const isPlain =
      byte >= SPACE && byte <= TILDE && byte !== PERCENT && !(byte === SPACE && (i === 0 || i === bytes.length - 1));
    out += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}

/** Milliseconds of a unit of `grpc-timeout`. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1_000],
  ['m', 1],
  ['u', 1e-3],
  ['n', 1e-6],
]);
const TIMEOUT_DIGITS_MAX = 8;
const ZERO = 0x30;

/** What the client grants a call, in milliseconds; null for no limit, and for what is no duration. */
export function timeoutOf(header: string | null): number | null {
  if (header === null) return null;
  const digits = header.length - 1;
  const unit = UNITS.get(header.charAt(digits));
  if (unit === undefined || digits < 1 || digits > TIMEOUT_DIGITS_MAX) return null;
  let value = 0;
  for (let i = 0; i < digits; i++) {
    const digit = header.charCodeAt(i) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return null;
    value = value * 10 + digit;
  }
  return value * unit;
}

/** Whether a request is a call of gRPC by its `content-type`. The variants for browsers and with JSON are none. */
export function isGrpc(contentType: string | undefined): boolean {
  return (
    contentType === 'application/grpc' ||
    (contentType !== undefined && /^application\/grpc(?:\+proto)?\s*(?:;|$)/i.test(contentType))
  );
}
