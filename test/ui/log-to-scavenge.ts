import { expect } from 'vitest';
import type { Ui } from './kit.ts';

/** A log of small chunks in which there is something to remove, written over HTTP. */

/** The smallest that a node takes. */
export const SMALL_CHUNKS = ['--chunk-size', '131072'] as const;

/** Limited to its last event: all but that one goes. */
export const GOING = 'going';
/** Nothing of it goes. */
export const STAYING = 'staying';

const EVENT_BYTES = 4_000;
const EVENTS_AT_ONCE = 25;
const EVENTS_JSON = 'application/vnd.eventstore.events+json';

/** Appends events to a stream, as many as fill about so many chunks of 128 KiB. */
export async function fillChunks(ui: Ui, stream: string, chunks: number): Promise<void> {
  const batches = Math.ceil((chunks * 131_072) / (EVENT_BYTES * EVENTS_AT_ONCE));
  for (let batch = 0; batch < batches; batch++) {
    const events = Array.from({ length: EVENTS_AT_ONCE }, () => ({
      eventId: crypto.randomUUID(),
      eventType: 'filled',
      data: { text: 'x'.repeat(EVENT_BYTES - 200) },
    }));
    const reply = await ui.ask('POST', `/streams/${encodeURIComponent(stream)}`, events, {
      'content-type': EVENTS_JSON,
    });
    expect(reply.status, await reply.text()).toBe(201);
  }
}

export async function limit(ui: Ui, stream: string, metadata: Readonly<Record<string, unknown>>): Promise<void> {
  const reply = await ui.ask('POST', `/streams/${encodeURIComponent(stream)}/metadata`, metadata, {
    'ES-EventType': '$metadata',
    'ES-EventId': crypto.randomUUID(),
  });
  expect(reply.status, await reply.text()).toBe(201);
}

/** Chunks of which nearly all can go, then some of which nothing can. */
export async function fillLog(ui: Ui, going: number, staying: number): Promise<void> {
  await limit(ui, GOING, { $maxCount: 1 });
  await fillChunks(ui, GOING, going);
  await fillChunks(ui, STAYING, staying);
}

export async function json<T>(ui: Ui, path: string): Promise<T> {
  const reply = await ui.ask('GET', path);
  return (await reply.json()) as T;
}

/** What a page or a node says once it has come to it. */
export function soon<T>(look: () => T | Promise<T>) {
  return expect.poll(look);
}

/** The run that is under way, or nothing. */
export async function current(ui: Ui): Promise<string> {
  return (await json<{ scavengeId: string }>(ui, '/admin/scavenge/current')).scavengeId;
}

/** Nothing runs on the node any more. */
export async function idle(ui: Ui): Promise<void> {
  await soon(() => current(ui)).toBe('');
}
