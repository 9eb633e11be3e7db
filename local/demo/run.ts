import { isDeepStrictEqual } from 'node:util';
import type { NodeClient, ReadEvent } from './client.ts';
import type { DemoEvent, DemoStream } from './payloads.ts';

/** Events posted at once. */
const BATCH_EVENTS = 50;
/** The streams that the demo deletes at its end. */
const DELETED: Readonly<Record<string, 'soft' | 'hard'>> = {
  'github-Octocoders-Hello-World': 'soft',
  'github-lineville-elastic-machines-testing': 'hard',
};

export interface StreamReport {
  readonly stream: string;
  /** Visible events before this run. */
  readonly before: number;
  readonly sent: number;
  /** Visible events after sending. */
  readonly written: number;
  /** Everything sent came back, in order, with the same id, type and content. */
  readonly isSame: boolean;
  readonly deleted: 'soft' | 'hard' | null;
  /** Visible events at the end. */
  readonly after: number;
  /** The stream had been deleted for ever by an earlier run, and took nothing. */
  readonly isGone: boolean;
}

export interface DemoReport {
  readonly streams: readonly StreamReport[];
  readonly isSame: boolean;
  readonly sendSeconds: number;
  readonly readSeconds: number;
}

export interface DemoTimes {
  readonly nowMs: () => number;
  readonly onStream: (stream: string, done: number, total: number) => void;
}

/** Sends all, reads all back and compares, deletes two streams, and counts again. */
export async function runDemo(client: NodeClient, streams: readonly DemoStream[], times: DemoTimes): Promise<DemoReport> {
  const reports: StreamReport[] = [];
  let sendMs = 0;
  let readMs = 0;
  for (const [at, { stream, events }] of streams.entries()) {
    times.onStream(stream, at, streams.length);
    const before = (await client.read(stream, 0))?.length ?? 0;
    const t0 = times.nowMs();
    const first = await send(client, stream, events);
    const t1 = times.nowMs();
    const read = first === null ? null : await client.read(stream, first);
    const t2 = times.nowMs();
    sendMs += t1 - t0;
    readMs += t2 - t1;
    const written = (await client.read(stream, 0))?.length ?? 0;
    const deleted = DELETED[stream] ?? null;
    const isSame = first === null ? deleted === 'hard' : read !== null && areSame(events, read);
    if (deleted !== null && first !== null) await client.delete(stream, deleted);
    const after = deleted === null ? written : (await client.read(stream, 0))?.length ?? 0;
    reports.push({ stream, before, sent: events.length, written, isSame, deleted, after, isGone: first === null });
  }
  return { streams: reports, isSame: reports.every((report) => report.isSame), sendSeconds: sendMs / 1000, readSeconds: readMs / 1000 };
}

/**
 * Sends in batches and gives the number of the first event, or null for a stream deleted for ever. Each batch names
 * the version that it follows, so that a node recognises a repeat however long ago the first run was.
 */
async function send(client: NodeClient, stream: string, events: readonly DemoEvent[]): Promise<number | null> {
  let first: number | null = null;
  let expected = -1;
  for (let at = 0; at < events.length; at += BATCH_EVENTS) {
    const batch = events.slice(at, at + BATCH_EVENTS);
    const number = await client.append(stream, expected, batch);
    if (number === null) return null;
    first ??= number;
    expected = number + batch.length - 1;
  }
  return first;
}

function areSame(sent: readonly DemoEvent[], read: readonly ReadEvent[]): boolean {
  return read.length >= sent.length && sent.every(({ eventId, eventType, data }, i) => {
    const found = read[i]!;
    return found.eventId === eventId && found.eventType === eventType && isDeepStrictEqual(found.data, data);
  });
}
