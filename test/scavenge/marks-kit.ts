import { encodeText } from '../../core/base/text.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { type EventStore, type NewEvent, type StoredEvent, type SubscriptionMessage } from '../../core/streams/api.ts';
import { readWholeAll, readWholeStream } from '../support/oracle.ts';

/** What every way of reading shows of events that may be redacted, and a search through the bytes of files. */

/** What is to be redacted has this in its data and its metadata, and nothing else has it. */
export const MARKER = 'M4RK3R-of-32-bytes-222222222222!';
const LINK_TYPE = '$>';

/** An event with the text in its data and its metadata, and members that stay. */
export function paid(id: string, text: string): NewEvent {
  return {
    id,
    type: 'paid',
    isJson: true,
    data: encodeText(`{"card":"${text}"}`),
    metadata: encodeText(`{"who":"${text}", "$correlationId" : "c-${id}","$causationId":"x"}`),
  };
}

export function linkTo(id: string, stream: string, number: number): NewEvent {
  return { id, type: LINK_TYPE, isJson: false, data: encodeText(`${number}@${stream}`), metadata: new Uint8Array(0) };
}

/** What a reader sees of an event. */
export function contentOf({
  isRedacted,
  data,
  metadata,
}: Pick<StoredEvent, 'isRedacted' | 'data' | 'metadata'>): string {
  return `${isRedacted ? 'redacted' : 'whole'} ${Buffer.from(data).toString('latin1')} ${Buffer.from(metadata).toString('latin1')}`;
}

/** By name of the way: of each event, as `number@stream`, what it shows. */
export type Ways = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Reads all events of the streams, and what the stream of links points to, in every way that the store has. */
export async function readEveryWay(store: EventStore, streams: readonly string[], links: string): Promise<Ways> {
  const ways = new Map<string, Map<string, string>>();
  const note = (way: string, events: readonly StoredEvent[]): void => {
    const seen = ways.get(way) ?? new Map<string, string>();
    ways.set(way, seen);
    for (const event of events) {
      const { stream, number } = event;
      if (stream.startsWith('$')) continue;
      const key = `${number}@${stream}`;
      const content = contentOf(event);
      if ((seen.get(key) ?? content) !== content) throw new Error(`${way} shows ${key} as ${content}, too.`);
      seen.set(key, content);
    }
  };
  for (const stream of streams) {
    for (const direction of ['forward', 'backward'] as const) {
      const read = await readWholeStream(store, stream, direction, 3);
      note(direction, 'error' in read ? [] : read);
      if ('error' in read || direction === 'backward') continue;
      for (const { number } of read) note('single', [await store.readEvent(stream, number)]);
      note('subscription', await untilCaughtUp(store.subscribeToStream(stream, { after: -1 })));
    }
  }
  for (const direction of ['forward', 'backward'] as const)
    note(`all ${direction}`, await readWholeAll(store, direction, 7));
  const { events } = await store.readAll({ direction: 'forward', from: 'start', count: 4_000, resolveLinks: true });
  note('all with links', events);
  note('all by subscription', await untilCaughtUp(store.subscribeToAll({ after: 'start' })));
  const linked = await store.readStream(links, { direction: 'forward', from: 0, count: 1_000, resolveLinks: true });
  note('links', linked.events);
  for (const { link } of linked.events)
    if (link !== null) note('links one by one', [await store.readEvent(links, link.number, true)]);
  note('links by subscription', await untilCaughtUp(store.subscribeToStream(links, { after: -1, resolveLinks: true })));
  return ways;
}

async function untilCaughtUp(messages: AsyncIterable<SubscriptionMessage<unknown>>): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const message of messages) {
    if (message.kind === 'event') events.push(message.event);
    if (message.kind === 'caught-up') break;
  }
  return events;
}

/** Names of the files that hold the text. Shares nothing with what is searched. */
export async function filesWith(
  storage: Storage,
  text: string,
  folders = ['', 'index', 'index/scavenging'],
): Promise<string[]> {
  const found: string[] = [];
  for (const folder of folders) {
    for (const name of await storage.list(folder)) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const file = await storage.open(path, 'read');
      const bytes = Buffer.from(await file.read(0, file.size));
      await file.close();
      if (bytes.includes(text)) found.push(path);
    }
  }
  return found;
}
