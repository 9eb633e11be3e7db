import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { ANY } from '../../../core/streams/api.ts';
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';
import { eventsOf, runTick, worldOf } from '../../shared-log/tick-kit.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { ran } from '../spawn.ts';

/** Commands that look at the objects of a store in a directory; buckets are opened in the same way. */

let folder: string;
let store: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-looked-at-'));
  store = path.join(folder, 'objects');
  const objects = new DirectoryObjects({ root: store, isBlocking: true });
  const world = worldOf(objects, systemClock, 1);
  const { store: streams, close } = await openObjectStore(world).then((instance) => ({
    store: instance.store,
    close: () => instance.close(),
  }));
  await streams.append('orders', ANY, eventsOf(new SeededIds(2), 3, 100));
  await runTick(world);
  await streams.append('orders', ANY, eventsOf(new SeededIds(3), 2, 100));
  await close();
  await objects.close();
  mkdirSync(path.join(folder, 'empty'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const skua = (...words: string[]) => ran(words);

describe('a directory of objects', () => {
  test.each([['--storage'], []])('is verified, named with %s or as it is', async (...words) => {
    expect(await skua('verify', ...words, store)).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /objects: nothing wrong found\. Checked 1 chunk, 5 records .* followed by 1 commit/,
      ) as string,
    });
    const { code, out } = await skua('verify', ...words, store, '--json');
    expect({ code, ...(JSON.parse(out.trim().split('\n').at(-1)!) as object) }).toMatchObject({
      code: 0,
      kind: 'summary',
      errors: 0,
      events: 5,
      commits: 1,
    });
  });

  test.each([['--storage'], ['--db']])('is searched and explained with %s', async (option) => {
    const found = await skua('prove-erased', '--stream', 'orders', option, store);
    expect(found).toMatchObject({ code: 1, out: expect.stringContaining("event 4 of 'orders'") as string });
    expect(found.out).toMatch(/in a commit that is in files by now, to be removed by \d{4}-/);
    expect(found.out).toMatch(/gone by \d{4}-.* A scavenge removes what is deleted/);
    expect(await skua('prove-erased', '--stream', 'never-was', option, store)).toMatchObject({
      code: 1,
      out: expect.stringContaining('no trace') as string,
    });
    expect(await skua('explain', 'orders', option, store)).toMatchObject({
      code: 0,
      out: expect.stringContaining('last event 4') as string,
    });
  });

  test('is refused where there is none, with what to name', async () => {
    const empty = path.join(folder, 'empty');
    for (const words of [['verify'], ['prove-erased', '--stream', 'a'], ['explain', 'a']]) {
      const { code, err } = await skua(...words, '--storage', empty);
      expect({ code, err }).toMatchObject({
        code: 3,
        err: expect.stringContaining('There is no store under') as string,
      });
      expect(err).toContain('--storage of `skua start`');
    }
    expect(await skua('verify', empty)).toMatchObject({ code: 3 });
    expect(await skua('verify', '--storage', 'ftp://x/y')).toMatchObject({ code: 2 });
    expect(await skua('verify')).toMatchObject({ code: 2 });
    expect(await skua('verify', store, '--storage', store)).toMatchObject({ code: 2 });
    expect(await skua('verify', store, '--index', empty)).toMatchObject({ code: 2 });
    expect(await skua('prove-erased', '--stream', 'a', '--db', store, '--storage', store)).toMatchObject({ code: 2 });
    expect(await skua('explain', 'a', '--node', 'http://127.0.0.1:1', '--storage', store)).toMatchObject({ code: 2 });
  });

  test('is damaged where a byte was changed', async () => {
    const damaged = path.join(folder, 'damaged');
    mkdirSync(path.join(damaged, 'manifest'), { recursive: true });
    writeFileSync(path.join(damaged, 'manifest', '999999999999998'), 'nothing');
    expect(await skua('verify', damaged)).toMatchObject({
      code: 1,
      out: expect.stringContaining('manifest_invalid') as string,
    });
  });
});
