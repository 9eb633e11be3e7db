import { JsonScanner } from '../../core/json-scanner.ts';
import { encodeText, withoutTrailing } from '../../core/text.ts';

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
  // Most texts have one byte a character, of which these searches are over at once, or as quick as the memory.
  return literal.includes('\u0085') || literal.includes('\u2028') || literal.includes('\u2029') ? literal.replace(/[\u0085\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0')) : literal;
}

/** Literals that are kept, and characters of the longest text of one. */
const LITERALS_MAX = 1_024;
const LITERAL_LENGTH_MAX = 256;
const literals = new Map<string, Uint8Array>();

/** As `jsonString`, in bytes, for what repeats from event to event: names of streams, and types. What is kept depends on the texts alone, so it belongs to no call. */
export function nameBytes(name: string): Uint8Array {
  let literal = literals.get(name);
  if (literal === undefined) {
    literal = encodeText(jsonString(name));
    if (name.length > LITERAL_LENGTH_MAX) return literal;
    if (literals.size >= LITERALS_MAX) literals.clear();
    literals.set(name, literal);
  }
  return literal;
}

/** Reads JSON text and writes it again, indented by two spaces, in one pass over the characters. */
export class JsonReader extends JsonScanner {
  /** What `copy` has written. */
  out = '';
  private depth = 0;

  constructor(text: string) {
    super(text);
    if (text.charCodeAt(0) === 0xfeff) this.at = 1;
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

  private number(): string {
    const match = this.at < this.text.length ? NUMBER.exec((NUMBER.lastIndex = this.at, this.text)) : null;
    if (match === null) return this.fail('a value was expected');
    this.at = NUMBER.lastIndex;
    return numberText(match[0], match[1], match[2]);
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;

/** Integers stay as they are; `1.50` becomes `1.5`, and a number with an exponent is written out where it can be. */
function numberText(source: string, fraction: string | undefined, exponent: string | undefined): string {
  if (exponent !== undefined) {
    const value = Number(source);
    const text = String(value);
    return !Number.isFinite(value) ? source : /^-?\d+$/.test(text) ? `${text}.0` : text;
  }
  if (fraction !== undefined) {
    const shorter = withoutTrailing(source, '0');
    return shorter.endsWith('.') ? `${shorter}0` : shorter;
  }
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
