import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PRODUCT = ['core', 'handlers', 'infra', 'local'];

function sourcesOf(folders: readonly string[]): string[] {
  return globSync(
    folders.map((folder) => `${folder}/**/*.{ts,tsx}`),
    { cwd: ROOT, exclude: ['**/node_modules/**', '**/fixtures/**'] },
  ).sort();
}

function textOf(file: string): string {
  return readFileSync(resolve(ROOT, file), 'utf8');
}

const COLUMNS_MAX = 120;
/** What a formatter can't break: a text in quotes, a regular expression, an address. */
const UNBROKEN = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`?|\/(?:[^/\\\n]|\\.)+\/[a-z]*|https?:\S+/g;

/** Lines of a file that are too long though they could be broken. Lines within a text over several lines are that text's. */
function longLines(text: string): string[] {
  const found: string[] = [];
  let isInText = false;
  for (const line of text.split('\n')) {
    const wasInText = isInText;
    if (!/^\s*(?:\*|\/\/|\/\*)/.test(line) || isInText) {
      if (((line.replaceAll('\\`', '').match(/`/g) ?? []).length & 1) === 1) isInText = !isInText;
    }
    // Lines of a table are not broken either.
    if (wasInText || [...line].length <= COLUMNS_MAX || /^ *\* \|/.test(line)) continue;
    const isComment = /^\s*(?:\*|\/\/|\/\*)/.test(line);
    const isText = /^\s*`.*`[,;)]*$/.test(line);
    const rest = isComment ? line : isText ? '' : line.replace(UNBROKEN, '');
    if ([...rest].length > COLUMNS_MAX || isComment) found.push(line.trim());
  }
  return found;
}

/** Made by a generator, each message a line. */
const isGenerated = (file: string) => /^handlers\/grpc\/messages\/(?!wire\.ts)/.test(file);

test(`no line has more than ${COLUMNS_MAX} columns but for texts, which are not broken`, () => {
  const files = sourcesOf([...PRODUCT, 'test']).filter((file) => !isGenerated(file));
  const found = files.flatMap((file) => longLines(textOf(file)).map((line) => `${file}: ${line}`));
  expect(found).toEqual([]);
});

/** Folders whose files are entered by their names: functions, and what goes over HTTP, one an area. */
const ENTRIES: ReadonlySet<string> = new Set(['infra/aws/functions', 'handlers/documents']);

/** Whether a file's name says that it is a door: the same in every folder. */
function isDoor(file: string): boolean {
  const name = basename(file).replace(/\.tsx?$/, '');
  return /^(?:api|format|index|routes)$/.test(name) || name === basename(dirname(file)) || ENTRIES.has(dirname(file));
}

test('no two files of the product have one name, but for doors', () => {
  const byName = new Map<string, string[]>();
  for (const file of sourcesOf(PRODUCT)) {
    if (isDoor(file)) continue;
    byName.set(basename(file), [...(byName.get(basename(file)) ?? []), file]);
  }
  expect([...byName.values()].filter((files) => files.length > 1)).toEqual([]);
});

/** Names that are gone, each with the field's word that took its place (the glossary of ARCHITECTURE.md). */
interface GoneWords {
  readonly identifiers: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
}

test('words of our own that gave way to those of the field do not come back', () => {
  const { identifiers, files } = JSON.parse(textOf('test/gone-words.json')) as GoneWords;
  const word = new RegExp(`(?<![\\w$'"-])(?:${Object.keys(identifiers).join('|')})(?![\\w$'"-])`, 'g');
  const found = sourcesOf(PRODUCT).flatMap((file) => {
    const name = basename(file).replace(/\.tsx?$/, '');
    const inText = new Set([...textOf(file).matchAll(word)].map(([each]) => each));
    const lines = [...inText].map((each) => `${file}: ${each} is now ${identifiers[each]!}`);
    return Object.hasOwn(files, name) ? [...lines, `${file}: such a file is now ${files[name]!}`] : lines;
  });
  expect(found).toEqual([]);
});
