import { beforeEach, describe, expect, test } from 'vitest';
import type { CopySource } from '../../core/backup/copy/index-part.ts';
import type { SnapshotFile } from '../../core/store/source/source.ts';
import { BLOCK_SUMS_FILE } from '../../core/log/format/block-sums-file.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import {
  append,
  CHUNK_BYTES,
  clock,
  copy,
  filesOf,
  hashesOf,
  openSource,
  recorder,
  restored,
  stopped,
  withSource,
} from './copy-kit.ts';
import { putFile } from '../log/kit.ts';

/** Files, names and the order of copying. */

let source: MemoryStorage;
/** Ids by stream, as they were acknowledged. */
let known: Record<string, string[]>;

async function grow(stream: string, count: number): Promise<void> {
  await withSource(source, async (open) => {
    known[stream] = [...(known[stream] ?? []), ...(await append(open, stream, count))];
  });
}

const put = (storage: Storage, path: string, text: string): Promise<void> => putFile(storage, path, encodeText(text));

async function namesOf(storage: Storage): Promise<string[]> {
  return [...(await filesOf(storage)).keys()].filter((name) => name !== 'skua.lock' && name !== BLOCK_SUMS_FILE).sort();
}

beforeEach(async () => {
  source = new MemoryStorage();
  known = {};
  await grow('a', 130);
});

const MAP = 'copy index/indexmap';
const FILTER = [
  'copy index/stream-existence/streamExistenceFilter.chk',
  'copy index/stream-existence/streamExistenceFilter.dat',
];
const CHECKPOINTS = ['copy chaser.chk', 'copy epoch.chk', 'copy writer.chk', 'copy proposal.chk'];
const tables = (count: number, what = 'copy') =>
  Array.from({ length: count }, () => [`${what} index/GUID`, `${what} index/GUID.bloomfilter`]).flat();

describe('a full copy', () => {
  test('of a stopped directory goes in this order: index checkpoints, index files, checkpoints, chunks', async () => {
    await put(source, 'index/scavenging/scavenging.db', 'database');
    const target = new MemoryStorage();
    const { steps, onStep } = recorder();
    const report = await copy(source, target, 'full', { onStep });
    const count = steps.filter((step) => step === 'copy index/GUID').length;
    expect(count).toBeGreaterThan(0);
    expect([...steps.slice(0, 2), ...steps.slice(2, 2 + 2 * count).sort(), ...steps.slice(2 + 2 * count)]).toEqual([
      FILTER[0],
      MAP,
      ...tables(count).sort(),
      FILTER[1],
      'copy index/scavenging/scavenging.db',
      ...CHECKPOINTS,
      'copy truncate.chk',
      'copy chunk-000000.000000',
      'copy chunk-000001.000000',
      'copy chunk-000002.000000',
    ]);
    expect(report).toMatchObject({ mode: 'full', wasUnfinished: false, kept: 0, removed: 0, copied: steps.length });
    const [mine, theirs] = [await filesOf(target), await filesOf(source)];
    // What a node knows of its own file of the chunk being written is not copied.
    expect([...mine.keys()].sort()).toEqual([...theirs.keys()].filter((name) => name !== BLOCK_SUMS_FILE).sort());
    for (const [path, bytes] of mine)
      if (!path.startsWith('chunk-000002')) expect(bytes.equals(theirs.get(path)!), path).toBe(true);
    expect(await restored(target, ['a'])).toEqual({ wrong: [], ids: known, end: report.logEnd });
  });

  test('has the chunk that is being written at its full length, with zeros behind the end', async () => {
    const target = new MemoryStorage();
    const { logEnd } = await copy(source, target, 'full');
    const ongoing = (await filesOf(target)).get('chunk-000002.000000')!;
    expect(ongoing.length).toBe((await filesOf(source)).get('chunk-000002.000000')!.length);
    expect(ongoing.subarray(128 + logEnd - 2 * CHUNK_BYTES).every((byte) => byte === 0)).toBe(true);
    expect(ongoing.readUInt8(128 + logEnd - 2 * CHUNK_BYTES - 4)).not.toBe(0);
  });

  test('of a running node has everything that was acknowledged before it began, and nothing behind its end', async () => {
    const open = await openSource(source);
    const hold = await open.hold();
    const later = await append(open, 'b', 200);
    const target = new MemoryStorage();
    const { steps, onStep } = recorder();
    const report = await copy(hold, target, 'full', { onStep });
    await hold.release();
    expect(steps.filter((step) => step.startsWith('copy chunk-'))).toEqual([
      'copy chunk-000000.000000',
      'copy chunk-000001.000000',
      'copy chunk-000002.000000',
    ]);
    expect(steps.slice(0, 2)).toEqual([FILTER[0], MAP]);
    expect(await restored(target, ['a']).then(({ wrong, ids }) => ({ wrong, ids }))).toEqual({ wrong: [], ids: known });
    expect(later).toHaveLength(200);
    expect(report.logEnd).toBeLessThan(open.status().checkpoints.writer - 100 * 1_000);
    await open.close();
  });

  test('is refused where there is a copy already, and where there is anything else; nothing changes', async () => {
    const target = new MemoryStorage();
    await copy(source, target, 'full');
    const before = await hashesOf(target);
    await expect(copy(source, target, 'full')).rejects.toMatchObject({ code: 'directory_not_empty' });
    expect(await hashesOf(target)).toEqual(before);
    const other = new MemoryStorage();
    await put(other, 'chunk-000000.000000', 'mine');
    await expect(copy(source, other, 'full')).rejects.toMatchObject({ code: 'other_node' });
    expect(await namesOf(other)).toEqual(['chunk-000000.000000']);
  });
});

describe('a differential copy', () => {
  test('copies the last chunk anew, and removes old ones last', async () => {
    await put(source, 'index/scavenging/scavenging.db', 'database');
    const target = new MemoryStorage();
    await copy(source, target, 'full');
    const tablesBefore = [...(await filesOf(source)).keys()].filter((path) => /^index\/[0-9a-f-]{36}$/.test(path));
    await grow('b', 130);
    const { steps, onStep } = recorder();
    const report = await copy(source, target, 'differential', { onStep });
    const indexPart = steps.slice(0, steps.indexOf(FILTER[0]!));
    expect(indexPart[0]).toBe(MAP);
    const removed = indexPart.filter((step) => step.startsWith('remove ')).length;
    // Copies of tables first, then the old ones go.
    expect(indexPart.slice(-removed || indexPart.length).every((step) => step.startsWith('remove index/GUID'))).toBe(
      removed > 0,
    );
    expect(indexPart.slice(1, indexPart.length - removed).every((step) => /^(copy|keep) index\/GUID/.test(step))).toBe(
      true,
    );
    expect(indexPart).toContain('copy index/GUID');
    expect(tablesBefore.length).toBeGreaterThan(0);
    expect(steps.slice(indexPart.length)).toEqual([
      ...FILTER,
      'copy index/scavenging/scavenging.db',
      'rename chunk-000002.000000',
      ...CHECKPOINTS,
      'keep chunk-000000.000000',
      'keep chunk-000001.000000',
      'copy chunk-000002.000000',
      'copy chunk-000003.000000',
      'copy chunk-000004.000000',
      'remove chunk-000002.000000.old',
    ]);
    expect(await namesOf(target)).toEqual(await namesOf(source));
    expect(await restored(target, ['a', 'b'])).toEqual({ wrong: [], ids: known, end: report.logEnd });
  });

  test('into an empty directory copies all', async () => {
    const target = new MemoryStorage();
    const { steps, onStep } = recorder();
    await copy(source, target, 'differential', { onStep });
    expect(steps[0]).toBe(MAP);
    expect(steps.slice(-3)).toEqual([
      'copy chunk-000000.000000',
      'copy chunk-000001.000000',
      'copy chunk-000002.000000',
    ]);
    expect((await restored(target, ['a'])).wrong).toEqual([]);
  });

  test('of a running node, with a scavenge between, replaces chunks and drops the old ones', async () => {
    const target = new MemoryStorage();
    const open = await openSource(source);
    let hold = await open.hold();
    await copy(hold, target, 'full');
    await hold.release();
    await open.store.deleteStream('a', ANY, 'hard');
    known['b'] = await append(open, 'b', 80);
    await open.scavenger.start({});
    await open.scavenger.idle();
    hold = await open.hold();
    const { steps, onStep } = recorder();
    const report = await copy(hold, target, 'differential', { onStep });
    await hold.release();
    expect(report.removed).toBeGreaterThan(1);
    expect(steps).toContain('remove chunk-000000.000000');
    const logPart = steps.slice(steps.findIndex((step) => step.startsWith('rename ')));
    expect(logPart.slice(0, 5)).toEqual([expect.stringMatching(/^rename chunk-/), ...CHECKPOINTS]);
    const firstRemoved = logPart.findIndex((step) => step.startsWith('remove '));
    expect(logPart.slice(5, firstRemoved).every((step) => /^(copy|keep) chunk-/.test(step))).toBe(true);
    expect(logPart.slice(firstRemoved).every((step) => step.startsWith('remove chunk-'))).toBe(true);
    expect(logPart.at(-1)).toMatch(/^remove chunk-.*\.old$/);
    await open.close();
    expect(await restored(target, ['b'])).toMatchObject({ wrong: [], ids: { b: known['b'] } });
  });

  test('of another node is refused; nothing changes', async () => {
    const target = new MemoryStorage();
    await copy(source, target, 'full');
    const before = await hashesOf(target);
    await put(source, 'node-id', '11111111-2222-4333-8444-555555555555\n');
    for (const mode of ['differential', 'full'] as const)
      await expect(copy(source, target, mode)).rejects.toMatchObject({
        code: 'other_node',
        data: { nodeId: '11111111-2222-4333-8444-555555555555' },
      });
    expect(await hashesOf(target)).toEqual(before);
    await target.remove('node-id');
    await expect(copy(source, target, 'differential')).rejects.toMatchObject({
      code: 'other_node',
      data: { holds: null },
    });
  });

  test('copies a chunk of the same name and length anew when it is another one', async () => {
    const target = new MemoryStorage();
    await copy(source, target, 'full');
    const chunk = await target.open('chunk-000000.000000', 'write');
    await chunk.writeAt(chunk.size - 1, new Uint8Array([(await chunk.read(chunk.size - 1, 1))[0]! ^ 1]));
    await chunk.close();
    const { steps, onStep } = recorder();
    await copy(source, target, 'differential', { onStep });
    expect(steps.filter((step) => / chunk-00000[01]\./.test(step)).sort()).toEqual([
      'copy chunk-000000.000000',
      'keep chunk-000001.000000',
    ]);
  });

  test('skips the index of a source without one, and keeps no old one', async () => {
    const target = new MemoryStorage();
    await copy(source, target, 'full');
    const open = await stopped(source);
    const files = open.snapshot.files.filter(({ path }) => !path.startsWith('index/'));
    const { steps, onStep } = recorder();
    await copy(
      { read: (...range) => open.read(...range), release: () => open.release(), snapshot: { ...open.snapshot, files } },
      target,
      'differential',
      { onStep },
    );
    await open.release();
    expect(steps.filter((step) => step.includes('index/')).every((step) => step.startsWith('remove '))).toBe(true);
    expect((await namesOf(target)).filter((name) => name.startsWith('index/'))).toEqual([]);
    expect(await restored(target, ['a'])).toMatchObject({ wrong: [], ids: known });
  });
});

describe('an index that moves while it is copied', () => {
  /** A source whose map and tables are what `now` says. */
  async function moving(now: () => Record<string, string>): Promise<CopySource> {
    const base = await stopped(source);
    const text = (path: string) => encodeText(now()[path] ?? '');
    const relist = async (): Promise<readonly SnapshotFile[]> => [
      ...Object.keys(now()).map((path) => ({
        path,
        kind: path.endsWith('indexmap') ? ('index-map' as const) : ('index-table' as const),
        sizeBytes: text(path).length,
      })),
      ...base.snapshot.files.filter(({ path }) => !path.startsWith('index/')),
    ];
    return {
      snapshot: base.snapshot,
      relist,
      release: () => base.release(),
      async *read(path, position, length) {
        if (!path.startsWith('index/')) return yield* base.read(path, position, length);
        if (now()[path] === undefined) throw new SkuaError('file_not_found', `${path} is gone.`, { path });
        yield text(path).subarray(position, position + length);
      },
    };
  }
  const table = (n: number) => `index/00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

  test.each([
    { when: 'after the copy of a table', told: 'onProgress', removed: ['remove index/GUID'] },
    { when: 'before it, so that the table is gone', told: 'onStep', removed: [] },
  ] as const)(
    'is copied again from the map on until both maps are the same; tables not in the list go ($when)',
    async ({ told, removed }) => {
      const target = new MemoryStorage();
      let at = 0;
      const states: Record<string, string>[] = [
        { 'index/indexmap': 'one', [table(1)]: 'x' },
        { 'index/indexmap': 'two', [table(2)]: 'y' },
      ];
      const from = await moving(() => states[at]!);
      const { steps, onStep } = recorder();
      const move = (path: string) => {
        if (path === table(1)) at = 1;
      };
      await copy(from, target, 'differential', {
        onStep: (step) => {
          onStep(step);
          if (told === 'onStep' && step.do === 'copy') move(step.path);
        },
        onProgress: ({ path }) => {
          if (told === 'onProgress') move(path);
        },
      });
      await from.release();
      expect(steps.slice(0, steps.indexOf('copy chaser.chk'))).toEqual([
        MAP,
        'copy index/GUID',
        MAP,
        'copy index/GUID',
        ...removed,
      ]);
      const files = await filesOf(target);
      expect([files.get('index/indexmap')!.toString(), files.get(table(2))!.toString(), files.has(table(1))]).toEqual([
        'two',
        'y',
        false,
      ]);
    },
  );

  test('a map that is not there yet is waited for', async () => {
    const target = new MemoryStorage();
    let state: Record<string, string> = { [table(1)]: 'x' };
    const from = await moving(() => state);
    const copied = copy(from, target, 'differential');
    while (clock.sleeping === 0)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    state = { 'index/indexmap': 'map', ...state };
    await clock.advance(100);
    await copied;
    await from.release();
    expect((await filesOf(target)).get('index/indexmap')!.toString()).toBe('map');
  });

  test('one that never rests is given up, and the former log is still there', async () => {
    const target = new MemoryStorage();
    await copy(source, target, 'full');
    const logBefore = [...(await filesOf(target))].filter(
      ([path]) => /^chunk-|\.chk$/.test(path) && !path.startsWith('index/'),
    );
    let reads = 0;
    const from = await moving(() => ({ 'index/indexmap': String(1_000_000 + reads++) }));
    await expect(copy(from, target, 'differential')).rejects.toMatchObject({
      code: 'backup_failed',
      data: { limit: 100 },
    });
    await from.release();
    const after = await filesOf(target);
    for (const [path, bytes] of logBefore) expect(after.get(path)!.equals(bytes), path).toBe(true);
    expect(await copy(source, target, 'differential')).toMatchObject({ wasUnfinished: true });
  });
});

test('a file that ends early is told, and has no name in the copy', async () => {
  const target = new MemoryStorage();
  const from = await stopped(source);
  const short = {
    snapshot: from.snapshot,
    release: () => from.release(),
    async *read(path: string, position: number, length: number) {
      yield* from.read(path, position, path === 'chunk-000001.000000' ? length - 1 : length);
    },
  };
  await expect(copy(short, target, 'full')).rejects.toMatchObject({
    code: 'io_error',
    data: { path: 'chunk-000001.000000' },
  });
  await from.release();
  expect(await target.size('chunk-000001.000000')).toBeNull();
  expect(await target.size('copy-unfinished')).not.toBeNull();
  expect(await copy(source, target, 'full')).toMatchObject({ wasUnfinished: true });
  expect(await namesOf(target)).toEqual(await namesOf(source));
});

test('an abort ends the copy between two pieces with its reason', async () => {
  const target = new MemoryStorage();
  const controller = new AbortController();
  const reason = new Error('stop');
  const copied = copy(source, target, 'full', {
    signal: controller.signal,
    onStep: ({ path }) => {
      if (path === 'chunk-000001.000000') controller.abort(reason);
    },
  });
  await expect(copied).rejects.toBe(reason);
  expect(await target.size('writer.chk')).toBe(8);
  expect(await target.size('chunk-000002.000000')).toBeNull();
});
