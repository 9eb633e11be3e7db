import { EVENT_TYPE_LENGTH_MAX } from '../streams/api.ts';
import { checkWritableName } from '../streams/names.ts';

/** What a call looks like to a routing script, and what the script may answer; webhook-source.md parts 2 and 7. */

/** Deepest nesting of objects and arrays in a body. */
export const BODY_DEPTH_MAX = 64;

/** Whether the text is one JSON value, nested no deeper than BODY_DEPTH_MAX. */
export function isJsonBody(text: string): boolean {
  if (!isShallow(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Counts brackets outside strings, so that no parser meets what is too deep for it. */
function isShallow(text: string): boolean {
  let depth = 0;
  let isString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (isString) {
      if (c === BACKSLASH) i++;
      else if (c === QUOTE) isString = false;
    } else if (c === QUOTE) isString = true;
    else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      if (++depth > BODY_DEPTH_MAX) return false;
    } else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) depth--;
  }
  return true;
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;

/** The argument of `route`, as JSON; `bodyJson` stands in it as it is. */
export function routingRequestJson(bodyJson: string, headers: Iterable<readonly [string, string]>, path: string, query: Iterable<readonly [string, string]>): string {
  return `{"body":${bodyJson},"headers":${membersJson(headers)},"path":${JSON.stringify(path)},"query":${membersJson(query)}}`;
}

/** Written member by member: an object would take `__proto__` for its prototype and move names made of digits. */
function membersJson(members: Iterable<readonly [string, string]>): string {
  const parts: string[] = [];
  for (const [name, value] of members) parts.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return `{${parts.join(',')}}`;
}

/** Why a call can't be written where its script wants it; null when it can. */
export function refusalOfRoute(stream: string, schema: string | null): string | null {
  if (stream.startsWith('$')) return 'The script names a stream that begins with $, which only the system may write. Return another name.';
  if (checkWritableName(stream) !== null || !stream.isWellFormed()) return 'The script names a stream that no stream may be named. Return another name.';
  if (schema === '') return 'The script returns an empty schema. Leave it out, or return a text.';
  if (schema !== null && (schema.length > EVENT_TYPE_LENGTH_MAX || !schema.isWellFormed())) return `The schema is no text of at most ${EVENT_TYPE_LENGTH_MAX} characters. Return a shorter one.`;
  return null;
}
