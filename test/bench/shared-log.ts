import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ANY } from '../../core/streams/api.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { newEvent, newEvents } from './events.ts';
import type { Settings } from './figure.ts';
import { openFolder } from './open-folder.ts';

/** A stream of one event, for the first read of a started node. */
export const PROBE_STREAM = 'probe';
/** A stream whose events lie behind one another in the log: a fifth of all. */
export const CONTIGUOUS_STREAM = 'contiguous';
/** Streams whose events alternate: four fifths of all. */
const INTERLEAVED_STREAMS = 100;
export const INTERLEAVED_STREAM = 'interleaved-042';
const BATCH = 100;

export interface SharedLog {
  readonly folder: string;
  readonly events: number;
  readonly contiguousEvents: number;
  readonly interleavedEvents: number;
}

/** The log that is read, rebuilt and started with. Built by the store itself, once a run, and closed. */
export async function sharedLog(settings: Settings): Promise<SharedLog> {
  const folder = join(settings.folder, 'log');
  const contiguousEvents = Math.floor(settings.logEvents / 5 / BATCH) * BATCH;
  const interleavedEvents = Math.floor((settings.logEvents - contiguousEvents) / INTERLEAVED_STREAMS);
  const shape = {
    folder,
    events: contiguousEvents + interleavedEvents * INTERLEAVED_STREAMS,
    contiguousEvents,
    interleavedEvents,
  };
  if (existsSync(join(settings.folder, 'log.complete'))) return shape;
  settings.say(`  building a log of ${shape.events} events ...`);
  await rm(folder, { recursive: true, force: true });
  const open = await openFolder(folder);
  const { store } = open;
  await store.append(PROBE_STREAM, ANY, [newEvent(0)]);
  const interleaved = Array.from(
    { length: INTERLEAVED_STREAMS },
    (_, i) => `interleaved-${String(i).padStart(3, '0')}`,
  );
  await Promise.all(interleaved.map((stream) => fill(store, stream, Math.floor(interleavedEvents / 2), 1)));
  await fill(store, CONTIGUOUS_STREAM, contiguousEvents / BATCH, BATCH);
  await Promise.all(
    interleaved.map((stream) => fill(store, stream, interleavedEvents - Math.floor(interleavedEvents / 2), 1)),
  );
  await open.close();
  await writeFile(join(settings.folder, 'log.complete'), '');
  return shape;
}

async function fill(store: EventStore, stream: string, batches: number, batch: number): Promise<void> {
  for (let i = 0; i < batches; i++) await store.append(stream, ANY, batch === 1 ? [newEvent(i)] : newEvents(batch));
}
