import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as ClientModule from '../../local/client/index.ts';
import { declaredMembers, packed } from '../local/packed.ts';
import type { Packed } from '../local/packed.ts';
import { eventStoreTests } from './contract.ts';
import { aNode, servedFunctions } from './worlds.ts';
import type { Server } from './worlds.ts';

/** `skua/client` as strangers get it: packed, installed, and imported by its file. */
describe.each([
  ['a node', aNode],
  [
    'served functions',
    (folder: string) => servedFunctions(() => path.join(folder, 'node_modules/skua/dist/functions.js')),
  ],
] as const)('the packed client of %s', (_name, start) => {
  let all: Packed;
  let server: Server;
  let module: typeof ClientModule;
  let store: ClientModule.Client;
  beforeAll(async () => {
    all = await packed();
    server = await start(all.installed);
    module = (await import(
      pathToFileURL(path.join(all.installed, 'node_modules/skua/dist/client.js')).href
    )) as typeof ClientModule;
    store = module.connect({ url: server.url, credentials: server.credentials });
  });
  afterAll(async () => {
    await store.close();
    await server.stop();
    await all.remove();
  });

  eventStoreTests(() => ({
    store,
    codeOf: (work) =>
      work.then(
        () => null,
        (error: unknown) =>
          module.isSkuaError(error) && error instanceof module.SkuaError ? error.code : String(error),
      ),
    redact: (stream, version) => server.redact(stream, version),
  }));

  test('what its declarations promise is exercised', () => {
    const declared = readFileSync(
      path.join(all.installed, 'node_modules/skua/dist/types/local/client/api.d.ts'),
      'utf8',
    );
    const tests = ['../local/client/transport.test.ts', 'contract.ts', 'client.test.ts', 'worlds.ts']
      .map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'))
      .join('\n');
    const members = declaredMembers(declared);
    expect(members.length).toBeGreaterThan(8);
    expect(members.filter((name) => !new RegExp(`\\b${name}\\b`).test(tests))).toEqual([]);
  });
});
