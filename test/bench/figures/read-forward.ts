import { performance } from 'node:perf_hooks';
import type { AllPosition, EventStore } from '../../../core/streams/api.ts';
import { PAGE_EVENTS_MAX } from '../../../core/streams/api.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import { openFolder } from '../open-folder.ts';
import { RawScan, touch } from '../raw-scan.ts';
import { CONTIGUOUS_STREAM, INTERLEAVED_STREAM, sharedLog } from '../shared-log.ts';

/** Reads all pages of a stream; gives the count of its events. */
async function readStream(store: EventStore, stream: string): Promise<number> {
  let events = 0;
  for (let from = 0; ;) {
    const page = await store.readStream(stream, { direction: 'forward', from, count: PAGE_EVENTS_MAX });
    for (const event of page.events) touch(event);
    events += page.events.length;
    if (page.isEnd) return events;
    from = page.nextEventNumber;
  }
}

async function readAll(store: EventStore): Promise<number> {
  let events = 0;
  for (let from: AllPosition | 'start' = 'start'; ;) {
    const page = await store.readAll({ direction: 'forward', from, count: PAGE_EVENTS_MAX });
    for (const event of page.events) touch(event);
    events += page.events.length;
    if (page.isEnd) return events;
    from = page.next;
  }
}

/** Events a second of a whole pass, repeated until the window is full. */
async function rate(ms: number, expected: number, pass: () => number | Promise<number>): Promise<number> {
  const begin = performance.now();
  let events = 0;
  do {
    const seen = await pass();
    if (seen < expected) throw new Error(`A pass read ${seen} events where there are ${expected}.`);
    events += seen;
  } while (performance.now() - begin < ms);
  return (events / (performance.now() - begin)) * 1000;
}

async function compare(
  settings: Settings,
  title: string,
  expected: number,
  limit: () => number,
  ours: () => Promise<number>,
): Promise<Row> {
  const ms = settings.windowMs;
  await rate(ms, expected, limit);
  await rate(ms, expected, ours);
  return row(
    title,
    'events/s',
    await alternate(
      settings.windows,
      () => rate(ms, expected, limit),
      () => rate(ms, expected, ours),
    ),
    { kind: 'at least', value: 0.75 },
  );
}

export const readForward: Figure = {
  name: 'read-forward',
  how: `A log of a million events: 100 streams whose events alternate, and in its middle one of 200 000 events that lie behind one another. Pages of ${PAGE_EVENTS_MAX} events are read in the process of the store, one after another, and every field of every event is touched. The limit reads the same ranges in blocks of 1 MiB with calls that block, builds the same plain event (position, number, stream, type and id as strings, data as a view) and touches every field; for a stream it is told the places of its records. Both find the files in the system's page cache.`,
  async run(settings) {
    const log = await sharedLog(settings);
    const open = await openFolder(log.folder);
    const scan = new RawScan(log.folder);
    try {
      const places = scan.positionsOf(CONTIGUOUS_STREAM);
      const scattered = scan.positionsOf(INTERLEAVED_STREAM);
      // The contiguous stream is one range of the log: the limit walks it like a log of its own.
      const contiguousEnd = scan.after(places.at(-1)!);
      const contiguous = (): number => scan.range(places[0]!, contiguousEnd);
      return [
        await compare(settings, 'read a stream forward, contiguous', log.contiguousEvents, contiguous, () =>
          readStream(open.store, CONTIGUOUS_STREAM),
        ),
        await compare(
          settings,
          'read a stream forward, one of 100 that alternate',
          log.interleavedEvents,
          () => scan.places(scattered),
          () => readStream(open.store, INTERLEAVED_STREAM),
        ),
        await compare(
          settings,
          'read $all forward',
          log.events,
          () => scan.range(0, scan.end),
          () => readAll(open.store),
        ),
      ];
    } finally {
      scan.close();
      await open.close();
    }
  },
};
