import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { ANY, type ConditionItem } from '../../core/streams/api.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { newEvent, openIndexed, set } from '../attributes/world.ts';
import { bySize } from '../support/run-size.ts';

/**
 * A condition without `after` reaches over the whole log. Right after a restart, with nothing in memory, it is decided
 * by the tables: of the log itself no more is read than where its matches lie.
 */

const EVENTS = Number(process.env['SKUA_CONDITION_EVENTS'] ?? bySize(60_000, 200_000));
const BATCH = 1_000;
const CHUNK = Math.max(1, Math.ceil(EVENTS / 1_000_000)) * 4 * 1_048_576;
/** Three events, far from one another. */
const RARE = [1, EVENTS / 2, EVENTS - 2].map(Math.floor);

let folder = '';
/** Reads of chunk files, by name. */
let reads = new Map<string, number>();

/** Counts what is read of chunk files. */
function counting(root: string): Storage {
  const storage = new FilesystemStorage({ root });
  const open = storage.open.bind(storage);
  storage.open = async (path, access) => {
    const file = await open(path, access);
    if (!path.startsWith('chunk-')) return file;
    const read = file.read.bind(file);
    const readNow = file.readNow?.bind(file);
    const count = () => reads.set(path, (reads.get(path) ?? 0) + 1);
    const counted: Pick<StorageFile, 'read' | 'readNow'> = {
      read: (...args) => {
        count();
        return read(...args);
      },
      ...(readNow !== undefined && {
        readNow: (...args) => {
          const got = readNow(...args);
          if (got >= 0) count();
          return got;
        },
      }),
    };
    return Object.assign(file, counted);
  };
  return storage;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-conditions-'));
  const open = await openIndexed({ storage: new FilesystemStorage({ root: folder }), chunkSizeBytes: CHUNK });
  await set(open.store, { tags: true });
  for (let at = 0; at < EVENTS; at += BATCH)
    await open.store.append(
      `course-${at}`,
      ANY,
      Array.from({ length: BATCH }, (_, i) =>
        newEvent(RARE.includes(at + i) ? 'Closed' : 'Enrolled', {
          $tags: [`student:${(at + i) % 5_000}`, ...(RARE.includes(at + i) ? ['course:rare'] : [])],
        }),
      ),
    );
  await open.attributes!.idle();
  await open.close();
}, 600_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

/**
 * What a condition comes to in a store that was opened for it, and how often the log was read for that: its completed
 * chunks, since the first append reads all of the last one, for its digest.
 */
async function decided(items: readonly ConditionItem[]): Promise<{ readonly outcome: string; readonly reads: number }> {
  const open = await openIndexed({ storage: counting(folder), chunkSizeBytes: CHUNK });
  try {
    reads = new Map();
    const outcome = await open.store
      .appendToStreams([{ stream: 'decision', expectedVersion: ANY, events: [newEvent('Decided')] }], {
        condition: { failIfEventsMatch: { items } },
      })
      .then(
        () => 'written',
        (error: { code: string; data: { stream: string; number: number } }) =>
          `${error.code} ${error.data.stream} ${error.data.number}`,
      );
    const last = (await counting(folder).list(''))
      .filter((name) => name.startsWith('chunk-'))
      .toSorted()
      .at(-1);
    return { outcome, reads: [...reads].reduce((sum, [name, count]) => sum + (name === last ? 0 : count), 0) };
  } finally {
    await open.close();
  }
}

test('no record is read where nothing matches', async () => {
  expect(await decided([{ tags: ['course:none'] }])).toEqual({ outcome: 'written', reads: 0 });
  expect(await decided([{ types: ['Unheard'] }, { types: ['Closed'], tags: ['course:none'] }])).toEqual({
    outcome: 'written',
    reads: 0,
  });
});

test('where something matches, its oldest match is', async () => {
  const oldest = `condition_failed course-0 ${RARE[0]}`;
  for (const items of [
    [{ tags: ['course:rare'] }],
    [{ types: ['Closed'] }],
    [{ types: ['Closed', 'Unheard'], tags: ['course:rare'] }],
  ]) {
    const { outcome, reads: seen } = await decided(items);
    expect(outcome).toBe(oldest);
    expect(seen).toBeGreaterThan(0);
    expect(seen).toBeLessThanOrEqual(RARE.length);
  }
});

test('a match of a rare tag and a frequent one is found by the rare one', async () => {
  const { outcome, reads: seen } = await decided([{ tags: ['course:rare', `student:${RARE[2]! % 5_000}`] }]);
  expect(outcome).toBe(`condition_failed course-${Math.floor(RARE[2]! / BATCH) * BATCH} ${RARE[2]! % BATCH}`);
  expect(seen).toBeLessThanOrEqual(RARE.length);
});
