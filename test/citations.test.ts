import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = '{.ci,.github,core,handlers,infra,local,test}';
const TEXTS = [
  `${FOLDERS}/**/{Containerfile*,run,*.{cjs,conf,css,html,js,json,md,mjs,mts,proto,service,sh,ts,tsx,yaml,yml}}`,
  '*.{json,md,mjs}',
];
/** What was so at a release, recordings, what is not ours, and this test with its examples. */
const LEFT_OUT = [
  'CHANGELOG.md',
  'test/citations.test.ts',
  '**/node_modules/**',
  '**/dist/**',
  '**/package-lock.json',
  'test/fixtures/**/*.json',
];
/** What tests call files of strangers; patterns of names are passed over, too. */
const NO_PAGES = ['notes.md'];

/** The name of a page with the folders before it, but for the text of a link. */
const PAGE = /[\w./-]*[\w-]\.md\b(?!\]\()/g;
const LINK = /\]\(([^()\s]+)\)/g;
/** What may stand behind a page's name: a heading in quotes, numbers of sections, or of rules. */
const HEADING = /^[`']?,? (?:section )?\(?"([^"]+)"/;
const RULES = /^`?, rules? (\d+)(?: (?:and|to) (\d+))?/;
const RULES_BEFORE = /\b[Rr]ules? (\d+)(?: (?:and|to) (\d+))? of `?$/;
/** A section that has a number is one of an RFC: pages of ours have headings. */
const SECTION = /\b[Ss]ections? \d/g;
const OF_RFC = /\bRFC \d+,? $/;
/** Longest citation behind, or before, a page's name, in characters. */
const AROUND = 160;

interface Page {
  readonly headings: ReadonlySet<string>;
  /** As links name them. */
  readonly anchors: ReadonlySet<string>;
  /** Numbers of lists, and of tables whose rows have some. */
  readonly rules: ReadonlySet<string>;
}

const pages = new Map<string, Page>();

function pageOf(path: string): Page {
  const known = pages.get(path);
  if (known !== undefined) return known;
  const text = readFileSync(path, 'utf8').replace(/^```[^]*?^```/gm, '');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!.replaceAll('`', ''));
  const page: Page = {
    headings: new Set(headings),
    anchors: new Set(headings.map(anchorOf)),
    rules: new Set([...text.matchAll(/^(?:\| )?(\d+)\. /gm)].map(([, number]) => number!)),
  };
  pages.set(path, page);
  return page;
}

/** The anchor that a heading gets where the pages are shown. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

/** Lines joined, without what comments have at their beginnings. */
function joined(text: string): string {
  return text.replace(/\s*\n\s*(?:\*(?!\/)|\/\/)?\s*/g, ' ');
}

function* unresolved(file: string, text: string): Generator<readonly [at: number, what: string]> {
  const here = dirname(join(ROOT, file));
  const linked = new Set<number>();
  if (file.endsWith('.md')) {
    for (const { index, 1: target } of text.matchAll(LINK)) {
      if (/^[a-z]+:/.test(target!)) continue;
      for (let at = index; at < index + target!.length + 2; at++) linked.add(at);
      const [path, anchor] = target!.split('#') as [string, string?];
      const found = path === '' ? join(ROOT, file) : resolve(here, path);
      if (!existsSync(found)) yield [index, target!];
      else if (anchor !== undefined && found.endsWith('.md') && !pageOf(found).anchors.has(anchor))
        yield [index, target!];
    }
  }
  for (const { index, 0: name } of text.matchAll(PAGE)) {
    const path = name.replace(/^\//, '');
    if (linked.has(index) || NO_PAGES.includes(path) || text.startsWith('://', index - 1) || text[index - 1] === '*')
      continue;
    const found = [resolve(here, path), resolve(ROOT, path)].find((each) => existsSync(each));
    if (found === undefined) {
      yield [index, name];
      continue;
    }
    const [behind, before] = [
      joined(text.slice(index + name.length, index + name.length + AROUND)),
      joined(text.slice(Math.max(0, index - AROUND), index)),
    ];
    const heading = HEADING.exec(behind)?.[1];
    if (heading !== undefined && !pageOf(found).headings.has(heading)) yield [index, `${name}, "${heading}"`];
    const [, ...numbers] = RULES.exec(behind) ?? RULES_BEFORE.exec(before) ?? [];
    for (const number of numbers)
      if (number !== undefined && !pageOf(found).rules.has(number)) yield [index, `${name}, rule ${number}`];
  }
  for (const { index, 0: section } of text.matchAll(SECTION)) {
    if (!OF_RFC.test(joined(text.slice(Math.max(0, index - AROUND), index)))) yield [index, section];
  }
}

/** What pages call programs of their readers. */
const NO_SOURCES = ['erasure.test.mjs', 'sessions.test.mjs'];
const SOURCE = /`((?:[\w.-]+\/)*[\w.-]+\.(?:ts|tsx|mjs))`/g;

/** Sources that a page names, with or without the folders before them, and that are nowhere. */
function missingSources(page: string, text: string, ends: ReadonlySet<string>): string[] {
  return [...text.matchAll(SOURCE)]
    .filter(([, name]) => !ends.has(name!.replace(/^(?:\.\.?\/)+/, '')) && !NO_SOURCES.includes(name!))
    .map(([, name]) => `${page}: ${name}`);
}

/** What names something that is not there, with its place. */
function brokenIn(file: string, text: string): string[] {
  if (!/\.md\b|\]\(|ections? \d/.test(text)) return [];
  return [...unresolved(file, text)].map(([at, what]) => `${file}:${text.slice(0, at).split('\n').length}: ${what}`);
}

test('every page, heading and rule that a text of this repository names is there', () => {
  const files = globSync(TEXTS, { cwd: ROOT, exclude: LEFT_OUT }).sort();
  expect(files.length).toBeGreaterThan(1_000);
  expect(files.flatMap((file) => brokenIn(file, readFileSync(join(ROOT, file), 'utf8')))).toEqual([]);
});

test('every file of the sources that a page names is there', () => {
  const sources = globSync([`${FOLDERS}/**/*.{ts,tsx,mjs}`, '*.mjs'], {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/dist/**'],
  });
  const ends = new Set(sources.flatMap((file) => file.split('/').map((_, i, all) => all.slice(i).join('/'))));
  const pages = globSync([`${FOLDERS}/**/*.md`, '*.md'], { cwd: ROOT, exclude: LEFT_OUT });
  expect(pages.flatMap((page) => missingSources(page, readFileSync(join(ROOT, page), 'utf8'), ends))).toEqual([]);
  expect(missingSources('a.md', '`log.ts`, `core/log/log.ts`, `core/gone/log.ts`, `gone.ts`', ends)).toEqual([
    'a.md: core/gone/log.ts',
    'a.md: gone.ts',
  ]);
});

test('what is not there is told with its file and line', () => {
  const said = (text: string, file = 'core/log/x.ts') => brokenIn(file, text);
  expect(said('a\n/** As gone.md has it. */')).toEqual(['core/log/x.ts:2: gone.md']);
  expect(
    said('/** FORMAT.md, "Records", and core/log/FORMAT.md, "The end\n * of the log". RFC 9110, section 5.6.2. */'),
  ).toEqual([]);
  expect(said('/** FORMAT.md ("Records"), and core/index/FORMAT.md, "Re\n * cords". */')).toEqual([
    'core/log/x.ts:1: core/index/FORMAT.md, "Re cords"',
  ]);
  expect(said('/** core/log/FORMAT.md section 3, and section 4. */')).toEqual([
    'core/log/x.ts:1: section 3',
    'core/log/x.ts:1: section 4',
  ]);
  expect(said('/** core/cluster/README.md, rules 12 and 99; rule 3 of core/cluster/README.md. */')).toEqual([
    'core/log/x.ts:1: core/cluster/README.md, rule 99',
    'core/log/x.ts:1: core/cluster/README.md, rule 3',
  ]);
  expect(said('[a](FORMAT.md#records) [b](FORMAT.md#none) [c](log.md) [d](#records)', 'core/log/README.md')).toEqual([
    'core/log/README.md:1: FORMAT.md#none',
    'core/log/README.md:1: log.md',
    'core/log/README.md:1: #records',
  ]);
});
