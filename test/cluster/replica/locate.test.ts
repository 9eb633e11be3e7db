import { describe, expect, it } from 'vitest';
import { type LocatedCommit, locateInTail } from '../../../core/cluster/replica/locate.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { CHUNK, groupAt, openTestLog } from '../../log/kit.ts';

/** The files of the log end with commit 4, at 1 000. */
const MANIFEST = { boundary: 5, logEnd: 1_000, endsChunk: false, chunkSizeBytes: CHUNK };

function commit(number: number, start: number, sizes: readonly number[], endsChunk = false, seed = 1): LocatedCommit {
  const records = groupAt(start, sizes, seed);
  return { number, start, end: start + records.length, endsChunk, records };
}

/**
 * 5: 1 000 to 2 000; 6: to 60 000, where the next one does not fit; 7: to chunk 1 + 9 000, which ends it; 8 begins
 * chunk 2.
 */
const TAIL = [
  commit(5, 1_000, [500, 500]),
  commit(6, 2_000, [28_000, 30_000]),
  commit(7, CHUNK, [4_000, 5_000]),
  commit(8, CHUNK + 9_000, [], true),
  commit(9, 2 * CHUNK, [700]),
];

/** A copy with these commits, which ends its last chunk where asked to. */
async function placeOf(
  commits: readonly LocatedCommit[],
  ended: boolean,
  tail: readonly LocatedCommit[] = TAIL,
  manifest: Partial<typeof MANIFEST> = {},
): Promise<number> {
  const log = await openTestLog(new MemoryStorage());
  await log.append(groupAt(0, [1_000]));
  for (const { start, records } of commits) {
    if (start > log.end) await log.completeChunk();
    if (records.length > 0) await log.append(records);
  }
  if (ended) await log.completeChunk();
  try {
    return await locateInTail(log.table, { ...MANIFEST, ...manifest }, tail, 'bucket');
  } finally {
    await log.close();
  }
}

describe('the place of a copy in the tail', () => {
  it('is the commit with which it ends', async () => {
    expect(await placeOf([], false)).toBe(4);
    expect(await placeOf([], true, [commit(5, CHUNK, [500])])).toBe(4);
    expect(await placeOf([], true, [], { endsChunk: true })).toBe(4);
    expect(await placeOf([], false, [], { endsChunk: true })).toBe(4);
    expect(await placeOf(TAIL.slice(0, 1), false)).toBe(5);
    expect(await placeOf(TAIL.slice(0, 2), false)).toBe(6);
    expect(await placeOf(TAIL.slice(0, 2), true), 'the next one begins the next chunk').toBe(6);
    expect(await placeOf(TAIL.slice(0, 3), false)).toBe(7);
    expect(await placeOf(TAIL.slice(0, 3), true), 'a commit without records has ended the chunk').toBe(8);
    expect(await placeOf(TAIL, false)).toBe(9);
  });

  it('is none where the log is shorter, or has no such end', async () => {
    for (const [commits, ended, tail] of [
      [TAIL.slice(0, 2), false, TAIL.slice(0, 1)],
      [TAIL, false, TAIL.slice(0, 4)],
      [TAIL.slice(0, 1), true, TAIL],
      [TAIL, true, TAIL],
      [[commit(5, 1_000, [500])], false, TAIL],
      [TAIL.slice(0, 1), false, []],
    ] as const) {
      await expect(placeOf(commits, ended, tail)).rejects.toMatchObject({ code: 'log_diverged' });
    }
  });

  it('is none where the last 64 KiB hold other records', async () => {
    const other = [TAIL[0]!, commit(6, 2_000, [28_000, 30_000], false, 2), ...TAIL.slice(2)];
    await expect(placeOf(other.slice(0, 2), false)).rejects.toMatchObject({
      code: 'log_diverged',
      data: { position: 2_000 },
    });
    await expect(placeOf(other.slice(0, 3), false)).rejects.toMatchObject({ code: 'log_diverged' });
    const cut = { ...TAIL[1]!, records: TAIL[1]!.records.subarray(0, 100) };
    await expect(placeOf(TAIL.slice(0, 2), false, [TAIL[0]!, cut])).rejects.toMatchObject({ code: 'log_diverged' });
  });
});
