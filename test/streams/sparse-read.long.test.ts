import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import type { NewEvent, StoredEvent } from '../../core/streams/api.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';

/** Streams whose events lie far apart are read record by record, and a page of them must be what it was in any case. */

const ROUNDS = 150;
const STREAMS = ['a', 'b'];
const NO_BYTES = new Uint8Array(0);
const root = mkdtempSync(join(tmpdir(), 'skua-sparse-'));
afterAll(() => {
  rmSync(root, { recursive: true });
});

type Written = Map<string, Uint8Array[]>;

function event(random: Random, data: Uint8Array): NewEvent {
  return {
    id: `00000000-0000-4000-8000-${String(random.int(0, 2 ** 40))
      .padStart(12, '0')
      .slice(-12)}`,
    type: 'noted',
    isJson: false,
    data,
    metadata: NO_BYTES,
  };
}

/**
 * Records of all sizes that are read in different ways, between others of 25 kB, a third of which a scavenge removes.
 */
async function fill(open: DirectoryStore, rounds = ROUNDS): Promise<Written> {
  const random = new Random(17);
  const written: Written = new Map(STREAMS.map((name) => [name, []]));
  for (let i = 0; i < rounds; i++) {
    for (const stream of STREAMS) {
      const data = random.bytes(random.pick([0, 10, 300, 3_900, 4_200, 20_000, 65_400, 70_000]));
      written.get(stream)!.push(data);
      await open.store.append(stream, ANY, [event(random, data)]);
    }
    await open.store.append(random.pick(['gone', 'other', 'another']), ANY, [event(random, new Uint8Array(25_000))]);
  }
  return written;
}

async function expectPages(
  open: DirectoryStore,
  stream: string,
  expected: readonly Uint8Array[],
  count: number,
): Promise<StoredEvent[]> {
  const seen: StoredEvent[] = [];
  for (let from = 0; ;) {
    const page = await open.store.readStream(stream, { direction: 'forward', from, count });
    seen.push(...page.events);
    if (page.isEnd) break;
    from = page.nextEventNumber;
  }
  expect(seen.map((e) => e.number)).toEqual(expected.map((_, i) => i));
  return seen;
}

/** What was read first must still be right when all has been read. */
async function expectAll(open: DirectoryStore, written: Written): Promise<void> {
  const seen: { stream: string; events: StoredEvent[] }[] = [];
  for (const count of [4_000, 7, 40, 40]) {
    await Promise.all(
      STREAMS.map(async (stream) => {
        seen.push({ stream, events: await expectPages(open, stream, written.get(stream)!, count) });
      }),
    );
  }
  for (const { stream, events } of seen) {
    for (const { number, data } of events) expect(Buffer.compare(data, written.get(stream)![number]!)).toBe(0);
  }
}

describe.each<[string, () => Storage]>([
  ['memory', () => new MemoryStorage()],
  ['files', () => new FilesystemStorage({ root: join(root, 'data') })],
  ['a storage that often has to wait', () => new FaultyStorage({ seed: 3, reads: 'async' })],
])('streams whose events lie far apart, from %s', (_, make) => {
  it('are read exactly, before and after a scavenge', async () => {
    const storage = make();
    // The least that the cache can have: it is full all the time.
    const options = { storage, chunkSizeBytes: 1_048_576, cacheBytes: 0 };
    let open = await openTestStore(options);
    const written = await fill(open, ROUNDS);
    await expectAll(open, written);
    await open.store.deleteStream('gone', ANY, 'hard');
    await open.scavenger.start({ threads: 1, threshold: 0 });
    while (open.scavenger.current() !== null) {
      await expectAll(open, written);
      // Reading that finds everything at hand gives nobody else a turn.
      await turn();
    }
    expect(open.scavenger.last()).toMatchObject({ result: 'Success' });
    await expectAll(open, written);
    await open.close();
    open = await openTestStore(options);
    await expectAll(open, written);
    await open.close();
  });
});

it('the damage of a record that is read alone is found', async () => {
  const storage = new FaultyStorage({ seed: 5, reads: 'async' });
  const options = { storage, chunkSizeBytes: 1_048_576, cacheBytes: 0 };
  const first = await openTestStore(options);
  await fill(first);
  const { events } = await first.store.readStream('b', { direction: 'forward', from: 0, count: 4_000 });
  await first.close();
  // A start reads the log backwards to its beginning: what lies far behind that is not in the cache any more.
  const open = await openTestStore(options);
  const position = events[110]!.preparePosition;
  storage.corrupt(
    `chunk-${String(Math.floor(position / 1_048_576)).padStart(6, '0')}.000000`,
    128 + (position % 1_048_576) + 7,
    0x40,
  );
  await expect(open.store.readStream('b', { direction: 'forward', from: 100, count: 40 })).rejects.toMatchObject({
    code: 'log_corrupt',
  });
  await open.close();
});
