import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runBy } from './run.ts';
import { startedNode } from './spawn.ts';
import type { Started } from './spawn.ts';
import { FakeIo } from './support.ts';

/** `skua indexes` at a real node. */

let node: Started;
beforeAll(async () => {
  node = await startedNode(['--insecure', '--mem-db']);
});
afterAll(() => node.stop());

const run = (words: readonly string[]) => runBy(new FakeIo({ env: { SKUA_NODE: node.url } }), ['indexes', ...words]);

describe('skua indexes', () => {
  test('switches them on and off, and says how they stand', async () => {
    const { code, out } = await run(['set', '--tags', 'on', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ setting: { names: true, correlations: false, tags: true } });
    const watched = await run(['status', '--watch']);
    expect(watched.code).toBe(0);
    expect(watched.out).toMatch(
      /^index +state +covered +entries +on disk\nnames +live +100 % +\d+ .*\ncorrelations +off\s*\ntags +live +100 % +0 +0 B\n$/,
    );
    await run(['set', '--names', 'off', '--tags', 'off']);
    expect(JSON.parse((await run(['status', '--json'])).out)).toMatchObject({
      setting: { names: false, correlations: false, tags: false },
      indexes: [{ state: 'off' }, { state: 'off' }, { state: 'off' }],
    });
  });

  test('says what to say', async () => {
    expect((await run(['set'])).code).not.toBe(0);
    expect((await run(['set', '--tags', 'maybe'])).code).not.toBe(0);
  });
});
