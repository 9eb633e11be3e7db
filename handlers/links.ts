import { TOMBSTONE } from '../core/log/records.ts';
import type { AllPosition } from '../core/streams/api.ts';
import type { Call } from './context.ts';

/**
 * Where generated links begin: the request's own scheme and host, or what a proxy says in its forwarding headers
 * (http-api.md 1.4). Values that could not stand in a URL are ignored.
 */
export function baseOf(call: Call): string {
  return (call.base ??= computeBase(call));
}

function computeBase(call: Call): string {
  const headers = call.request.headers;
  const proto = headers.get('x-forwarded-proto');
  const host = headers.get('x-forwarded-host');
  const port = headers.get('x-forwarded-port');
  const prefix = headers.get('x-forwarded-prefix');
  if (proto === null && host === null && port === null && prefix === null) return call.origin;
  const split = call.origin.indexOf('://');
  const scheme = matching(proto, /^https?$/i)?.toLowerCase() ?? call.origin.slice(0, split);
  let authority = matching(host, /^(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i) ?? call.origin.slice(split + 3);
  const ownPort = matching(port, /^\d{1,5}$/);
  if (ownPort !== null && (host === null || !/:\d+$/.test(authority))) {
    authority = authority.replace(/:\d+$/, '') + (ownPort === (scheme === 'https' ? '443' : '80') ? '' : `:${ownPort}`);
  }
  const path = (matching(prefix, /^[\w\-.~%/]+$/) ?? '').replace(/^\/+|\/+$/g, '');
  return `${scheme}://${authority}${path === '' ? '' : `/${path}`}`;
}

/** The first of a comma-separated list, if it has the form. */
function matching(value: string | null, form: RegExp): string | null {
  const first = value?.split(',', 1)[0]!.trim();
  return first !== undefined && form.test(first) ? first : null;
}

let lastName = '';
let lastEscaped = '';

/** A stream name as it stands in links: letters, digits and `-._~` kept. */
export function escapeName(name: string): string {
  if (name === lastName) return lastEscaped;
  const escaped = encodeURIComponent(name.toWellFormed()).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  lastName = name;
  lastEscaped = escaped;
  return escaped;
}

export function streamUrl(call: Call, stream: string): string {
  return `${baseOf(call)}/streams/${escapeName(stream)}`;
}

/** An event number as clients know it: the number of a tombstone is 2^63-1. */
export function numberText(number: number): string {
  return number === TOMBSTONE ? '9223372036854775807' : String(number);
}

/** A `$all` position: 16 hex digits of the commit and 16 of the prepare position. */
export function positionToken(position: AllPosition): string {
  return hex16(position.commit) + hex16(position.prepare);
}

export function hex16(value: number): string {
  return value.toString(16).toUpperCase().padStart(16, '0');
}
