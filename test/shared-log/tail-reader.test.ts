import { describe, expect, test } from 'vitest';
import { Carry, encodeCommit } from '../../core/shared-log/format/commit-object.ts';
import type { Commit } from '../../core/shared-log/format/commit-object.ts';
import { commitKey } from '../../core/shared-log/format/object-keys.ts';
import { commitsBetween, listBehind } from '../../core/shared-log/tail/tail.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { worldOf } from './setup.ts';

async function tailOf(count: number, bytes = 200): Promise<CountingObjects> {
  const objects = new CountingObjects(new MemoryObjects());
  const carry = new Carry();
  for (let number = 1; number <= count; number++) {
    const commit: Commit = {
      number,
      writer: new Uint8Array(16),
      nonce: new Uint8Array(16),
      start: number * bytes,
      end: (number + 1) * bytes,
      endsChunk: false,
      hasMarks: false,
      records: new Uint8Array(bytes).fill(number % 251),
    };
    await objects.create(commitKey(number), encodeCommit(commit, carry.before(number), nodeDigests));
    carry.add(number, encodeCommit(commit, [], nodeDigests));
  }
  objects.reset();
  return objects;
}

describe('reading the tail', () => {
  test.each([
    [200, 0, 2],
    [200, 57, 2],
    [129, 0, 2],
    [128, 0, 1],
    [1, 0, 1],
    [1_000, 3, 8],
  ])('of %i commits behind commit %i takes %i GETs', async (count, known, gets) => {
    const objects = await tailOf(count);
    const commits = await commitsBetween(worldOf(objects), known + 1, count);
    expect(commits!.map(({ number }) => number)).toEqual(
      Array.from({ length: count - known }, (_, i) => known + 1 + i),
    );
    expect(commits!.every(({ number, records }) => records[0] === number % 251 && records.length === 200)).toBe(true);
    expect(objects.counts().gets).toBe(gets);
  });

  test('of commits that are too large to be carried takes one GET each', async () => {
    const objects = await tailOf(5, 70_000);
    expect(await commitsBetween(worldOf(objects), 1, 5)).toHaveLength(5);
    expect(objects.counts().gets).toBe(5);
  });

  test('of no commits takes none', async () => {
    const objects = await tailOf(5);
    expect(await commitsBetween(worldOf(objects), 6, 5)).toEqual([]);
    expect(objects.counts().gets).toBe(0);
  });

  test('says when an object among them is gone', async () => {
    const objects = await tailOf(300);
    await objects.remove([commitKey(127)]);
    expect(await commitsBetween(worldOf(objects), 1, 300)).toBeNull();
    // Carried by another one, it is not missed.
    expect(await commitsBetween(worldOf(objects), 128, 300)).toHaveLength(173);
  });
});

describe('listing the tail', () => {
  test('finds its end with one LIST a thousand', async () => {
    const objects = await tailOf(1_500, 8);
    expect(await listBehind(worldOf(objects), 0)).toMatchObject({ last: 1_500, hasGap: false });
    expect(objects.counts().lists).toBe(2);
    expect(await listBehind(worldOf(objects), 1_500)).toMatchObject({ last: 1_500, hasGap: false });
  });

  test('sees a gap, at the beginning too', async () => {
    const objects = await tailOf(10);
    await objects.remove([commitKey(1), commitKey(6)]);
    expect(await listBehind(worldOf(objects), 0)).toMatchObject({ last: 0, hasGap: true });
    expect(await listBehind(worldOf(objects), 1)).toMatchObject({ last: 5, hasGap: true });
    expect(await listBehind(worldOf(objects), 6)).toMatchObject({ last: 10, hasGap: false });
  });
});
