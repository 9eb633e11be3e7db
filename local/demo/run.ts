import { isDeepStrictEqual } from 'node:util';
import type { ReadEvent, StreamClient, StreamFate } from './client.ts';
import type { DemoEvent, DemoStream } from './payloads.ts';

/** Events and characters of data posted at once: a batch fits even into the smallest chunks. */
const BATCH_EVENTS = 50;
const BATCH_LENGTH = 65_536;
/** What the demo does to streams at its end: one keeps only its newest events, two are deleted. */
const FATES: Readonly<Record<string, StreamFate>> = {
  'github-Codertocat-Hello-World': 'limited',
  'github-Octocoders-Hello-World': 'soft',
  'github-lineville-elastic-machines-testing': 'hard',
};
/** Events that the limited stream keeps. */
export const KEPT_EVENTS = 50;
/** Of the metadata that limits it: the same in every run, so that a repeat is recognised. */
const LIMIT_ID = '5d0e2b7a-9c1f-4e3b-8a6d-7f2c4b1e9d05';

export interface StreamReport {
  readonly stream: string;
  /** Visible events before this run. */
  readonly before: number;
  readonly sent: number;
  /** Visible events after sending. */
  readonly written: number;
  /** Everything sent came back, in order, with the same id, type and content. */
  readonly isSame: boolean;
  /** What was done to the stream in the end, if anything, and whether by an earlier run: then nothing was sent. */
  readonly fate: StreamFate | null;
  readonly wasBefore: boolean;
  /** Visible events at the end. */
  readonly after: number;
}

export interface DemoReport {
  readonly streams: readonly StreamReport[];
  readonly isSame: boolean;
  readonly sendSeconds: number;
  readonly readSeconds: number;
}

export interface DemoOptions {
  readonly nowMs: () => number;
  readonly onStream: (stream: string, done: number, total: number) => void;
}

/** Sends all, reads all back and compares, limits one stream and deletes two, and counts again. */
export async function runDemo(client: StreamClient, streams: readonly DemoStream[], options: DemoOptions): Promise<DemoReport> {
  const reports: StreamReport[] = [];
  const spent = { sendMs: 0, readMs: 0 };
  for (const [at, each] of streams.entries()) {
    options.onStream(each.stream, at, streams.length);
    reports.push(await playStream(client, each, options.nowMs, spent));
  }
  return { streams: reports, isSame: reports.every((report) => report.isSame), sendSeconds: spent.sendMs / 1000, readSeconds: spent.readMs / 1000 };
}

async function playStream(client: StreamClient, { stream, events }: DemoStream, nowMs: () => number, spent: { sendMs: number; readMs: number }): Promise<StreamReport> {
  const earlier = await client.fateOf(stream);
  const before = await count(client, stream);
  if (earlier !== null) return { stream, before, sent: 0, written: before, isSame: true, fate: earlier, wasBefore: true, after: before };
  const startMs = nowMs();
  const first = await send(client, stream, events);
  const sentMs = nowMs();
  const read = await client.read(stream, first);
  spent.sendMs += sentMs - startMs;
  spent.readMs += nowMs() - sentMs;
  const isSame = read !== null && areSame(events, read);
  const written = await count(client, stream);
  const fate = FATES[stream] ?? null;
  if (fate === 'limited') await client.limit(stream, LIMIT_ID, KEPT_EVENTS);
  else if (fate !== null) await client.delete(stream, fate);
  return { stream, before, sent: events.length, written, isSame, fate, wasBefore: false, after: fate === null ? written : await count(client, stream) };
}

async function count(client: StreamClient, stream: string): Promise<number> {
  return (await client.read(stream, 0))?.length ?? 0;
}

/**
 * Sends in batches and gives the number of the first event. Each batch names the version that it follows, so that a
 * node recognises a repeat however long ago the first run was.
 */
async function send(client: StreamClient, stream: string, events: readonly DemoEvent[]): Promise<number> {
  let first: number | null = null;
  let expected = -1;
  for (const batch of batchesOf(events)) {
    const number = await client.append(stream, expected, batch);
    first ??= number;
    expected = number + batch.length - 1;
  }
  return first ?? 0;
}

function* batchesOf(events: readonly DemoEvent[]): Generator<DemoEvent[]> {
  let batch: DemoEvent[] = [];
  let length = 0;
  for (const event of events) {
    const more = JSON.stringify(event.data).length;
    if (batch.length > 0 && (batch.length === BATCH_EVENTS || length + more > BATCH_LENGTH)) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(event);
    length += more;
  }
  if (batch.length > 0) yield batch;
}

function areSame(sent: readonly DemoEvent[], read: readonly ReadEvent[]): boolean {
  return read.length >= sent.length && sent.every(({ eventId, eventType, data }, i) => {
    const found = read[i]!;
    return found.eventId === eventId && found.eventType === eventType && isDeepStrictEqual(found.data, data);
  });
}
