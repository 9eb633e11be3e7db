import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';
import { append, CHUNK_BYTES } from '../../backup/copy-kit.ts';
import { worldOf } from '../../shared-log/setup.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { IS_LONG_RUN } from '../../support/run-size.ts';
import { openTestStore } from '../../support/test-store.ts';
import type { Ended } from '../spawn.ts';
import { startedNode } from '../spawn.ts';
import { runBy } from '../run.ts';
import { FakeIo } from '../support.ts';

/** `skua cluster reset` and `skua start --detach`, over directories. */

const OLD_LOG = '3f0c4a0b-9d07-4f1c-8a7f-2b116f0d6a0e';

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-reset-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function run(words: readonly string[], answer?: string): Promise<Ended> {
  const stdin = answer === undefined ? undefined : Object.assign(new PassThrough(), { isTTY: true });
  const io = Object.assign(new FakeIo(), stdin === undefined ? {} : { stdin });
  stdin?.end(`${answer}\n`);
  return runBy(io, words);
}

/** A stopped directory with `count` events; a member's copy unless `logId` is null. */
async function copyWith(count: number, logId: string | null = OLD_LOG): Promise<string[]> {
  const open = await openTestStore({
    storage: new FilesystemStorage({ root: at('copy') }),
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: 60,
  });
  const ids = await append(open, 's', count);
  await open.close();
  if (logId !== null) writeFileSync(at('copy', 'log-id'), `${logId}\n`);
  return ids;
}

async function idsInLog(place: string): Promise<string[]> {
  const instance = await openObjectStore(
    worldOf(new DirectoryObjects({ root: place, isBlocking: true }), { clock: systemClock, seed: 77 }),
  );
  const { events } = await instance.store.readStream('s', {
    direction: 'forward',
    from: 0,
    count: 1_000,
    resolveLinks: false,
  });
  await instance.close();
  return events.map(({ id }) => id);
}

const RESET = (...more: string[]) => ['cluster', 'reset', '--from', at('copy'), '--storage', at('second'), ...more];

describe('skua cluster reset', () => {
  test('begins a log that holds what the copy holds, and makes the copy one of it', async () => {
    const ids = await copyWith(150);
    const { code, out, err } = await run(RESET('--yes', '--json'));
    expect([code, err]).toEqual([
      0,
      expect.stringContaining(`is a replica of the log ${OLD_LOG}. It ends at position `),
    ]);
    expect(err).toContain('(number 149 of "s")');
    expect(err).toContain('Anything other replicas have beyond that end is lost');
    const report = JSON.parse(out) as { logId: string; logEnd: number; chunks: number };
    expect(report).toMatchObject({
      directory: at('copy'),
      storage: at('second'),
      formerLogId: OLD_LOG,
      lastEvent: { stream: 's', number: 149 },
    });
    expect(report.chunks).toBeGreaterThan(1);
    expect(readFileSync(at('copy', 'log-id'), 'utf8')).toBe(`${report.logId}\n`);
    expect(await idsInLog(at('second'))).toEqual(ids);
    expect((await run(['verify', '--storage', at('second')])).code).toBe(0);
    expect((await run(['verify', at('copy')])).code).toBe(0);
  });

  if (IS_LONG_RUN)
    test('asks on a terminal, and takes only yes for yes', async () => {
      await copyWith(3);
      const no = await run(RESET(), 'y');
      expect(no).toMatchObject({ code: 4, err: expect.stringContaining('Type yes: ') });
      expect(no.err).toContain('Nothing was changed.');
      expect(existsSync(at('second'))).toBe(false);
      expect(readFileSync(at('copy', 'log-id'), 'utf8')).toBe(`${OLD_LOG}\n`);
      expect(await run(RESET(), 'yes')).toMatchObject({
        code: 0,
        out: expect.stringMatching(/Done after .*: the log [0-9a-f-]{36} starts in /),
      });
    });

  if (IS_LONG_RUN)
    test('where nobody is asked, it wants --yes', async () => {
      await copyWith(3);
      expect(await run(RESET())).toMatchObject({ code: 4, err: expect.stringContaining('give --yes') });
    });

  if (IS_LONG_RUN)
    test('makes a cluster of a single node', async () => {
      const ids = await copyWith(5, null);
      expect(await run(RESET('--yes'))).toMatchObject({ code: 0, out: expect.stringContaining('belongs to no log.') });
      expect(existsSync(at('copy', 'log-id'))).toBe(true);
      expect(await idsInLog(at('second'))).toEqual(ids);
    });

  test('refuses a prefix that holds a log, and changes nothing', async () => {
    await copyWith(3);
    await run(RESET('--yes'));
    const after = readFileSync(at('copy', 'log-id'), 'utf8');
    const files = readdirSync(at('second'), { recursive: true }).length;
    expect(await run(RESET('--yes'))).toMatchObject({ code: 4, err: expect.stringContaining('already holds a log') });
    expect(readFileSync(at('copy', 'log-id'), 'utf8')).toBe(after);
    expect(readdirSync(at('second'), { recursive: true })).toHaveLength(files);
  });

  test.each<[string, string[], number, RegExp]>([
    ['no directory', ['cluster', 'reset', '--storage', 'x'], 2, /--from DIR is missing/],
    ['no place', ['cluster', 'reset', '--from', 'x'], 2, /--storage PLACE is missing/],
    ['the log in the copy', ['cluster', 'reset', '--from', 'x', '--storage', 'x/log'], 2, /are inside each other/],
    ['what is no directory', ['cluster', 'reset', '--from', 'none', '--storage', 'log'], 3, /not_a_directory/],
  ])('refuses %s', async (_, words, code, message) => {
    expect(await run(words)).toMatchObject({ code, err: expect.stringMatching(message) });
  });

  if (IS_LONG_RUN)
    test('refuses the directory of a running node', async () => {
      const node = await startedNode(['--db', at('copy')]);
      expect(await run(RESET('--yes'))).toMatchObject({
        code: 3,
        err: expect.stringContaining('Stop the member first'),
      });
      await node.stop();
    });
});

describe("a copy that was a member's", () => {
  test('is opened alone only with --detach, once and for good', async () => {
    await copyWith(3);
    const refused = await startedNode(['--db', at('copy')]).then(
      () => null,
      (error: unknown) => String(error),
    );
    expect(refused).toContain('copy_attached');
    const detached = await startedNode(['--db', at('copy'), '--detach']);
    expect((await fetch(`${detached.url}/streams/s/2`)).status).toBe(200);
    expect(detached.process.logged().map(({ msg }) => msg)).toContainEqual(
      expect.stringContaining('was detached from its cluster'),
    );
    await detached.stop();
    expect(existsSync(at('copy', 'log-id'))).toBe(false);
    const alone = await startedNode(['--db', at('copy')]);
    await alone.stop();
  });

  test('is read as it is by what writes nothing, and refused by what would', async () => {
    await copyWith(3);
    expect((await run(['explain', 's', '--db', at('copy')])).code).toBe(0);
    expect((await run(['user', 'list', '--db', at('copy')])).code).toBe(0);
    expect((await run(['verify', at('copy')])).code).toBe(0);
    expect(await run(['scavenge', 'offline', at('copy')])).toMatchObject({
      code: 4,
      err: expect.stringContaining('copy_attached'),
    });
    expect(readFileSync(at('copy', 'log-id'), 'utf8')).toBe(`${OLD_LOG}\n`);
  });
});
