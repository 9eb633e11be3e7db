import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryLease } from '../../../core/base/memory-use.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { StoredEvent } from '../../../core/streams/api.ts';
import type { DirectoryStore } from '../../../core/store/store.ts';
import { openFolder } from '../../bench/open-folder.ts';
import { grpcHarness } from '../../grpc/harness.ts';
import { Random } from '../../support/random.ts';

/**
 * Readers whose pages lie in memory that is read into again, beside others who keep what they got, over a store whose
 * cache holds half of it.
 */

const STREAMS = ['apples', 'pears', 'plums', 'cherries'];
const EVENTS = 1_500;
const CACHE_BYTES = 8_388_608;

let folder: string;
let open: DirectoryStore;

/** Data that say of which event they are, of a length that differs. */
function dataOf(stream: string, number: number): string {
  const random = new Random(1_000 * STREAMS.indexOf(stream) + number);
  const mark = `${stream}/${number}/`;
  return `"${mark.repeat(random.int(150, 400))}"`;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-leased-'));
  open = await openFolder(folder, { cacheBytes: CACHE_BYTES });
  const ids = new Random(7);
  const uuid = (): string => {
    const hex = Buffer.from(ids.bytes(16)).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };
  for (let from = 0; from < EVENTS; from += 50)
    for (const stream of STREAMS)
      await open.store.append(
        stream,
        ANY,
        Array.from({ length: 50 }, (_, i) => ({
          id: uuid(),
          type: 'picked',
          isJson: true,
          data: Buffer.from(dataOf(stream, from + i)),
          metadata: new Uint8Array(0),
        })),
      );
});

afterAll(async () => {
  await open.close();
  await rm(folder, { recursive: true, force: true });
});

const isRight = (stream: string, number: number, data: Uint8Array | string): boolean =>
  Buffer.from(data).toString() === dataOf(stream, number);

/** All of the log goes through the cache, and nothing of it is kept. */
async function passAll(): Promise<void> {
  for (const stream of [...STREAMS, ...STREAMS])
    for (let from = 0; from < EVENTS; from += 250) {
      const use = new MemoryLease();
      await open.store.readStream(stream, { direction: 'forward', from, count: 250, use });
      use.release();
    }
}

describe('pages in memory that is read into again', () => {
  it.each(['a stream', '$all'])('leave single events to who reads them, behind a page of %s', async (of) => {
    const use = new MemoryLease();
    const page = { direction: 'forward', count: 40, use } as const;
    const { events } = await (of === '$all'
      ? open.store.readAll({ ...page, from: 'start' })
      : open.store.readStream('pears', { ...page, from: 300 }));
    const { stream, number } = events[20]!;
    const event = await open.store.readEvent(stream, number);
    use.release();
    await passAll();
    expect(isRight(stream, number, event.data)).toBe(true);
  });

  it.each([1, 2])('hold what was asked for, over gRPC, as lines and in the store, seed %i', async (seed) => {
    const random = new Random(seed);
    const { app, open: begin } = grpcHarness({ store: open.store });
    const seen = { grpc: 0, lines: 0, kept: 0 };
    const wrong: string[] = [];
    const look = (kind: keyof typeof seen, stream: string, number: number, data: Uint8Array | string): void => {
      if (!STREAMS.includes(stream)) return;
      seen[kind]++;
      if (!isRight(stream, number, data)) wrong.push(`${kind}: ${number}@${stream}`);
    };

    const overGrpc = async (): Promise<void> => {
      const isForward = random.chance(0.8);
      const stream = random.chance(0.5) ? random.pick(STREAMS) : null;
      const from = random.int(0, EVENTS - 1);
      const call = begin('/event_store.client.streams.Streams/Read', [
        {
          options: {
            ...(stream === null
              ? { all: isForward ? { start: {} } : { end: {} } }
              : { stream: { stream_identifier: { stream_name: Buffer.from(stream) }, revision: from } }),
            read_direction: isForward ? 'Forwards' : 'Backwards',
            count: random.int(1, 3_000),
            no_filter: {},
            uuid_option: { string: {} },
          },
        },
      ]);
      // A client may leave.
      if (random.chance(0.2)) void call.until(random.int(1, 200)).then(() => call.cancel());
      await call.ended;
      for (const { event } of call.received) {
        if (event === undefined) continue;
        const { stream_identifier: name, stream_revision: revision, data } = event.event;
        look(
          'grpc',
          Buffer.from(name.stream_name, 'base64').toString(),
          Number(revision ?? 0),
          Buffer.from(data, 'base64'),
        );
      }
    };

    const asLines = async (): Promise<void> => {
      const stream = random.chance(0.5) ? random.pick(STREAMS) : '%24all';
      const from = stream === '%24all' ? '' : `from=${random.int(0, EVENTS - 1)}&`;
      const reply = await app(
        new Request(`http://node.example:2113/streams/${stream}?${from}limit=${random.int(1, 3_000)}`, {
          headers: { accept: 'application/x-ndjson' },
        }),
      );
      expect(reply.status).toBe(200);
      for (const line of (await reply.text()).trim().split('\n')) {
        const { streamId, eventNumber, data } = JSON.parse(line);
        look('lines', streamId, eventNumber, data);
      }
    };

    /** Somebody who says nothing of leases, and looks much later. */
    const kept: StoredEvent[] = [];
    const keeping = async (): Promise<void> => {
      const stream = random.pick(STREAMS);
      const { events } = await open.store.readStream(stream, {
        direction: random.pick(['forward', 'backward']),
        from: random.int(0, EVENTS - 1),
        count: random.int(1, 300),
      });
      kept.push(...events, await open.store.readEvent(stream, random.int(0, EVENTS - 1)));
    };

    await Promise.all(
      Array.from({ length: 6 }, async () => {
        for (let i = 0; i < 5; i++) await random.pick([overGrpc, overGrpc, asLines, asLines, keeping])();
      }),
    );
    for (const { stream, number, data } of kept) look('kept', stream, number, data);
    expect(wrong).toEqual([]);
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(300);
  });
});
