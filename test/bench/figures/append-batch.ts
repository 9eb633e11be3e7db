import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ANY } from '../../../core/streams/api.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { newEvents } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { openFolder } from '../open-folder.ts';
import { RawWriter } from '../raw-writer.ts';

const BATCH = 100;

async function appendWindow(store: EventStore, ms: number): Promise<number> {
  const begin = performance.now();
  let batches = 0;
  for (; performance.now() - begin < ms; batches++) await store.append('bench-batches', ANY, newEvents(BATCH));
  return ((batches * BATCH) / (performance.now() - begin)) * 1000;
}

export const appendBatch: Figure = {
  name: 'append-batch',
  how: `One client in the process of the store appends batches of ${BATCH} events of 256 bytes to one stream, one batch after another. The limit is a loop of one positional write of ${BATCH} records that are already encoded and one fdatasync, into a file filled with zeros before.`,
  async run(settings) {
    const raw = new RawWriter(
      join(settings.folder, 'append-batch.raw'),
      settings.isSmoke ? 4_194_304 : 268_435_456,
      BATCH,
    );
    const open = await openFolder(join(settings.folder, 'append-batch'));
    try {
      const limit = await raw.faster(settings.windowMs / 2);
      await appendWindow(open.store, settings.windowMs);
      const measured = await alternate(
        settings.windows,
        () => limit.run(settings.windowMs),
        () => appendWindow(open.store, settings.windowMs),
      );
      return [
        row('durable append, batches of 100, one client', 'events/s', measured, { kind: 'at least', value: 0.6 }, [
          limit.note,
        ]),
      ];
    } finally {
      raw.close();
      await open.close();
    }
  },
};
