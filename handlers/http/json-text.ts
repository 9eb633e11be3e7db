import { JsonScanner } from '../../core/base/json-scanner.ts';
import { encodeText, withoutTrailing } from '../../core/base/text.ts';

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
  return literal.includes('\u0085') || literal.includes('\u2028') || literal.includes('\u2029')
    ? literal.replace(/[\u0085\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
    : literal;
}

/** Literals that are kept, and characters of the longest text of one. */
const LITERALS_MAX = 1_024;
const LITERAL_LENGTH_MAX = 256;
const literals = new Map<string, Uint8Array>();

/**
 * As `jsonString`, in bytes, for what repeats from event to event: names of streams, and types. What is kept depends on
 * the texts alone, so it belongs to no call.
 */
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

/** Characters that indented text may have however short the text is that it is made of. */
const INDENTED_FREE_LENGTH = 65_536;
/**
 * Beyond them, how many times as long as its source it may be: ordinary events grow two to six times, and those of so
 * many characters little.
 */
const INDENTED_TIMES_MAX = 4;
/**
 * How many times as long as their sources the indented texts of one document may be, and by how many characters longer
 * than that, until each has to keep to its own limit alone.
 */
const DOCUMENT_TIMES_MAX = 8;
const DOCUMENT_FREE_LENGTH = 1_048_576;

/**
 * Characters that are read in one stretch where others are to have their turn: some milliseconds, whatever they are.
 */
export const SLICE_LENGTH = 131_072;

/**
 * How much the indented texts of one document, such as a page or a batch, have grown so far. Many short texts that grow
 * a lot would else make it as long as one.
 */
export class Growth {
  #source = 0;
  #written = 0;

  /** Characters that the next text may have whatever its source. */
  get freeLength(): number {
    return this.#written <= DOCUMENT_FREE_LENGTH + DOCUMENT_TIMES_MAX * this.#source ? INDENTED_FREE_LENGTH : 0;
  }

  /** Characters of all texts so far. */
  get writtenLength(): number {
    return this.#written;
  }

  add(source: number, written: number): void {
    this.#source += source;
    this.#written += written;
  }
}

/**
 * Reads JSON text and writes it again, indented by two spaces, in one pass over the characters. A value whose
 * indentation would multiply it is not written again: it is read to its end, and stays as it is.
 */
export class JsonReader extends JsonScanner {
  /** Closing brackets of what is open. */
  readonly #closers: number[] = [];
  /** The depth at which the value stands. */
  #base = 0;
  /** Where it begins, and ends; -1 until that is known. */
  #from = 0;
  #end = -1;
  #out = '';
  /** Characters that were written before `#out`, and their bytes. */
  #before = 0;
  #parts: Uint8Array[] | null = null;
  /** Bytes are those of a text within a string literal. */
  #isLiteral = false;
  /** Characters that the value may have whatever its own length. */
  #freeLength = 0;
  /** Characters that `#out` may have: before it has to be known how long the value is, and then in all. */
  #lengthLeft = 0;
  #isMeasured = false;
  /** The value stays as it is. */
  #isAsItIs = false;
  /** More characters than these are only counted. */
  #keptLengthMax = Number.POSITIVE_INFINITY;
  /** The name of a member comes next, or the rest of it. */
  #isName = false;
  /** Where the string begins in which this stands; -1 outside of one. */
  #stringFrom = -1;
  #isSpecial = false;
  /** The first half of a character whose second half is in the next part of the string. */
  #half = '';

  constructor(text: string) {
    super(text);
    if (text.charCodeAt(0) === 0xfeff) this.at = 1;
  }

  /** Passes over the value that comes next, and writes it as it stands at depth `base`. */
  copy(base: number, growth: Growth | null = null): void {
    this.begin(base, growth);
    this.goOn(Number.POSITIVE_INFINITY);
  }

  /**
   * The same in slices: what follows is `goOn`, until it is done. `isLiteral`: the bytes are to stand in a string
   * literal. Of more than `keptLengthMax` characters nothing is kept but their count.
   */
  begin(base: number, growth: Growth | null, isLiteral = false, keptLengthMax = Number.POSITIVE_INFINITY): void {
    this.peek();
    this.#base = base;
    this.#from = this.at;
    this.#end = -1;
    this.#out = '';
    this.#before = 0;
    this.#parts = null;
    this.#isLiteral = isLiteral;
    this.#lengthLeft = this.#freeLength = growth === null ? INDENTED_FREE_LENGTH : growth.freeLength;
    this.#isMeasured = this.#isAsItIs = false;
    this.#keptLengthMax = keptLengthMax;
  }

  /**
   * Passes over the value that comes next, of which nothing is wanted; the same as `begin` for a caller that goes on in
   * slices.
   */
  beginSkipped(): void {
    this.begin(0, null);
    this.#isMeasured = this.#isAsItIs = true;
  }

  /** Whether the value stays as it is, since its indentation would multiply it. */
  get isAsItIs(): boolean {
    return this.#isAsItIs;
  }
  /** Characters of the value's text as it is. */
  get sourceLength(): number {
    return (this.#end < 0 ? this.at : this.#end) - this.#from;
  }
  /** Characters that were written of the value that was copied last. */
  get length(): number {
    return this.#isAsItIs ? this.sourceLength : this.#before + this.#out.length;
  }

  /** What was written in one stretch. */
  get out(): string {
    return this.#isAsItIs ? this.text.slice(this.#from, this.#end) : this.#out;
  }

  /** What was written in slices, in bytes. */
  bytes(): Uint8Array<ArrayBuffer> {
    if (this.#isAsItIs) return this.#encoded(this.out);
    this.#flush();
    return joined(this.#parts!);
  }

  /** Goes on with the value up to about `stop`. False where there is more of it. */
  goOn(stop: number): boolean {
    const closers = this.#closers;
    let out = this.#out;
    let newLine = indent(this.#base + closers.length);
    for (;;) {
      if (out.length > this.#lengthLeft) out = this.#tooLong(out);
      if (this.#isName) {
        if (this.#stringFrom < 0 && this.peek() !== 34) this.fail('a member name was expected');
        out += this.#copyString(stop);
        if (this.#stringFrom >= 0) return this.#pause(out);
        this.expect(58);
        out += ': ';
        this.#isName = false;
      }
      // A value comes next, or the rest of a string.
      const c = this.#stringFrom < 0 ? this.peek() : 34;
      if (c === 34) {
        out += this.#copyString(stop);
        if (this.#stringFrom >= 0) return this.#pause(out);
      } else if (c === 123 || c === 91) {
        if (closers.length === JSON_DEPTH_MAX) this.fail(`more than ${JSON_DEPTH_MAX} levels of nesting`);
        this.at++;
        const close = c + 2;
        if (!this.take(close)) {
          closers.push(close);
          newLine = indent(this.#base + closers.length);
          out += close === 125 ? '{' : '[';
          out += newLine;
          this.#isName = close === 125;
          if (this.at < stop) continue;
          return this.#pause(out);
        }
        out += close === 125 ? '{}' : '[]';
      } else if (c === 116) out += this.#word('true');
      else if (c === 102) out += this.#word('false');
      else if (c === 110) out += this.#word('null');
      else out += this.#number();
      // The value has ended, and with it perhaps those around it.
      for (;;) {
        if (closers.length === 0) {
          this.#end = this.at;
          this.#out = out.length > this.#lengthLeft ? this.#tooLong(out) : out;
          return true;
        }
        const close = closers[closers.length - 1]!;
        if (this.peek() === 44) {
          this.at++;
          out += ',';
          out += newLine;
          this.#isName = close === 125;
          break;
        }
        this.expect(close);
        closers.pop();
        newLine = indent(this.#base + closers.length);
        out += newLine;
        out += close === 125 ? '}' : ']';
      }
      if (this.at >= stop) return this.#pause(out);
    }
  }

  /** The next part, decoded, of the string that begins or goes on here; Ends at about `stop`. */
  part(stop: number): string {
    if (this.#stringFrom < 0) this.#stringFrom = this.at++;
    const { text } = this;
    const from = this.at;
    this.#isSpecial = this.#half !== '';
    let i = from;
    let c = text.charCodeAt(i);
    for (; c !== 34 && (i < stop || i === from); c = text.charCodeAt(++i)) {
      if (c === 92) {
        this.#isSpecial = true;
        // An escape is not cut in two.
        i += text.charCodeAt(i + 1) === 117 ? 5 : 1;
      } else if (c >= 0x85) {
        if (c === 0x85 || c === 0x2028 || c === 0x2029) this.#isSpecial = true;
      } else if (!(c >= 32)) {
        this.at = i;
        this.fail(i >= text.length ? 'a string without an end' : 'a control character inside a string');
      }
    }
    let decoded = text.slice(from, i);
    if (this.#isSpecial) {
      try {
        decoded = this.#half + (JSON.parse(`"${decoded}"`) as string);
      } catch {
        this.at = this.#stringFrom;
        this.fail('a malformed escape in a string');
      }
    }
    this.#half = '';
    this.at = i;
    if (c === 34) {
      this.at++;
      this.#stringFrom = -1;
      return decoded;
    }
    if ((decoded.charCodeAt(decoded.length - 1) & 0xfc00) !== 0xd800) return decoded;
    this.#half = decoded.slice(-1);
    return decoded.slice(0, -1);
  }

  /** Whether a string is cheap to pass over and to have, however long it is. */
  get hasCheapStrings(): boolean {
    return this.isPlain;
  }
  /** Whether there is more of the string of `part`. */
  get isInString(): boolean {
    return this.#stringFrom >= 0;
  }

  /** The literal that begins here, or its next part, up to about `stop`. */
  #copyString(stop: number): string {
    if (stop === Number.POSITIVE_INFINITY || this.isPlain) {
      const from = this.at;
      return this.skipString() ? jsonString(this.decode(from)) : this.text.slice(from, this.at);
    }
    const isFirst = this.#stringFrom < 0;
    const part = this.part(stop);
    return `${isFirst ? '"' : ''}${this.#isSpecial ? jsonString(part).slice(1, -1) : part}${this.#stringFrom < 0 ? '"' : ''}`;
  }

  #word(word: string): string {
    if (!this.text.startsWith(word, this.at)) this.fail('a value was expected');
    this.at += word.length;
    return word;
  }

  #number(): string {
    // Most numbers are integers, which stay as they are.
    const { text } = this;
    let i = this.at;
    let c = text.charCodeAt(i);
    if (c > 48 && c <= 57) {
      do c = text.charCodeAt(++i);
      while (c >= 48 && c <= 57);
      if (c !== 46 && c !== 101 && c !== 69) {
        const from = this.at;
        this.at = i;
        return text.slice(from, i);
      }
    }
    const match = this.at < text.length ? NUMBER.exec(((NUMBER.lastIndex = this.at), text)) : null;
    if (match === null) return this.fail('a value was expected');
    this.at = NUMBER.lastIndex;
    return numberText(match[0], match[1], match[2]);
  }

  /**
   * More was written than may be without knowing how long the value is; or it is too long for sure, and only its end is
   * looked for. Returns what is kept of it.
   */
  #tooLong(out: string): string {
    if (!this.#isMeasured) {
      this.#isMeasured = true;
      this.#lengthLeft = Math.max(this.#freeLength, INDENTED_TIMES_MAX * this.#measure()) - this.#before;
      if (out.length <= this.#lengthLeft) return out;
    }
    this.#isAsItIs = true;
    this.#parts = null;
    this.#lengthLeft = INDENTED_FREE_LENGTH;
    return '';
  }

  /** Characters of the value as it is; 0 where it is no JSON, which shows later. */
  #measure(): number {
    const { at } = this;
    this.at = this.#from;
    try {
      this.skipValue();
      return this.at - this.#from;
    } catch {
      return 0;
    } finally {
      this.at = at;
    }
  }

  #pause(out: string): false {
    this.#out = out;
    this.#flush();
    return false;
  }

  /** Text that is put together from small parts is made one while it is short. */
  #flush(): void {
    const { length } = this.#out;
    this.#before += length;
    this.#lengthLeft -= length;
    if (this.#isAsItIs) this.#lengthLeft = INDENTED_FREE_LENGTH;
    else if (this.#before > this.#keptLengthMax) this.#parts = [];
    else (this.#parts ??= []).push(this.#encoded(this.#out));
    this.#out = '';
  }

  #encoded(text: string): Uint8Array<ArrayBuffer> {
    return encodeText(this.#isLiteral ? jsonString(text).slice(1, -1) : text) as Uint8Array<ArrayBuffer>;
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

/**
 * The JSON text indented as it stands at depth `base`, or as it is where that would multiply it; null when it is not
 * JSON.
 */
export function reindent(text: string, base = 0, growth: Growth | null = null): string | null {
  const reader = new JsonReader(text);
  try {
    reader.copy(base, growth);
    reader.end();
  } catch {
    return null;
  }
  growth?.add(text.length, reader.length);
  return reader.out;
}

/** The bytes of the same, made in slices; of a string literal of it, without its quotes, where `isLiteral`. */
export function* reindentSlices(
  text: string,
  base: number,
  growth: Growth,
  isLiteral: boolean,
): Generator<void, Uint8Array<ArrayBuffer> | null, undefined> {
  const reader = new JsonReader(text);
  try {
    reader.begin(base, growth, isLiteral);
    while (!reader.goOn(reader.at + SLICE_LENGTH)) yield;
    reader.end();
  } catch {
    return null;
  }
  growth.add(text.length, reader.length);
  return isLiteral && reader.isAsItIs ? yield* literalSlices(reader.out) : reader.bytes();
}

/** The bytes of a string literal without its quotes, made in slices. */
export function* literalSlices(text: string): Generator<void, Uint8Array<ArrayBuffer>, undefined> {
  const parts: Uint8Array[] = [];
  for (let from = 0; from < text.length;) {
    // The two halves of a character stay together.
    const end = from + SLICE_LENGTH + ((text.charCodeAt(from + SLICE_LENGTH - 1) & 0xfc00) === 0xd800 ? 1 : 0);
    parts.push(encodeText(jsonString(text.slice(from, end)).slice(1, -1)));
    from = end;
    yield;
  }
  return joined(parts);
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
