import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { hash } from 'node:crypto';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NotUnpacked, touch, unpack } from '../../../local/executable/unpack.ts';
import type { Manifest, Place } from '../../../local/executable/unpack.ts';

const CONTENT: Readonly<Record<string, string>> = { 'main.js': 'main', 'quickjs.wasm': '\0asm', 'ui/assets/page.js': 'page', 'empty.txt': '' };
const manifest: Manifest = { id: hash('sha256', 'this version', 'base64url'), files: Object.entries(CONTENT).map(([name, text]) => ({ name, digest: hash('sha256', text, 'base64url') })) };
const NOW_MS = Date.UTC(2026, 1, 3);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let scratch: string;
/** Names of files that were taken out of the executable. */
let taken: string[];
beforeEach(() => {
  scratch = mkdtempSync(path.join(tmpdir(), 'skua-unpack-'));
  mkdirSync(path.join(scratch, 'temp'));
  taken = [];
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const contentOf = (name: string): Uint8Array => {
  taken.push(name);
  return Buffer.from(CONTENT[name]!);
};
const place = (more: Partial<Place> = {}): Place => ({ env: {}, home: path.join(scratch, 'home'), temp: path.join(scratch, 'temp'), uid: process.getuid!(), nowMs: NOW_MS, ...more });
const unpacked = (more?: Partial<Place>): string => unpack(manifest, contentOf, place(more));

function expectWhole(folder: string): void {
  for (const [name, text] of Object.entries(CONTENT)) expect([name, readFileSync(path.join(folder, name), 'utf8')]).toEqual([name, text]);
}

function failure(more: Partial<Place>): NotUnpacked {
  try {
    unpacked(more);
  } catch (error) {
    if (error instanceof NotUnpacked) return error;
    throw error;
  }
  throw new Error('It was unpacked.');
}

test('all files are written, for their user only, and a second start takes them as they are', () => {
  const folder = unpacked();
  expect(folder).toBe(path.join(scratch, 'home/.cache/skua', manifest.id));
  expectWhole(folder);
  for (const each of [path.dirname(folder), folder, path.join(folder, 'ui')]) expect(statSync(each).mode & 0o777).toBe(0o700);
  expect(statSync(path.join(folder, 'main.js')).mode & 0o777).toBe(0o600);
  expect(taken).toEqual(Object.keys(CONTENT));
  expect(unpacked()).toBe(folder);
  expect(taken).toHaveLength(Object.keys(CONTENT).length);
});

test.each<[string, (file: string) => void]>([
  ['changed', (file) => writeFileSync(file, 'other')], ['cut short', (file) => truncateSync(file, 1)], ['missing', (file) => rmSync(file)],
  ['a link to another', (file) => { rmSync(file); symlinkSync(path.join(scratch, 'home'), file); }],
  ['a folder', (file) => { rmSync(file); mkdirSync(file); }],
])('a file that is %s is written anew, and no other one', (_, damage) => {
  const folder = unpacked();
  damage(path.join(folder, 'main.js'));
  taken = [];
  expect(unpacked()).toBe(folder);
  expectWhole(folder);
  expect(lstatSync(path.join(folder, 'main.js')).isFile()).toBe(true);
  expect(taken).toEqual(['main.js']);
});

test('a folder with something in it, in place of a file, is left as it is, and another place is taken', () => {
  const folder = unpacked();
  rmSync(path.join(folder, 'main.js'));
  mkdirSync(path.join(folder, 'main.js'));
  writeFileSync(path.join(folder, 'main.js/notes'), 'mine');
  const other = unpacked();
  expect(other).not.toBe(folder);
  expectWhole(other);
  expect(readFileSync(path.join(folder, 'main.js/notes'), 'utf8')).toBe('mine');
});

test('another start in the middle of this one, at any file, is none of its concern, nor the other way round', () => {
  for (const at of Object.keys(CONTENT)) {
    rmSync(path.join(scratch, 'home'), { recursive: true, force: true });
    const folder = unpack(manifest, (name) => {
      if (name === at) expectWhole(unpacked());
      return contentOf(name);
    }, place());
    expectWhole(folder);
  }
});

test('a start that ended at any file leaves what the next one completes, and nothing of a half-written file once that is old', () => {
  const nowhere = path.join(scratch, 'file');
  writeFileSync(nowhere, '');
  for (const at of Object.keys(CONTENT)) {
    rmSync(path.join(scratch, 'home'), { recursive: true, force: true });
    const ending = (name: string): Uint8Array => {
      if (name === at) throw new Error('ended');
      return contentOf(name);
    };
    expect(() => unpack(manifest, ending, place({ temp: nowhere }))).toThrow(NotUnpacked);
    expectWhole(unpacked({ temp: nowhere }));
  }
  const folder = unpacked();
  const [old, young] = ['0', '1'].map((digit) => path.join(folder, `.${digit.repeat(8)}-0000-4000-8000-000000000000.tmp`)) as [string, string];
  for (const [file, ageMs] of [[old, HOUR_MS + 1_000], [young, HOUR_MS - 1_000]] as const) {
    writeFileSync(file, 'half');
    utimesSync(file, (NOW_MS - ageMs) / 1_000, (NOW_MS - ageMs) / 1_000);
  }
  rmSync(path.join(folder, 'main.js'));
  unpacked();
  expect([existsSync(old), existsSync(young)]).toEqual([false, true]);
});

test('versions that were not used for a month are removed when another is unpacked; others, and what is not ours, stay', () => {
  const base = path.join(scratch, 'home/.cache/skua');
  const named = (word: string): string => path.join(base, hash('sha256', word, 'base64url'));
  for (const [folder, ageMs] of [[named('old'), 31 * DAY_MS], [named('young'), 29 * DAY_MS], [path.join(base, 'else'), 90 * DAY_MS]] as const) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    utimesSync(folder, (NOW_MS - ageMs) / 1_000, (NOW_MS - ageMs) / 1_000);
  }
  unpacked();
  expect([named('old'), named('young'), path.join(base, 'else')].map((folder) => existsSync(folder))).toEqual([false, true, true]);
});

test('a start and a process that runs make the folder young, the latter its files, too', () => {
  const folder = unpacked();
  expect(statSync(folder).mtimeMs).toBe(NOW_MS);
  rmSync(path.join(folder, 'empty.txt'));
  touch(folder, manifest, NOW_MS + DAY_MS);
  for (const each of ['', 'main.js', 'ui/assets/page.js']) expect(statSync(path.join(folder, each)).mtimeMs).toBe(NOW_MS + DAY_MS);
});

test('the folder of a unit comes first, then the one of the user\'s cache, then the temporary one', () => {
  const [unit, cache] = [path.join(scratch, 'unit'), path.join(scratch, 'cache')];
  expect(unpacked({ env: { CACHE_DIRECTORY: `${unit}:${cache}`, XDG_CACHE_HOME: cache } })).toBe(path.join(unit, 'unpacked', manifest.id));
  expect(unpacked({ env: { XDG_CACHE_HOME: cache } })).toBe(path.join(cache, 'skua', manifest.id));
  expect(unpacked({ env: { XDG_CACHE_HOME: 'relative', CACHE_DIRECTORY: '' } })).toBe(path.join(scratch, 'home/.cache/skua', manifest.id));
  expect(unpacked({ home: '' })).toBe(path.join(scratch, `temp/skua-${process.getuid!()}`, manifest.id));
});

test('where a folder can not be made, the next one is taken; without any it says what is wrong with each', () => {
  writeFileSync(path.join(scratch, 'home'), 'a file');
  expect(unpacked()).toBe(path.join(scratch, `temp/skua-${process.getuid!()}`, manifest.id));
  const { code, message } = failure({ temp: path.join(scratch, 'home') });
  expect(code).toBe('not_unpacked');
  expect(message).toMatch(/XDG_CACHE_HOME.* Tried \S+\/home\/\.cache\/skua: \w+: .*; \S+\/home\/skua-\d+: \w+: /);
});

test('a folder of another user, one that others can write, and a link are not used, nor changed', () => {
  const other = process.getuid!() + 1;
  const base = path.join(scratch, `temp/skua-${other}`);
  mkdirSync(base);
  expect(failure({ uid: other, home: '' }).message).toMatch(new RegExp(`${base} belongs to another user \\(${other - 1}, and this is ${other}\\)`));
  const own = path.join(scratch, `temp/skua-${process.getuid!()}`);
  mkdirSync(own);
  chmodSync(own, 0o777);
  expect(failure({ home: '' }).message).toContain(`${own} can be written by other users`);
  rmSync(own, { recursive: true });
  mkdirSync(path.join(scratch, 'elsewhere'));
  symlinkSync(path.join(scratch, 'elsewhere'), own);
  expect(failure({ home: '' }).message).toContain(`${own} is no folder`);
  expect([existsSync(path.join(base, manifest.id)), existsSync(path.join(scratch, 'elsewhere', manifest.id)), taken]).toEqual([false, false, []]);
});

test.skipIf(process.getuid!() !== 0)('a folder in one of another user is not used, since that user could put another in its place', () => {
  const home = path.join(scratch, 'home');
  mkdirSync(path.join(home, '.cache/skua'), { recursive: true, mode: 0o700 });
  chownSync(path.join(home, '.cache'), 4_711, 4_711);
  expect(unpacked()).toBe(path.join(scratch, 'temp/skua-0', manifest.id));
  // As the temporary folder is, whosever it is.
  chmodSync(path.join(home, '.cache'), 0o1777);
  expect(unpacked()).toBe(path.join(home, '.cache/skua', manifest.id));
});
