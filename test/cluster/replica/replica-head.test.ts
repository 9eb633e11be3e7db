import { expect, test } from 'vitest';
import { brokenInvariant } from '../../../core/base/errors.ts';
import { ReplicaHead, type ReplicaParts } from '../../../core/cluster/replica/replica-head.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { stampOf } from '../../../core/ports/stamp.ts';
import type { Commit } from '../../../core/shared-log/format/commit-object.ts';
import type { ObjectManifest } from '../../../core/shared-log/format/manifest.ts';
import { groupAt, openTestLog } from '../../log/kit.ts';
import { worldOf } from '../../shared-log/setup.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { NaiveIndex } from '../../streams/doubles.ts';

/** What is checked where a commit enters the copy of a member, before it is written and behind it. */

const CHUNK_BYTES = 65_536;

async function headOver(change: (log: ReplicaParts['log']) => ReplicaParts['log'] = (log) => log) {
  const log = await openTestLog(new MemoryStorage());
  const clock = new ManualClock();
  const stopped: string[] = [];
  const followed: number[] = [];
  const index = Object.assign(new NaiveIndex(), { ready: () => null }) as unknown as ReplicaParts['index'];
  const head = new ReplicaHead(
    worldOf(new MemoryObjects(), { clock }),
    60_000,
    { log: change(log), index },
    {
      manifest: { chunkSizeBytes: CHUNK_BYTES, number: 1, boundary: 1 } as ObjectManifest,
      stamp: stampOf(clock),
      known: 0,
      nextStart: 0,
      last: null,
    },
    {
      committed: () => {},
      applied: () => {},
      mustReopen: ({ code }) => {
        stopped.push(code);
      },
      refusal: () => null,
    },
  );
  head.listener = {
    overtake: () => {},
    follow: ({ end }) => {
      followed.push(end);
    },
    forgetStreams: () => {},
    addMarks: () => {},
    forgetTombstones: () => {},
  };
  return { head, log, stopped, followed };
}

function commit(number: number, start: number, records: Uint8Array, end = start + records.length): Commit {
  return {
    number,
    writer: new Uint8Array(16),
    nonce: new Uint8Array(16),
    start,
    end,
    endsChunk: false,
    hasMarks: false,
    records,
  };
}

test('a commit that fits is taken in at exactly its place', async () => {
  const { head, log, stopped, followed } = await headOver();
  await head.take([commit(1, 0, groupAt(0, [300])), commit(2, 300, groupAt(300, [400]))]);
  expect([head.known, head.nextStart, log.end, followed, stopped]).toEqual([2, 700, 700, [700], []]);
});

test('a commit that has fewer or more records than it says is not written, and the copy is opened again', async () => {
  for (const end of [299, 301]) {
    const { head, log, stopped, followed } = await headOver();
    await expect(head.take([commit(1, 0, groupAt(0, [300]), end)])).rejects.toMatchObject({
      code: 'writer_stopped',
      message: /defect/,
    });
    expect([head.known, head.nextStart, log.end, followed, stopped]).toEqual([0, 0, 0, [], ['writer_stopped']]);
    expect(head.trouble).toMatchObject({ code: 'writer_stopped' });
  }
});

test('a commit behind which the copy does not end where the commit does is not made known, and the copy is opened again', async () => {
  const { head, stopped, followed } = await headOver(
    (log) =>
      new Proxy(log, {
        get: (of, name) => {
          const value: unknown = Reflect.get(of, name, of);
          if (name === 'end' && of.end > 0) return of.end - 8;
          return typeof value === 'function' ? (value.bind(of) as unknown) : value;
        },
      }),
  );
  await expect(head.take([commit(1, 0, groupAt(0, [300]))])).rejects.toMatchObject({
    code: 'writer_stopped',
    message: /defect/,
  });
  expect([head.known, followed, stopped]).toEqual([0, [], ['writer_stopped']]);
});

test("where a commit can't be made known the copy is opened again", async () => {
  const { head, stopped } = await headOver();
  head.listener!.follow = () => {
    throw brokenInvariant('A commit is not the next one', {});
  };
  await expect(head.take([commit(1, 0, groupAt(0, [300]))])).rejects.toMatchObject({ code: 'writer_stopped' });
  expect([head.trouble?.code, stopped]).toEqual(['writer_stopped', ['writer_stopped']]);
});
