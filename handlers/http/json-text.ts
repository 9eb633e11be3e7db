import { SkuaError } from '../../core/errors.ts';

/** Deepest nesting of objects and arrays in JSON that we take apart. */
export const JSON_DEPTH_MAX = 64;

const INDENTS: readonly string[] = Array.from({ length: JSON_DEPTH_MAX + 16 }, (_, depth) => '\n' + '  '.repeat(depth));

/** Line break and indentation before a member at this depth. */
export function indent(depth: number): string {
  return INDENTS[depth]!;
}

/** A JSON string literal. Like the reference, escapes the three characters that some JavaScript takes for line ends. */
export function jsonString(text: string): string {
  const literal = JSON.stringify(text);
  return /[\u0085\u2028\u2029]/.test(literal) ? literal.replace(/[\u0085\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0')) : literal;
}

/**
 * Reads JSON text and writes it again, indented by two spaces, in one pass over the characters. `JSON.parse` would lose
 * what has to survive: integers beyond 2^53, and the order of members whose names are digits.
 */
export class JsonReader {
  readonly text: string;
  at = 0;
  /** What `copy` has written. */
  out = '';
  private depth = 0;
  /** No string in the text needs a closer look, so its end is the next quote. */
  private readonly isPlain: boolean;

  constructor(text: string) {
    this.text = text;
    this.isPlain = !SPECIAL.test(text);
    if (text.charCodeAt(0) === 0xfeff) this.at = 1;
  }

  /** The next character that is no white space, without consuming it; NaN at the end. */
  peek(): number {
    let c = this.text.charCodeAt(this.at);
    while (c === 32 || c === 10 || c === 13 || c === 9) c = this.text.charCodeAt(++this.at);
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

  fail(what: string): never {
    throw new SkuaError('bad_json', 'The JSON text is malformed.', { hint: `At character ${this.at}: ${what}.` });
  }

  /** Fails unless only white space follows. */
  end(): void {
    if (!Number.isNaN(this.peek())) this.fail('text after the end of the value');
  }

  /** The string that comes next, decoded. */
  string(): string {
    const from = this.at;
    return this.skipString() ? this.decode(from) : this.text.slice(from + 1, this.at - 1);
  }

  /** Passes over the value that comes next, writing it to `out`; `base` is the depth at which it stands. */
  copy(base: number): void {
    switch (this.peek()) {
      case 123: return this.copyMembers(base, 125, '{');
      case 91: return this.copyMembers(base, 93, '[');
      case 34: return this.copyString();
      case 116: return this.copyWord('true');
      case 102: return this.copyWord('false');
      case 110: return this.copyWord('null');
      default: this.out += this.number();
    }
  }

  private copyMembers(base: number, close: number, open: string): void {
    if (++this.depth > JSON_DEPTH_MAX) this.fail(`more than ${JSON_DEPTH_MAX} levels of nesting`);
    this.at++;
    this.out += open;
    if (!this.take(close)) {
      const before = indent(base + 1);
      for (;;) {
        this.out += before;
        if (close === 125) {
          if (this.peek() !== 34) this.fail('a member name was expected');
          this.copyString();
          this.expect(58);
          this.out += ': ';
        }
        this.copy(base + 1);
        if (this.peek() !== 44) break;
        this.at++;
        this.out += ',';
      }
      this.expect(close);
      this.out += indent(base);
    }
    this.out += String.fromCharCode(close);
    this.depth--;
  }

  private copyString(): void {
    const from = this.at;
    if (this.skipString()) this.out += jsonString(this.decode(from));
    else this.out += this.text.slice(from, this.at);
  }

  private copyWord(word: string): void {
    if (!this.text.startsWith(word, this.at)) this.fail('a value was expected');
    this.at += word.length;
    this.out += word;
  }

  /** Moves behind the string that starts here. True when its text differs from its literal, or might. */
  private skipString(): boolean {
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

  private decode(from: number): string {
    try {
      return JSON.parse(this.text.slice(from, this.at)) as string;
    } catch {
      this.at = from;
      return this.fail('a malformed escape in a string');
    }
  }

  private number(): string {
    const match = this.at < this.text.length ? NUMBER.exec((NUMBER.lastIndex = this.at, this.text)) : null;
    if (match === null) return this.fail('a value was expected');
    this.at = NUMBER.lastIndex;
    return numberText(match[0], match[1], match[2]);
  }
}

/** Escapes, control characters, and what has to be escaped when written. */
// oxlint-disable-next-line no-control-regex
const SPECIAL = /[\\\x00-\x1f\x85\u2028\u2029]/;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;

/** Integers stay as they are; `1.50` becomes `1.5`, and a number with an exponent is written out where it can be. */
function numberText(source: string, fraction: string | undefined, exponent: string | undefined): string {
  if (exponent !== undefined) {
    const value = Number(source);
    const text = String(value);
    return !Number.isFinite(value) ? source : /^-?\d+$/.test(text) ? `${text}.0` : text;
  }
  if (fraction !== undefined) return source.replace(/(\.\d+?)0+$/, '$1');
  return source === '-0' ? '0' : source;
}

/** The JSON text indented as it stands at depth `base`, or null when it is not JSON. */
export function reindent(text: string, base = 0): string | null {
  const reader = new JsonReader(text);
  try {
    reader.copy(base);
    reader.end();
  } catch {
    return null;
  }
  return reader.out;
}
