import { globSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const IMPORT = /(?:from|import)\s*\(?\s*'(\.[^']+)'/g;

/** What each file of the sources imports, types and late imports too. */
function importsOfFiles(): Map<string, Set<string>> {
  const files = globSync(
    ['core', 'handlers', 'infra', 'local'].map((folder) => `${folder}/**/*.ts`),
    { cwd: ROOT, exclude: ['**/node_modules/**', '**/cdk/**'] },
  );
  return new Map(
    files.map((file) => [
      file,
      new Set(
        [...readFileSync(resolve(ROOT, file), 'utf8').matchAll(IMPORT)].map(([, path]) =>
          relative(ROOT, resolve(ROOT, dirname(file), path!)),
        ),
      ),
    ]),
  );
}

/**
 * What is looked at as one: an area of core with all its folders, since it is entered by its door; elsewhere a folder.
 */
function placeOf(file: string): string {
  return areaOf(file) ?? dirname(file);
}

/** The area of core that a file is in; null outside of core. */
function areaOf(file: string): string | null {
  return file.startsWith('core/') ? file.split('/').slice(0, 2).join('/') : null;
}

function importsOfPlaces(files: Map<string, Set<string>>): Map<string, Set<string>> {
  const places = new Map<string, Set<string>>();
  for (const [file, imports] of files) {
    const from = placeOf(file);
    const found = places.get(from) ?? new Set();
    for (const to of imports) if (placeOf(to) !== from && files.has(to)) found.add(placeOf(to));
    places.set(from, found);
  }
  return places;
}

/** Takes away what imports nothing that is left, again and again; a circle, and what imports one, stays. */
function circles(imports: Map<string, Set<string>>): string[] {
  const left = new Map(imports);
  for (let size = -1; size !== left.size;) {
    size = left.size;
    for (const [name, wanted] of left) if (![...wanted].some((other) => left.has(other))) left.delete(name);
  }
  return [...left.keys()].sort();
}

test('no file and no folder of the sources imports itself by way of others, so each can be read on its own', () => {
  const files = importsOfFiles();
  expect(files.size).toBeGreaterThan(300);
  expect(circles(files)).toEqual([]);
  expect(circles(importsOfPlaces(files))).toEqual([]);
});

/** The ground that all stand on: each of its files is for everybody. */
const GROUND = ['core/base', 'core/ports', 'core/memory'];

/**
 * Whether a file is for those outside of its area: types and constants, the factory that has the name of the area or of
 * a part of it, what its bytes mean.
 */
function isDoor(file: string): boolean {
  const area = areaOf(file)!;
  return /\/(?:api|format)\.ts$/.test(file) || /\/([\w-]+)\/\1\.ts$/.test(file) || file.startsWith(`${area}/format/`);
}

test('an area of core is entered by its doors alone, from every floor', () => {
  const inner: string[] = [];
  for (const [file, imports] of importsOfFiles()) {
    for (const to of imports) {
      const area = areaOf(to);
      if (area === null || area === areaOf(file) || GROUND.includes(area) || isDoor(to)) continue;
      inner.push(`${file} imports ${to}`);
    }
  }
  expect(inner).toEqual([]);
});

/** Files of ours that are loaded with one, at once; types and late imports are not. */
function loadedWith(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file) || !file.endsWith('.ts')) return seen;
  seen.add(file);
  for (const [, path] of readFileSync(resolve(ROOT, file), 'utf8').matchAll(
    /^(?:import|export) (?!type )[^;]*?from '(\.[^']+)';$/gm,
  ))
    loadedWith(relative(ROOT, resolve(ROOT, dirname(file), path!)), seen);
  return seen;
}

/**
 * Who looks at everything below a prefix, and removes nothing: searches for traces, checks, and whoever is about to
 * make a repository.
 */
const LOOK_AT_ALL = [
  'core/shared-log/erasure-check/erasure-check.ts',
  'core/backup/repository/repository-objects.ts',
  'core/backup/repository/repository.ts',
  'local/commands/run-inspect.ts',
];

test("objects are listed by kinds alone, so that no stranger's object stops anything, or goes", () => {
  const files = globSync(
    ['core', 'handlers', 'infra', 'local'].map((folder) => `${folder}/**/*.ts`),
    { cwd: ROOT, exclude: ['**/node_modules/**', '**/cdk/**'] },
  ).sort();
  const textOf = (file: string) => readFileSync(resolve(ROOT, file), 'utf8');
  expect(
    files.filter((file) => /import \{[^}]*\blistAll\b[^}]*\} from '[^']*object-store\.ts'/.test(textOf(file))),
  ).toEqual([...LOOK_AT_ALL].sort());
  // What passes calls on to another store lists whatever it is asked for, and what a search looks at is no store.
  const passOn = [
    'core/shared-log/erasure-check/erasure-check.ts',
    'core/cluster/replica/watched-objects.ts',
    'core/shared-log/verify/verify.ts',
    'core/ports/object-kinds.ts',
    'core/ports/object-store.ts',
  ];
  expect(
    files.filter((file) => /\bobjects\.list\(/i.test(textOf(file))).filter((file) => !passOn.includes(file)),
  ).toEqual([]);
});

/**
 * Most files that a call of the command line may load before it does what was asked; each takes about a millisecond.
 */
const FILES_MAX = 100;

test('a command loads what it needs: neither the program as such nor one that only asks a node or a repository loads a store', () => {
  expect(loadedWith('local/program.ts').size).toBeLessThan(FILES_MAX / 2);
  for (const name of ['auto-scavenge', 'backup', 'demo', 'explain', 'inspect', 'scavenge', 'webhook-send']) {
    const files = loadedWith(`local/commands/run-${name}.ts`);
    expect(files.size, name).toBeLessThan(FILES_MAX);
    for (const large of ['core/store/store.ts', 'local/store/open-node.ts', 'local/log/logger.ts', 'handlers/app.ts'])
      expect([...files], name).not.toContain(large);
  }
});

/** What removes files of this machine, and by which names. */
const REMOVERS: Readonly<Record<string, string>> = {
  'infra/fs/file-removal.ts': 'by names that it is given, and folders that the process made',
  'infra/fs/filesystem-storage.ts': 'by the table core/ports/own-names.ts',
  'infra/fs/discard.ts': 'what the storage has renamed',
  'infra/objects/directory-objects.ts': 'keys that it is given',
  'infra/objects/durable-files.ts': 'names that it gave',
  'infra/packaging/built.mjs': 'paths that builds give',
  'infra/packaging/types.mjs': 'what it made itself',
};
const REMOVES = /\b(?:rm|rmSync|rmdir|rmdirSync|unlink|unlinkSync)\b/;

test('files are removed in few places, each of which goes by names that are ours', () => {
  const sources = globSync(
    ['core', 'handlers', 'infra', 'local']
      .flatMap((folder) => [`${folder}/**/*.ts`, `${folder}/**/*.mjs`])
      .concat('esbuild.config.mjs'),
    { cwd: ROOT, exclude: ['**/node_modules/**', '**/cdk/**'] },
  );
  const found = sources.filter((file) =>
    [...readFileSync(resolve(ROOT, file), 'utf8').matchAll(/^import ([^;]*) from 'node:fs(?:\/promises)?';$/gm)].some(
      ([, names]) => REMOVES.test(names!),
    ),
  );
  expect(found.sort()).toEqual(Object.keys(REMOVERS).sort());
  const byNamespace = sources.filter((file) =>
    /\b(?:fs|promises|fsp)\.(?:rm|rmdir|unlink)(?:Sync)?\(/.test(readFileSync(resolve(ROOT, file), 'utf8')),
  );
  expect(byNamespace).toEqual([]);
});

test('an installation asks no registry, and the guide names versions that were tried', () => {
  const shown = (file: string): string => readFileSync(resolve(ROOT, file), 'utf8');
  const about = JSON.parse(shown('package.json'));
  expect(Object.keys(about).filter((key) => /[dD]ependencies/.test(key))).toEqual([
    'peerDependenciesMeta',
    'devDependencies',
  ]);
  const brought: readonly [name: string, tried: string, page: string][] = [
    [
      '@event-driven-io/emmett',
      about.devDependencies['emmett-current'].replace('npm:@event-driven-io/emmett@', ''),
      'emmett',
    ],
    ['@dcb-es/event-store', about.devDependencies['@dcb-es/event-store'], 'decide'],
  ];
  expect(Object.keys(about.peerDependenciesMeta).toSorted()).toEqual(brought.map(([name]) => name).toSorted());
  for (const [name, tried, page] of brought) {
    const [, version] = new RegExp(`npm install ${name}@([0-9.]+)`).exec(shown(`local/guide/${page}.md`))!;
    expect(`${tried}.`.startsWith(`${version}.`)).toBe(true);
  }
});
