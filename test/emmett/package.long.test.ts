import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type * as Embedded from '../../local/embedded/index.ts';
import type * as Emmett from '../../local/emmett/index.ts';
import { declaredMembers, packed } from '../local/packed.ts';
import type { Packed } from '../local/packed.ts';
import { ROOT } from '../local/spawn.ts';
import { embedded } from './backends.ts';
import { describeEventStore } from './contract.ts';

/** `skua/emmett` as strangers get it: packed and installed, with Emmett beside it. */

let all: Packed;
const surfaces: { emmett?: typeof Emmett; embedded?: typeof Embedded } = {};

beforeAll(async () => {
  all = await packed();
  const modules = path.join(all.installed, 'node_modules');
  mkdirSync(path.join(modules, '@event-driven-io'));
  symlinkSync(path.join(ROOT, 'node_modules/emmett-current'), path.join(modules, '@event-driven-io/emmett'));
  for (const name of ['emmett', 'embedded'] as const)
    surfaces[name] = await import(pathToFileURL(path.join(modules, `skua/dist/${name}.js`)).href);
});
afterAll(() => all.remove());

describeEventStore(
  'the packed package',
  () => embedded(true, surfaces.embedded!.openStore),
  () => surfaces.emmett!,
);

test('its declarations name Emmett as programs do, and what they promise is exercised by the suite', () => {
  const types = path.join(all.installed, 'node_modules/skua/dist/types/local/emmett');
  const declared = readFileSync(path.join(types, 'api.d.ts'), 'utf8');
  expect(declared).toContain("from '@event-driven-io/emmett'");
  const tests = [
    'contract.ts',
    'consumer.test.ts',
    'typed.test.ts',
    'http.test.ts',
    'backends.ts',
    'event-store.long.test.ts',
  ]
    .map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'))
    .join('\n');
  // Those by which a store and a client of others are known are theirs.
  const theirs = ['position', 'commit', 'info', 'nextExpectedRevision', 'revision'];
  const members = declaredMembers(declared).filter((name) => !theirs.includes(name));
  expect(members.length).toBeGreaterThan(10);
  expect(members.filter((name) => !new RegExp(`\\b${name}\\b`).test(tests))).toEqual([]);
});
