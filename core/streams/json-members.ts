/**
 * A look at the members of a JSON object as they are written, because the exact text of numbers counts: 9223372036854775807
 * is no double, and `1.0` is no integer.
 */
export interface JsonMember {
  readonly key: string;
  /** The value's text, without white space around it. */
  readonly raw: string;
}

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const COLON = 58;

/** The members of the object in `text`, in order; null when the text is no JSON object. */
export function jsonMembers(text: string): JsonMember[] | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  // From here on the text is known to be well-formed, so scanning only has to find where things end.
  const members: JsonMember[] = [];
  const end = text.lastIndexOf('}');
  let at = text.indexOf('{') + 1;
  while ((at = skipSpace(text, at)) < end) {
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    at = skipSpace(text, keyEnd);
    const from = skipSpace(text, text.charCodeAt(at) === COLON ? at + 1 : at);
    at = endOfValue(text, from, end);
    members.push({ key, raw: text.slice(from, at).trimEnd() });
    at++;
  }
  return members;
}

function skipSpace(text: string, at: number): number {
  while (at < text.length && text.charCodeAt(at) <= 32) at++;
  return at;
}

/** Offset after the string that starts at `at`. */
function endOfString(text: string, at: number): number {
  for (let i = at + 1; ; i++) {
    const unit = text.charCodeAt(i);
    if (unit === BACKSLASH) i++;
    else if (unit === QUOTE) return i + 1;
  }
}

/** Offset of the comma after the value that starts at `at`, or `end`. */
function endOfValue(text: string, at: number, end: number): number {
  let depth = 0;
  let i = at;
  while (i < end) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) {
      i = endOfString(text, i);
      continue;
    }
    if (unit === 91 || unit === 123) depth++;
    else if (unit === 93 || unit === 125) depth--;
    else if (unit === COMMA && depth === 0) break;
    i++;
  }
  return i;
}

/** Well-formed JSON text without the white space between its tokens. */
export function compactJson(raw: string): string {
  let out = '';
  for (let i = 0; i < raw.length;) {
    const unit = raw.charCodeAt(i);
    if (unit === QUOTE) {
      const end = endOfString(raw, i);
      out += raw.slice(i, end);
      i = end;
    } else {
      if (unit > 32) out += raw[i];
      i++;
    }
  }
  return out;
}
