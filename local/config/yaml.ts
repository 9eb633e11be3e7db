import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import type { Document, Node, Pair, Scalar, YAMLMap } from 'yaml';
import { ConfigError } from '../../infra/runtime/config/option.ts';
import { yamlName } from '../../infra/runtime/config/option-names.ts';
import type { Found, Names } from '../../infra/runtime/config/option-names.ts';
import { NOTHING, shown } from '../../infra/runtime/config/sources.ts';
import type { Given, Reading } from '../../infra/runtime/config/sources.ts';

/** Nested sections below the root; more can't belong to an option. */
const DEPTH_MAX = 4;
/** A configuration file is not larger than this: a reload parses it while the node serves. */
export const YAML_LENGTH_MAX = 65_536;
/** That many unknown names get a suggestion; a file with more of them is no configuration file. */
const SUGGESTIONS_MAX = 50;

/**
 * Reads a YAML file: a mapping of options, nested ones as sections, of the first document. All values are taken as
 * they are written, so that `0x10`, `010` and `yes` mean what they do elsewhere. Throws a ConfigError that names file,
 * line and cause for what is no such file.
 */
export function readYaml(text: string, file: string, names: Names): Reading {
  if (text.length > YAML_LENGTH_MAX)
    throw new ConfigError(
      [`${file} is larger than ${YAML_LENGTH_MAX} characters: that is too large for a configuration file.`],
      file,
    );
  const lines = new LineCounter();
  const [document] = parseAllDocuments(text, {
    schema: 'failsafe',
    lineCounter: lines,
    uniqueKeys: false,
    prettyErrors: false,
  });
  if (document === undefined) return NOTHING;
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw new ConfigError(
      [`${file} is not valid YAML: ${causeOf(error.message)} (line ${line}, column ${col}).`],
      file,
    );
  }
  if (!isMap(document.contents))
    throw new ConfigError(
      [
        `${file}:${lineOf(document.contents, lines)} must be a mapping of options, such as "NodePort: 2113", not ${kindOf(document.contents)}.`,
      ],
      file,
    );
  const reader = new YamlReader(document, file, names, lines);
  reader.read(document.contents, '', 0);
  return reader;
}

/** What the parser says without the words of the file that it quotes behind a colon: they may be a secret. */
function causeOf(message: string): string {
  return shown(message.split(': ', 1)[0]!);
}

function lineOf(node: Node | null, lines: LineCounter): number {
  return lines.linePos(node?.range?.[0] ?? 0).line || 1;
}

function kindOf(node: unknown): string {
  if (isMap(node)) return 'a mapping';
  if (isSeq(node)) return 'a sequence';
  return isScalar(node) && node.value !== '' ? 'a single value' : 'nothing';
}

class YamlReader implements Reading {
  readonly given: Given[] = [];
  readonly unknown: string[] = [];
  readonly problems: string[] = [];
  readonly warnings: string[] = [];
  readonly #document: Document;
  readonly #file: string;
  readonly #names: Names;
  readonly #lines: LineCounter;
  /** Names seen, in lower case, with the line of the first. */
  readonly #seen = new Map<string, number>();

  constructor(document: Document, file: string, names: Names, lines: LineCounter) {
    this.#document = document;
    this.#file = file;
    this.#names = names;
    this.#lines = lines;
  }

  read(map: YAMLMap, section: string, depth: number): void {
    for (const pair of map.items) this.#readPair(pair as Pair<Node, Node | null>, section, depth);
  }

  #readPair({ key, value }: Pair<Node, Node | null>, section: string, depth: number): void {
    const at = this.#resolve(key);
    const line = lineOf(key, this.#lines);
    if (!isScalar(at)) {
      this.problems.push(`${this.#file}:${line} has ${kindOf(at)} where the name of an option should be.`);
      return;
    }
    const name = section + String(at.value);
    const node = this.#resolve(value);
    if (this.#isRepeated(name, line)) return;
    if (this.#names.isSection(name) && (isMap(node) || (isScalar(node) && isNothing(node)))) {
      if (isMap(node) && depth < DEPTH_MAX) this.read(node, `${name}:`, depth + 1);
      return;
    }
    const found = this.#names.findInYaml(name);
    if (found === null)
      this.unknown.push(
        `Unknown option ${shown(name)} in ${this.#file}:${line}.${this.unknown.length < SUGGESTIONS_MAX ? this.#names.suggestion(name, yamlName) : ''}`,
      );
    else this.#readValue(found, `${name} (${this.#file}:${line})`, node);
  }

  #isRepeated(name: string, line: number): boolean {
    const key = name.toLowerCase();
    const first = this.#seen.get(key);
    this.#seen.set(key, first ?? line);
    if (first !== undefined)
      this.problems.push(`${shown(name)} is set twice in ${this.#file}, in lines ${first} and ${line}.`);
    return first !== undefined;
  }

  #readValue({ name, alias, option }: Found, spelling: string, node: Node | null): void {
    const add = (text: string) => {
      this.given.push({ name, alias, spelling, text });
    };
    if (isScalar(node)) {
      if (isNothing(node))
        this.problems.push(`${spelling} has no value: give it one, or leave it out for its default.`);
      else add(String(node.value));
    } else if (isSeq(node) && option.kind.isList) {
      const items = node.items.map((item) => this.#resolve(item as Node));
      if (!items.every((item): item is Scalar => isScalar(item) && !isNothing(item)))
        this.problems.push(`${spelling} must be a sequence of single values.`);
      else if (items.length > 0) add((option.kind.join ?? joined)(items.map((item) => String(item.value))));
    } else
      this.problems.push(
        `${spelling} must be ${option.kind.isList ? 'a list' : 'a single value'}, not ${kindOf(node)}.`,
      );
  }

  #resolve(node: Node | null): Node | null {
    if (!isAlias(node)) return node;
    const target = node.resolve(this.#document);
    if (target === undefined)
      this.problems.push(
        `${this.#file}:${lineOf(node, this.#lines)} refers to something that is not defined: a value that begins with * needs quotes.`,
      );
    return target ?? null;
  }
}

function joined(items: readonly string[]): string {
  return items.join(',');
}

/** Nothing behind the colon, `~` or `null`: it is unclear whether the default, zero or an empty text is meant. */
function isNothing(scalar: Scalar): boolean {
  return scalar.type === 'PLAIN' && ['', '~', 'null'].includes(String(scalar.value).toLowerCase());
}

/**
 * The text of a configuration file; null where there is none. Anything but a regular file of moderate size is refused.
 */
export function readConfigFile(path: string): string | null {
  let file: number;
  try {
    // Without waiting for the other end of a pipe.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error('it is not a file');
    if (found.size > YAML_LENGTH_MAX)
      throw new Error(`it has ${found.size} bytes, and a configuration file has at most ${YAML_LENGTH_MAX}`);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}
