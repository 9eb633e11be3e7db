import { hrtime } from 'node:process';
import { isSkuaError } from '../../../core/base/errors.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { NewEvent } from '../../../core/streams/api.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import { Random } from '../../support/random.ts';
import type { Operation, Outcome } from './history.ts';

/**
 * One writer among many, a process of its own: it appends and reads, with and without expected versions, until its
 * input ends, and prints a line before and after each operation, so that what it was about when it was killed is known.
 */
const [place, seed, streams] = JSON.parse(process.argv[2]!) as [Parameters<typeof openObjects>[0], number, number];
const random = new Random(seed);
const now = (): number => Number(hrtime.bigint() / 1_000n) / 1_000;
const NO_BYTES = new Uint8Array(0);
/** Refusals after which it is not known whether the events are there. */
const UNKNOWN = new Set([
  'commit_outcome_unknown',
  'outcome_unknown',
  'storage_unreachable',
  'storage_throttled',
  'io_error',
]);

const world = {
  objects: await openObjects(place),
  clock: systemClock,
  ids: systemIds,
  digests: nodeDigests,
  log: silentLog,
  meter: silentMeter,
};
const instance = await openObjectStore(world, { chunkSizeBytes: 65_536 });
const known = new Map<string, number>();
let count = 0;

function say(operation: Operation): void {
  process.stdout.write(`${JSON.stringify(operation)}\n`);
}

function newEvents(): NewEvent[] {
  return Array.from({ length: 1 + random.int(0, 3 - 1) }, () => ({
    id: `${String(seed).padStart(8, '0')}-0000-4000-8000-${String(count++).padStart(12, '0')}`,
    type: 'note',
    isJson: false,
    data: new Uint8Array(random.int(0, 400 - 1)),
    metadata: NO_BYTES,
  }));
}

async function act(): Promise<void> {
  const stream = `stream-${random.int(0, streams - 1)}`;
  const isRead = random.int(0, 3 - 1) === 0;
  const asked = isRead ? ('read' as const) : random.int(0, 2 - 1) === 0 ? -2 : (known.get(stream) ?? -1);
  const events = isRead ? [] : newEvents();
  const operation = { writer: seed, stream, ids: events.map(({ id }) => id), asked, startMs: now() };
  say({ ...operation, endMs: Number.MAX_VALUE, outcome: { kind: 'unknown' } });
  const outcome = await (asked === 'read' ? read(stream) : append(stream, asked, events));
  say({ ...operation, endMs: now(), outcome });
}

async function read(stream: string): Promise<Outcome> {
  const ids: string[] = [];
  try {
    const { lastEventNumber } = await instance.store.streamInfo(stream);
    for (let from = 0; from <= lastEventNumber;) {
      const page = await instance.store.readStream(stream, { direction: 'forward', from, count: 4_096 });
      for (const event of page.events) if (event.number <= lastEventNumber) ids.push(event.id);
      from = page.nextEventNumber;
    }
    known.set(stream, lastEventNumber);
    return { kind: 'read', ids };
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found')) return { kind: 'read', ids: [] };
    if (isSkuaError(error)) return { kind: 'refused', code: error.code };
    throw error;
  }
}

async function append(stream: string, expected: number, events: readonly NewEvent[]): Promise<Outcome> {
  try {
    const { firstEventNumber, lastEventNumber, isRepeat } = await instance.store.append(stream, expected, events);
    known.set(stream, lastEventNumber);
    return { kind: 'appended', first: firstEventNumber, last: lastEventNumber, isRepeat };
  } catch (error) {
    if (!isSkuaError(error)) throw error;
    if (error.code === 'wrong_expected_version') {
      known.set(stream, Number(error.data['actual']));
      return { kind: 'conflict', actual: Number(error.data['actual']) };
    }
    return UNKNOWN.has(error.code) ? { kind: 'unknown' } : { kind: 'refused', code: error.code };
  }
}

process.stdout.write('"ready"\n');
let isOver = false;
process.stdin
  .on('end', () => {
    isOver = true;
  })
  .resume();
while (!isOver) {
  await act();
  await systemClock.sleep(random.int(0, 100 - 1));
}
await instance.close();
await world.objects.close();
