import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import type { AllPosition, NewEvent, StoredEvent, SubscriptionMessage } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';
import { bySize } from '../support/run-size.ts';

/** Readers and subscriptions that run throughout several scavenges see no error, no gap and no event twice. */

const KEPT = ['kept-0', 'kept-1', 'kept-2', 'kept-3'];
const CHUNK_BYTES = 65_536;
const ROUNDS = bySize(3, 3, 8);

function event(random: Random, data: Uint8Array = new Uint8Array(random.int(200, 900))): NewEvent {
  return {
    id: `00000000-0000-4000-8000-${String(random.int(0, 2 ** 40))
      .padStart(12, '0')
      .slice(-12)}`,
    type: 'noted',
    isJson: false,
    data,
    metadata: new Uint8Array(0),
  };
}

/** Appends and reads in a row while one scavenge runs; what they cost grows with every turn. */
const TURNS_MAX = 60;

/** Collects the events of a subscription until it is ended. */
class Follower {
  readonly seen: StoredEvent[] = [];
  readonly #ending = new AbortController();
  #onEvent: () => void = () => {};
  readonly #done: Promise<void>;

  constructor(follow: (signal: AbortSignal) => AsyncIterable<SubscriptionMessage>) {
    this.#done = (async () => {
      for await (const message of follow(this.#ending.signal)) {
        if (message.kind !== 'event') continue;
        this.seen.push(message.event);
        this.#onEvent();
        // A reader that takes its time stays in chunks that are replaced under it.
        if (this.seen.length % 16 === 0) await systemClock.yield();
      }
    })();
    this.#done.catch(() => {});
  }

  async reaches(isLast: (event: StoredEvent) => boolean): Promise<void> {
    const there = new Promise<void>((resolve) => {
      this.#onEvent = () => {
        const last = this.seen.at(-1);
        if (last !== undefined && isLast(last)) resolve();
      };
      this.#onEvent();
    });
    await Promise.race([
      there,
      this.#done.then(() => {
        throw new Error('The subscription ended.');
      }),
    ]);
    this.#ending.abort();
    await this.#done;
  }
}

async function readAll(open: DirectoryStore, direction: 'forward' | 'backward'): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let from: AllPosition | 'start' | 'end' = direction === 'forward' ? 'start' : 'end'; ;) {
    const page = await open.store.readAll({ direction, from, count: 50 });
    events.push(...page.events);
    if (page.isEnd) return direction === 'forward' ? events : events.reverse();
    from = page.next;
  }
}

function keptOf(events: readonly StoredEvent[]): string[] {
  return events.filter((e) => KEPT.includes(e.stream)).map((e) => `${e.number}@${e.stream}`);
}

async function play(open: DirectoryStore): Promise<void> {
  const random = new Random(5);
  const { store, scavenger } = open;
  const written: string[] = [];
  const append = async (stream: string): Promise<void> => {
    const { firstEventNumber } = await store.append(stream, ANY, [event(random)]);
    if (KEPT.includes(stream)) written.push(`${firstEventNumber}@${stream}`);
  };
  await store.append('$$capped', ANY, [
    { ...event(random, encodeText('{"$maxCount":3}')), type: '$metadata', isJson: true },
  ]);
  const first = new Follower((signal) => store.subscribeToAll({ after: 'start', signal }));
  const one = new Follower((signal) => store.subscribeToStream('kept-2', { after: -1, signal }));
  const late: Follower[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < 90; i++)
      await append(random.pick([...KEPT, 'capped', 'capped', `gone-${round}`, `gone-${round}`]));
    await store.deleteStream(`gone-${round}`, ANY, round % 2 === 0 ? 'hard' : 'soft');
    await scavenger.start({ threads: 2, threshold: round === 3 ? -1 : 0 });
    late.push(new Follower((signal) => store.subscribeToAll({ after: 'start', signal })));
    for (let turn = 0; turn < TURNS_MAX && scavenger.current() !== null; turn++) {
      await append(random.pick(KEPT));
      const before = written.length;
      const events = await readAll(open, random.pick(['forward', 'backward'] as const));
      // Nobody writes meanwhile but the run itself.
      expect(keptOf(events)).toEqual(written.slice(0, before));
      const page = await store.readStream('kept-1', { direction: 'forward', from: 0, count: 4_000 });
      expect(page.events.map((e) => e.number)).toEqual(page.events.map((_, i) => i));
    }
    await scavenger.idle();
    expect(scavenger.last()).toMatchObject({ result: 'Success' });
  }
  await append('kept-2');
  const last = written.at(-1)!;
  for (const follower of [first, one, ...late]) await follower.reaches((e) => `${e.number}@${e.stream}` === last);
  expect(one.seen.map((e) => e.number)).toEqual(one.seen.map((_, i) => i));
  for (const { seen } of [first, ...late]) {
    expect(keptOf(seen)).toEqual(written);
    for (let i = 1; i < seen.length; i++) expect(seen[i]!.position).toBeGreaterThan(seen[i - 1]!.position);
  }
}

describe('readers and subscriptions during scavenges', () => {
  it('in memory', async () => {
    const open = await openTestStore({
      storage: new MemoryStorage(),
      clock: systemClock,
      chunkSizeBytes: CHUNK_BYTES,
      memTableEntriesMax: 100,
    });
    await play(open);
    await open.close();
  });

  it('on files, with worker threads', async () => {
    const root = mkdtempSync(join(tmpdir(), 'skua-readers-'));
    const storage = new FilesystemStorage({ root });
    const jobs = new WorkerJobs({ root: storage.root, indexRoot: storage.indexRoot, isOffline: true });
    try {
      const open = await openTestStore({
        storage,
        jobs,
        clock: systemClock,
        ids: systemIds,
        chunkSizeBytes: CHUNK_BYTES,
        memTableEntriesMax: 100,
        scavengeStates: new SqliteScavengeStates({ indexRoot: storage.indexRoot }),
      });
      await play(open);
      await open.close();
    } finally {
      await jobs.close();
      rmSync(root, { recursive: true, force: true });
    }
  });
});
