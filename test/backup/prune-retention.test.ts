import { describe, expect, it } from 'vitest';
import { heldFromBeforeScavenges, restorableFrom, retained } from '../../core/backup/prune/backup-retention.ts';
import type { Retention } from '../../core/backup/prune/backup-retention.ts';
import type { Manifest, ManifestChunk } from '../../core/backup/format/snapshot-manifest.ts';

const NOTHING: Retention = { last: 0, hourly: 0, daily: 0, weekly: 0 };

/** Ids are the times themselves. */
function keeps(times: readonly string[], retention: Partial<Retention>): string[] {
  const backups = times.map((id) => ({ id, nodeId: 'a', createdMs: Date.parse(`${id}Z`) }));
  const kept = retained(backups, { ...NOTHING, ...retention });
  return times.filter((id) => kept.has(id));
}

describe('retention', () => {
  const times = [
    '2026-01-03T10:00',
    '2026-01-04T23:59',
    '2026-01-05T00:00',
    '2026-01-05T00:30',
    '2026-01-06T09:00',
    '2026-01-06T10:00',
    '2026-01-06T10:59',
    '2026-01-06T11:00',
  ];

  it.each<[Partial<Retention>, number[]]>([
    [{}, [0, 1, 2, 3, 4, 5, 6, 7]],
    [{ last: 1 }, [7]],
    [{ last: 3 }, [5, 6, 7]],
    [{ last: 100 }, [0, 1, 2, 3, 4, 5, 6, 7]],
    // The newest of each hour that has any.
    [{ hourly: 1 }, [7]],
    [{ hourly: 3 }, [4, 6, 7]],
    [{ hourly: 5 }, [1, 3, 4, 6, 7]],
    [{ daily: 2 }, [3, 7]],
    [{ daily: 9 }, [0, 1, 3, 7]],
    // 2026-01-05 was a Monday.
    [{ weekly: 1 }, [7]],
    [{ weekly: 2 }, [1, 7]],
    [{ last: 2, daily: 3 }, [1, 3, 6, 7]],
    [{ hourly: 2, weekly: 2 }, [1, 6, 7]],
  ])('%j keeps %j', (retention, expected) => {
    expect(keeps(times, retention)).toEqual(expected.map((i) => times[i]));
    expect(keeps(times.toReversed(), retention)).toEqual(expected.map((i) => times[i]).toReversed());
  });

  it('keeps the newest backup of every node', () => {
    const backups = [1, 2, 3].flatMap((day) =>
      ['a', 'b'].map((nodeId) => ({ id: `${nodeId}${day}`, nodeId, createdMs: day * 86_400_000 })),
    );
    expect([...retained(backups, { ...NOTHING, last: 1 })].toSorted()).toEqual(['a3', 'b3']);
    expect([...retained(backups, { ...NOTHING, daily: 2 })].toSorted()).toEqual(['a2', 'a3', 'b2', 'b3']);
  });
});

const SIZE = 1_000;
const chunk = (startNumber: number, endNumber: number, version: string): ManifestChunk => ({
  blob: `${startNumber}-${endNumber}-${version}`,
  sizeBytes: 1,
  path: version,
  startNumber,
  endNumber,
  isScavenged: version !== 'v0',
  md5: '',
  fromMs: null,
  toMs: null,
});
let number = 0;
function manifest(nodeId: string, chunks: ManifestChunk[], tailNumber: number, tailBytes: number): Manifest {
  const start = tailNumber * SIZE;
  return {
    format: 1,
    id: `${nodeId}${++number}`,
    nodeId,
    createdMs: number,
    cause: 'manual',
    chunkSizeBytes: SIZE,
    checkpoints: { writer: start + tailBytes, chaser: start + tailBytes, epoch: -1, proposal: -1 },
    chunks,
    tail: {
      number: tailNumber,
      path: '',
      header: '',
      segments:
        tailBytes === 0 ? [] : [{ blob: `tail${number}`, sizeBytes: tailBytes, from: start, to: start + tailBytes }],
    },
    index: null,
    scavengeDb: null,
  };
}

describe('what a scavenge has replaced', () => {
  it('is in backups with another version of a chunk that the newest has scavenged, or its data as a tail', () => {
    const asTail = manifest('a', [chunk(0, 0, 'v0')], 1, 100);
    const before = manifest('a', [chunk(0, 0, 'v0'), chunk(1, 1, 'v0')], 2, 100);
    const once = manifest('a', [chunk(0, 0, 'v0'), chunk(1, 1, 'v1')], 2, 200);
    const same = manifest('a', [chunk(0, 0, 'v0'), chunk(1, 1, 'v2')], 2, 300);
    const newest = manifest('a', [chunk(0, 0, 'v0'), chunk(1, 1, 'v2')], 2, 400);
    const other = manifest('b', [chunk(0, 0, 'v0'), chunk(1, 1, 'v0')], 2, 100);
    expect(heldFromBeforeScavenges([asTail, before, once, same, newest, other], new Map())).toEqual([
      asTail,
      before,
      once,
    ]);
  });

  it('is in backups of chunks that were merged since', () => {
    const before = manifest('a', [chunk(0, 0, 'v1'), chunk(1, 1, 'v1')], 2, 100);
    const empty = manifest('a', [], 0, 0);
    const newest = manifest('a', [chunk(0, 1, 'v2')], 2, 100);
    expect(heldFromBeforeScavenges([before, empty, newest], new Map())).toEqual([before]);
  });

  it('is in backups behind which it was shipped', () => {
    const inIts = manifest('a', [], 0, 0);
    const inNext = manifest('a', [], 0, 100);
    const notThere = manifest('a', [], 0, 0);
    const beyond = manifest('a', [chunk(0, 0, 'v0'), chunk(1, 1, 'v2')], 2, 100);
    const newest = manifest('a', [chunk(0, 0, 'v0'), chunk(1, 1, 'v2')], 2, 400);
    const shippedEnds = new Map([
      [inIts.id, 1_001],
      [inNext.id, 1_900],
      [notThere.id, 1_000],
      [beyond.id, 2_500],
      [newest.id, 3_900],
    ]);
    expect(heldFromBeforeScavenges([inIts, inNext, notThere, beyond, newest], shippedEnds)).toEqual([inIts, inNext]);
  });

  it('is nothing without a scavenge', () => {
    const backups = [manifest('a', [], 0, 100), manifest('a', [chunk(0, 0, 'v0')], 1, 100)];
    expect(heldFromBeforeScavenges(backups, new Map(backups.map(({ id }) => [id, 1_500])))).toEqual([]);
  });
});

describe('from where a log can be restored to any position', () => {
  it('is as far back from its end as unscavenged log joins', () => {
    const first = manifest('a', [chunk(0, 0, 'v0'), chunk(1, 1, 'v0')], 2, 100);
    const second = manifest('a', [chunk(0, 0, 'v1'), chunk(1, 1, 'v1'), chunk(2, 2, 'v0')], 3, 500);
    const other = manifest('b', [chunk(0, 0, 'v1')], 1, 0);
    const ends = new Map([
      [first.id, 2_100],
      [second.id, 3_600],
    ]);
    expect(restorableFrom([first, second, other], ends)).toEqual([
      { nodeId: 'a', from: 0 },
      { nodeId: 'b', from: 1_000 },
    ]);
    expect(restorableFrom([second], ends)).toEqual([{ nodeId: 'a', from: 2_000 }]);
    expect(restorableFrom([], ends)).toEqual([]);
  });
});
