/**
 * JSON as it stands in its text. Nothing is made of it but what is looked at: a text of megabytes is taken apart where
 * the user opens it, at any depth, and numbers keep all of their digits, since they are never anything else than text.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

export interface Member {
  /** Of an object's member; of a list's element its index. */
  readonly name: string;
  /** Where its value begins, and ends. */
  readonly start: number;
  readonly end: number;
}

export interface Members {
  /** All that there are, also beyond those that were asked for. */
  readonly count: number;
  readonly members: readonly Member[];
}

/** Whether a text is JSON. What is nested deeper than the browser can follow counts as none. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Where the value of a text begins. */
export function startOf(text: string): number {
  return behindSpace(text, 0);
}

/** `list` and `object` have members. */
export function kindAt(text: string, at: number): 'object' | 'list' | 'string' | 'other' {
  switch (text.charCodeAt(at)) {
    case OPEN_OBJECT:
      return 'object';
    case OPEN_LIST:
      return 'list';
    case QUOTE:
      return 'string';
    default:
      return 'other';
  }
}

/** The first members of the object or list that begins at `start` of a text that is JSON. */
export function membersOf(text: string, start: number, most: number): Members {
  const isObject = text.charCodeAt(start) === OPEN_OBJECT;
  const members: Member[] = [];
  let count = 0;
  let at = behindSpace(text, start + 1);
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === CLOSE_OBJECT || code === CLOSE_LIST) break;
    let name = '';
    if (isObject) {
      const nameEnd = stringEnd(text, at);
      if (count < most) name = JSON.parse(text.slice(at, nameEnd)) as string;
      at = behindSpace(text, behindSpace(text, nameEnd) + 1);
    } else if (count < most) name = String(count);
    const end = valueEnd(text, at);
    if (count < most) members.push({ name, start: at, end });
    count++;
    at = behindSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = behindSpace(text, at + 1);
  }
  return { count, members };
}

function behindSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) <= SPACE) at++;
  return at;
}

/** Behind the quotation mark that ends what begins with one at `start`. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; ;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let before = quote - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    // Of an even number of backslashes each second one stands for itself.
    if ((quote - before) % 2 === 1) return quote + 1;
    at = quote + 1;
  }
}

function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return stringEnd(text, start);
  let at = start;
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) {
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === COMMA || code === CLOSE_OBJECT || code === CLOSE_LIST || code <= SPACE) break;
    }
    return at;
  }
  for (let depth = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    at++;
    if (code === OPEN_OBJECT || code === OPEN_LIST) depth++;
    else if ((code === CLOSE_OBJECT || code === CLOSE_LIST) && --depth === 0) break;
  }
  return at;
}
