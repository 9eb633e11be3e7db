import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type * as Dcb from '../../local/dcb/index.ts';
import type * as Embedded from '../../local/embedded/index.ts';
import { packed } from '../local/packed.ts';
import type { Packed } from '../local/packed.ts';
import { ROOT } from '../local/spawn.ts';
import { openIndexed } from './backends.ts';
import { describeDcbStore } from './contract.ts';

/** `skua/dcb` as strangers get it: packed and installed, with the library beside it. */

let all: Packed;
const surfaces: { dcb?: typeof Dcb; embedded?: typeof Embedded } = {};

beforeAll(async () => {
  all = await packed();
  const modules = path.join(all.installed, 'node_modules');
  mkdirSync(path.join(modules, '@dcb-es'));
  symlinkSync(path.join(ROOT, 'node_modules/@dcb-es/event-store'), path.join(modules, '@dcb-es/event-store'));
  for (const name of ['dcb', 'embedded'] as const)
    surfaces[name] = await import(pathToFileURL(path.join(modules, `skua/dist/${name}.js`)).href);
});
afterAll(() => all.remove());

describeDcbStore('the packed package', async () => {
  const store = await openIndexed({ memory: true }, surfaces.embedded!.openStore);
  return { store: surfaces.dcb!.getDcbEventStore(store), close: () => store.close() };
});

test('its declarations name the library as programs do', () => {
  const types = path.join(all.installed, 'node_modules/skua/dist/types/local/dcb');
  expect(readFileSync(path.join(types, 'api.d.ts'), 'utf8')).toContain("from '@dcb-es/event-store'");
});
