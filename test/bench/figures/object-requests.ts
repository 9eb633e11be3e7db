import { MemoryObjects } from '../../support/memory-objects.ts';
import type { ObjectCounts } from '../../support/counting-objects.ts';
import { ANY } from '../../../core/streams/api.ts';
import { row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';
import { events, filledStore, openCounted } from '../object-stores.ts';

const TAIL_COMMITS = 200;
const EVENT_BYTES = 100;
const REQUESTS_MAX = 12;
const BYTES_MAX = 5 * 1_048_576;

export const objectRequests: Figure = {
  name: 'object-requests',
  how: `Requests to the object storage, counted at its port over a store in memory with ${(1_000_000).toLocaleString('en')} events of ${EVENT_BYTES} bytes in 1 000 streams, in files with one index table, and ${TAIL_COMMITS} commits in the tail. A LIST counts as one. A cold start opens the store and reads one event from the middle of the log.`,
  async run(settings) {
    const objects = new MemoryObjects();
    await filledStore(objects, settings.logEvents, EVENT_BYTES);
    const writer = await openCounted(objects);
    for (let i = 0; i < TAIL_COMMITS; i++) await writer.store.append(`tail-${i % 10}`, ANY, events(1, EVENT_BYTES));
    const cold = await openCounted(objects);
    const streams = Math.min(1_000, settings.logEvents / 500);
    await cold.store.readEvent(`stream-${Math.floor(streams / 2)}`, 250);
    const start = cold.counting.counts();
    const known = await countOf(writer, () => writer.store.append('tail-1', ANY, events(1, EVENT_BYTES)));
    const read = await countOf(writer, () => writer.store.readEvent('tail-1', 'last'));
    const warm = await openCounted(objects);
    await warm.store.readEvent('stream-1', 0);
    await warm.store.append('another', ANY, events(1, EVENT_BYTES));
    const last = settings.logEvents / streams - 1;
    const unknown = await countOf(warm, () => warm.store.append(`stream-${streams - 1}`, last, events(1, EVENT_BYTES)));
    const any = await countOf(warm, () => warm.store.append(`stream-${streams - 2}`, ANY, events(1, EVENT_BYTES)));
    const fresh = await countOf(warm, () => warm.store.append('never-seen', -1, events(1, EVENT_BYTES)));
    for (const instance of [writer, cold, warm]) await instance.close();
    return [
      exactly('append, warm, stream known: requests', known, 1, [
        `${known.puts} PUT, ${known.gets} GET, ${known.lists} LIST`,
      ]),
      exactly(
        'append, stream unknown to the instance: GET',
        { ...unknown, gets: Math.max(unknown.gets, fresh.gets, any.gets), puts: 0 },
        3,
        [
          `a stream that exists: ${unknown.puts} PUT, ${unknown.gets} GET, ${unknown.lists} LIST; one that does not: ${fresh.puts} PUT, ${fresh.gets} GET, ${fresh.lists} LIST; without an expected version, where the ids of the last 1 000 events are looked at: ${any.puts} PUT, ${any.gets} GET`,
        ],
      ),
      exactly('reading one recent event, warm: requests', read, 1, [
        `${read.puts} PUT, ${read.gets} GET, ${read.lists} LIST`,
      ]),
      exactly('cold start and one read: requests', start, REQUESTS_MAX, [`${start.gets} GET, ${start.lists} LIST`]),
      row(
        'cold start and one read: bytes',
        'bytes',
        { limit: [BYTES_MAX], ours: [start.bytesOut] },
        { kind: 'below', value: 1 },
      ),
    ];
  },
};

async function countOf(
  { counting }: { readonly counting: { reset(): void; counts(): ObjectCounts } },
  work: () => Promise<unknown>,
): Promise<ObjectCounts> {
  counting.reset();
  await work();
  return counting.counts();
}

function exactly(
  title: string,
  { puts, gets, lists, heads, parts, multiparts, deletes }: ObjectCounts,
  limit: number,
  notes: readonly string[],
): Row {
  return row(
    title,
    'requests',
    { limit: [limit], ours: [puts + gets + lists + heads + parts + multiparts + deletes] },
    { kind: 'at most', value: 1 },
    notes,
  );
}
