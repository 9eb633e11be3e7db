import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ANY } from '../../../core/streams/api.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { newEvent } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { SumMeter, openFolder } from '../open-folder.ts';
import { RawWriter } from '../raw-writer.ts';

const CLIENTS = 64;
/** Mean number of requests that one sync makes durable. */
const GROUP_REQUESTS_MIN = 32;

/** Events a second while every client appends one event, awaits it, and goes on. */
async function appendWindow(store: EventStore, ms: number): Promise<number> {
  const begin = performance.now();
  let events = 0;
  const client = async (index: number): Promise<void> => {
    const stream = `bench-client-${String(index).padStart(2, '0')}`;
    for (let i = 0; performance.now() - begin < ms; i++) {
      await store.append(stream, ANY, [newEvent(i)]);
      events++;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)));
  return (events / (performance.now() - begin)) * 1000;
}

export const appendSingle: Figure = {
  name: 'append-single',
  how: `${CLIENTS} clients in the process of the store, each with its own stream, append one event of 256 bytes with any expected version, await it, and go on. The limit is a loop of one positional write of ${CLIENTS} records that are already encoded and one fdatasync, into a file filled with zeros before.`,
  async run(settings) {
    const raw = new RawWriter(
      join(settings.folder, 'append-single.raw'),
      settings.isSmoke ? 4_194_304 : 268_435_456,
      CLIENTS,
    );
    const meter = new SumMeter();
    const open = await openFolder(join(settings.folder, 'append-single'), { meter: meter });
    try {
      const limit = await raw.faster(settings.windowMs / 2);
      await appendWindow(open.store, settings.windowMs);
      meter.reset();
      const measured = await alternate(
        settings.windows,
        () => limit.run(settings.windowMs),
        () => appendWindow(open.store, settings.windowMs),
      );
      const group = meter.mean('eventstore_append_group_requests');
      return [
        row('durable append, one event, 64 clients', 'events/s', measured, { kind: 'at least', value: 0.5 }, [
          `mean group ${group.toFixed(1)} requests a sync (at least ${GROUP_REQUESTS_MIN} wanted: ${group >= GROUP_REQUESTS_MIN ? 'met' : 'missed'})`,
          limit.note,
        ]),
      ];
    } finally {
      raw.close();
      await open.close();
    }
  },
};
