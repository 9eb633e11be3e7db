import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ANY } from '../../../core/streams/api.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { append, CHUNK_BYTES } from '../../backup/copy-kit.ts';
import { openTestStore } from '../../support/test-store.ts';
import { Spawned } from '../spawn.ts';
import { run } from '../run.ts';

/** Processes that are killed in the middle of a copy or a restore, and the command that completes their work. */

const WORK = fileURLToPath(new URL('killed-work.ts', import.meta.url));
let folder: string;
const at = (name: string) => path.join(folder, name);
let ids: string[];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-kill-'));
  const open = () =>
    openTestStore({
      storage: new FilesystemStorage({ root: at('data') }),
      chunkSizeBytes: CHUNK_BYTES,
      memTableEntriesMax: 60,
    });
  let store = await open();
  ids = await append(store, 's', 70);
  await append(store, 'gone', 70);
  await store.close();
  expect((await run('backup', 'copy', '--full', '--db', at('data'), '--to', at('former'))).code).toBe(0);
  store = await open();
  ids.push(...(await append(store, 's', 70)));
  await store.store.deleteStream('gone', ANY, 'hard');
  await store.scavenger.start({});
  await store.scavenger.idle();
  await store.close();
  expect((await run('backup', 'copy', '--full', '--db', at('data'), '--to', at('whole'))).code).toBe(0);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Null: it was killed. */
async function worked(what: string, from: string, to: string, changes: number): Promise<number | null> {
  return (await new Spawned(process.execPath, [WORK, what, from, to, String(changes)]).ended).code;
}

async function expectWhole(db: string): Promise<void> {
  const open = await openTestStore({ storage: new FilesystemStorage({ root: db }), writeEpoch: false });
  const page = await open.store.readStream('s', { direction: 'forward', from: 0, count: 4_000, resolveLinks: false });
  await open.close();
  expect(page.events.map(({ id }) => id)).toEqual(ids);
  expect((await run('verify', db)).code).toBe(0);
}

test.each([
  { mode: 'full', changes: [6, 30] },
  { mode: 'differential', changes: [6, 30] },
])('a $mode copy that was killed is completed by the same command', async ({ mode, changes }) => {
  for (const n of changes) {
    rmSync(at('copy'), { recursive: true, force: true });
    if (mode === 'differential') cpSync(at('former'), at('copy'), { recursive: true });
    expect(await worked(mode, at('data'), at('copy'), n), `${n} changes`).toBeNull();
    expect(existsSync(path.join(at('copy'), 'copy-unfinished')), `${n} changes`).toBe(true);
    expect(await run('restore', '--from', at('copy'), '--db', at('restored'), '--force')).toMatchObject({
      code: 1,
      err: expect.stringContaining('is unfinished'),
    });
    expect(await run('backup', 'copy', `--${mode}`, '--db', at('data'), '--to', at('copy'))).toMatchObject({
      code: 0,
      out: expect.stringContaining('completed an unfinished copy'),
    });
    expect((await run('restore', '--from', at('copy'), '--db', at('restored'), '--force')).code).toBe(0);
    await expectWhole(at('restored'));
  }
});

test('a directory whose restore was killed is not started on; the same command with --force completes it', async () => {
  for (const n of [1, 12]) {
    rmSync(at('r'), { recursive: true, force: true });
    expect(await worked('restore', at('whole'), at('r'), n), `${n} changes`).toBeNull();
    if (n > 1) {
      await expect(openTestStore({ storage: new FilesystemStorage({ root: at('r') }) })).rejects.toMatchObject({
        code: 'backup_failed',
      });
      expect(await run('restore', '--from', at('whole'), '--db', at('r'))).toMatchObject({
        code: 4,
        err: expect.stringContaining('an unfinished restore'),
      });
    }
    expect((await run('restore', '--from', at('whole'), '--db', at('r'), '--force')).code).toBe(0);
    await expectWhole(at('r'));
  }
});
