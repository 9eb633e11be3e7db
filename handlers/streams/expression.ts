import type { RE2JS } from 're2js';
import { SkuaError } from '../../core/base/errors.ts';
import type { TextMatcher } from '../../core/streams/api.ts';

/**
 * Regular expressions that callers give. They are those of RE2, whose time grows no faster than the text they look at,
 * whatever the expression: the language's own engine would keep a node busy for hours with `^(a+)+$` and one name.
 */

/** Longest expression, in characters. */
const EXPRESSION_LENGTH_MAX = 1_000;
/**
 * Most instructions that an expression is compiled to. Each character of a name is looked at by as many at worst: with
 * the longest name that can be written, 1 024 characters, that is about 50 ms.
 */
const PROGRAM_SIZE_MAX = 500;
/**
 * Characters that an expression may have with its counts written out: compiling what has more would itself take long.
 */
const WRITTEN_OUT_LENGTH_MAX = 5_000;
/**
 * Expressions that stay compiled, by owner: an app, or the groups of a node. Each keeps at most 8 MiB of the states
 * that it has been in.
 */
const COMPILED_MAX = 16;

/** What is compiled; loaded with the first expression, since most nodes and functions are never given one. */
type Compile = (source: string) => RE2JS;

/**
 * A matcher for an expression of a caller; the same for the same expression while it is in use. Errors:
 * `unsupported_expression` for what RE2 does not know (look-around, back references), `invalid_expression` for what is
 * none, `expression_too_large` for one beyond a limit.
 */
export async function expressionOf(source: string, owner: object): Promise<TextMatcher> {
  if (source.length > EXPRESSION_LENGTH_MAX) throw tooLarge(`it has more than ${EXPRESSION_LENGTH_MAX} characters`);
  if (writtenOutLength(source) > WRITTEN_OUT_LENGTH_MAX)
    throw tooLarge(`with its counts written out it would have more than ${WRITTEN_OUT_LENGTH_MAX} characters`);
  const { RE2JS } = await import('re2js');
  let compiled = compiledOf.get(owner);
  if (compiled === undefined)
    compiledOf.set(owner, (compiled = new CompiledExpressions((each) => RE2JS.compile(each))));
  return compiled.get(source);
}

const compiledOf = new WeakMap<object, CompiledExpressions>();

/**
 * The expressions that are compiled at present. One that has made room for others is compiled again when it is used
 * again.
 */
class CompiledExpressions {
  /** By source; the one used longest ago first. */
  readonly #inUse = new Map<string, Expression>();
  readonly compile: Compile;

  constructor(compile: Compile) {
    this.compile = compile;
  }

  /** Throws what `expressionOf` does. */
  get(source: string): Expression {
    const expression = this.#inUse.get(source) ?? new Expression(source, this);
    this.#keep(expression);
    return expression;
  }

  /** Compiles what has made room for others and is wanted again. */
  again(expression: Expression): RE2JS {
    this.#keep(expression);
    return this.compile(expression.source);
  }

  #keep(expression: Expression): void {
    this.#inUse.delete(expression.source);
    this.#inUse.set(expression.source, expression);
    if (this.#inUse.size <= COMPILED_MAX) return;
    const [oldest] = this.#inUse.values();
    this.#inUse.delete(oldest!.source);
    oldest!.release();
  }
}

class Expression implements TextMatcher {
  readonly source: string;
  readonly stepsPerCharacter: number;
  readonly #compiled: CompiledExpressions;
  #program: RE2JS | null;

  constructor(source: string, compiled: CompiledExpressions) {
    this.source = source;
    this.#compiled = compiled;
    this.#program = programOf(source, compiled.compile);
    this.stepsPerCharacter = this.#program.programSize();
    if (this.stepsPerCharacter > PROGRAM_SIZE_MAX)
      throw tooLarge(`it compiles to ${this.stepsPerCharacter} instructions, and ${PROGRAM_SIZE_MAX} are allowed`);
  }

  test(text: string): boolean {
    return (this.#program ??= this.#compiled.again(this)).test(text);
  }

  release(): void {
    this.#program = null;
  }
}

function programOf(source: string, compile: Compile): RE2JS {
  try {
    return compile(source);
  } catch (error) {
    const reason = (error as Error).message;
    if (!UNSUPPORTED.test(source))
      throw new SkuaError(
        'invalid_expression',
        `'${source}' is not a valid regular expression: ${reason}. Filters use RE2 syntax.`,
      );
    throw new SkuaError(
      'unsupported_expression',
      `'${source}' uses a feature without a bounded running time (${reason}). Filters use RE2 syntax, which has no look-around, no back references and no atomic groups; a character by its number is \\x{61}.`,
    );
  }
}

/** What other engines know and RE2 does not; looked for only in what RE2 has refused. */
const UNSUPPORTED = /\(\?<?[=!>#]|\\[1-9uckK]/;

function tooLarge(why: string): SkuaError {
  return new SkuaError(
    'expression_too_large',
    `The regular expression is too large: ${why}. Shorten it, or filter by prefixes.`,
  );
}

/**
 * About how many characters an expression has with `a{3}` written as `aaa`, and more rather than fewer. It follows
 * groups and classes as far as is needed to know what a count repeats; what is malformed is left for RE2 to refuse.
 */
function writtenOutLength(source: string): number {
  const outer: number[] = [];
  let length = 0;
  /** Of what a count here would repeat. */
  let last = 0;
  for (let at = 0; at < source.length && length <= WRITTEN_OUT_LENGTH_MAX;) {
    const c = source[at]!;
    if (c === '(') {
      outer.push(length);
      length = 0;
      at++;
    } else if (c === ')') {
      last = length + 2;
      length = (outer.pop() ?? 0) + last;
      at++;
    } else if (c === '{') {
      const [text, min = '', max = ''] = ((COUNT.lastIndex = at), COUNT.exec(source)) ?? ['{', '1'];
      const added = last * Math.max(0, Number(min) - 1, Number(max) - 1) + 1;
      last += added;
      length += added;
      at += text.length;
    } else {
      const next = endOfPiece(source, at);
      last = 1;
      length += c === '\\' ? next - at : 1;
      at = next;
    }
  }
  return outer.reduce((sum, each) => sum + each, length);
}

const COUNT = /\{(\d{1,10})(?:,(\d{0,10}))?\}/y;

/** Behind the character, class, escape or quoted text that begins here. */
function endOfPiece(source: string, at: number): number {
  if (source[at] === '[') return endOfClass(source, at);
  if (source[at] !== '\\') return at + 1;
  const kind = source[at + 1];
  if (kind === 'Q') return endBehind(source, '\\E', at + 2);
  return (kind === 'p' || kind === 'P' || kind === 'x') && source[at + 2] === '{'
    ? endBehind(source, '}', at + 3)
    : at + 2;
}

function endBehind(source: string, text: string, from: number): number {
  const found = source.indexOf(text, from);
  return found < 0 ? source.length : found + text.length;
}

/** A bracket that closes stands for itself at the beginning; names such as `[:alpha:]` have one of their own. */
function endOfClass(source: string, at: number): number {
  let end = at + 1;
  if (source[end] === '^') end++;
  if (source[end] === ']') end++;
  while (end < source.length && source[end] !== ']') {
    if (source[end] === '\\') end += 2;
    else if (source.startsWith('[:', end)) end = endBehind(source, ':]', end + 2);
    else end++;
  }
  return end + 1;
}
