import { SkuaError } from './errors.ts';

/** Escapes, control characters, and what has to be escaped when it is written as the reference does. */
// oxlint-disable-next-line no-control-regex
const SPECIAL = /[\\\x00-\x1f\x85\u2028\u2029]/;

/**
 * Walks JSON text token by token, where the text itself counts and `JSON.parse` would lose it: integers beyond 2^53,
 * `1.0`, and the order of members whose names are digits. Whatever the text, each character is looked at a fixed number
 * of times.
 */
export class JsonScanner {
  readonly text: string;
  at = 0;
  /** No string in the text needs a closer look, so its end is the next quote. */
  protected readonly isPlain: boolean;

  constructor(text: string) {
    this.text = text;
    this.isPlain = !SPECIAL.test(text);
  }

  /** The next character that is no white space, without consuming it; NaN at the end. */
  peek(): number {
    const { text } = this;
    let { at } = this;
    let c = text.charCodeAt(at);
    if (c > 32) return c;
    while (c === 32 || c === 10 || c === 13 || c === 9) c = text.charCodeAt(++at);
    this.at = at;
    return c;
  }

  /** Consumes the character if it comes next. */
  take(c: number): boolean {
    if (this.peek() !== c) return false;
    this.at++;
    return true;
  }

  expect(c: number): void {
    if (!this.take(c)) this.fail(`'${String.fromCharCode(c)}' was expected`);
  }

  /** Throws `bad_json` (data: hint). */
  fail(what: string): never {
    throw new SkuaError('bad_json', 'The JSON text is malformed.', { hint: `At character ${this.at}: ${what}.` });
  }

  /** Fails unless only white space follows. */
  end(): void {
    if (!Number.isNaN(this.peek())) this.fail('text after the end of the value');
  }

  /** The string that begins here, decoded. */
  string(): string {
    const from = this.at;
    return this.skipString() ? this.decode(from) : this.text.slice(from + 1, this.at - 1);
  }

  /** Moves behind the string that begins here. True when its text differs from its literal, or might. */
  skipString(): boolean {
    const text = this.text;
    if (this.isPlain) {
      const end = text.indexOf('"', this.at + 1);
      if (end < 0) this.fail('a string without an end');
      this.at = end + 1;
      return false;
    }
    let special = false;
    let i = this.at + 1;
    for (let c = text.charCodeAt(i); c !== 34; c = text.charCodeAt(++i)) {
      if (c === 92) {
        special = true;
        i++;
      } else if (c >= 0x85) {
        if (c === 0x85 || c === 0x2028 || c === 0x2029) special = true;
      } else if (!(c >= 32)) {
        this.at = i;
        this.fail(i >= text.length ? 'a string without an end' : 'a control character inside a string');
      }
    }
    this.at = i + 1;
    return special;
  }

  /** The string between a place and this one, decoded. */
  decode(from: number): string {
    try {
      return JSON.parse(this.text.slice(from, this.at)) as string;
    } catch {
      this.at = from;
      return this.fail('a malformed escape in a string');
    }
  }

  /**
   * Moves behind the brackets that open here, and all that they hold, or to the end of the text where they are not
   * closed; nothing else is looked at closely. False, and somewhere between, where they are nested deeper than
   * `depthMax`.
   */
  skipBrackets(depthMax = Number.POSITIVE_INFINITY): boolean {
    const { text } = this;
    let depth = 0;
    let i = this.at;
    for (let c = text.charCodeAt(i); !Number.isNaN(c); c = text.charCodeAt(++i)) {
      if (c === 34) {
        this.at = i;
        this.skipString();
        i = this.at - 1;
      } else if (c === 123 || c === 91) {
        if (++depth > depthMax) return false;
      } else if ((c === 125 || c === 93) && --depth <= 0) {
        i++;
        break;
      }
    }
    this.at = i;
    return true;
  }

  /**
   * Moves behind the string, number, word or bracketed value that begins here, in text that is known to be well-formed.
   */
  skipValue(): void {
    const first = this.peek();
    if (first === 34) this.skipString();
    else if (first === 123 || first === 91) this.skipBrackets();
    else for (let c = first; c > 32 && c !== 44 && c !== 125 && c !== 93; c = this.text.charCodeAt(++this.at));
  }
}

/**
 * Whether brackets are nested no deeper than this, so that a parser can be given the text; nothing else is proved.
 * Throws `bad_json` for some of what is no JSON in any case.
 */
export function isNestedAtMost(text: string, depthMax: number): boolean {
  const scanner = new JsonScanner(text);
  while (!Number.isNaN(scanner.peek())) {
    const { at } = scanner;
    if (!scanner.skipBrackets(depthMax)) return false;
    if (scanner.at === at) return true;
  }
  return true;
}

/** A member of a JSON object as it is written. */
export interface JsonMember {
  readonly key: string;
  /** The value's text, without white space around it. */
  readonly raw: string;
}

/** The members of the object in `text`, in order; null when the text is no JSON object. */
export function jsonMembers(text: string): JsonMember[] | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  return typeof value !== 'object' || value === null || Array.isArray(value) ? null : [...membersOf(text)];
}

/** The members of the object in `text`, which is known to be well-formed: scanning only has to find where they end. */
export function* membersOf(text: string): Generator<JsonMember, void, undefined> {
  const scanner = new JsonScanner(text);
  scanner.take(123);
  while (scanner.peek() === 34) {
    const key = scanner.string();
    scanner.take(58);
    yield { key, raw: valueAt(scanner) };
    scanner.take(44);
  }
}

/** The same of the elements of an array. */
export function* elementsOf(text: string): Generator<string, void, undefined> {
  const scanner = new JsonScanner(text);
  scanner.take(91);
  while (scanner.peek() !== 93) {
    yield valueAt(scanner);
    scanner.take(44);
  }
}

function valueAt(scanner: JsonScanner): string {
  scanner.peek();
  const from = scanner.at;
  scanner.skipValue();
  return scanner.text.slice(from, scanner.at);
}

/** Well-formed JSON text without the white space between its tokens. */
export function compactJson(text: string): string {
  const scanner = new JsonScanner(text);
  let out = '';
  for (let c = scanner.peek(); !Number.isNaN(c); c = scanner.peek()) {
    const from = scanner.at;
    if (c === 34) scanner.skipString();
    else scanner.at++;
    out += text.slice(from, scanner.at);
  }
  return out;
}
