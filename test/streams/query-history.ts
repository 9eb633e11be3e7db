import { expect } from 'vitest';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { encodeText } from '../../core/base/text.ts';
import {
  type AllFilter,
  type AllPosition,
  ANY,
  type EventAccess,
  type EventQuery,
  type StoredEvent,
  type StreamInfo,
} from '../../core/streams/api.ts';
import { redact } from '../../core/streams/redact/redact.ts';
import type { EventStoreOptions } from '../../core/streams/store-context.ts';
import { MemoryAttributes } from '../support/memory-attributes.ts';
import { isAskedFor } from '../support/model-rules.ts';
import type { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { BEGIN, ByHand, DATA, END } from './by-hand.ts';
import { Misses } from './doubles.ts';
import { event, setMetadata, setUp, type Setup } from './setup.ts';

/** Histories of all that decides what queries show, and what a look at everything shows of them. */

const STREAMS = ['a-1', 'a-2', 'a', 'ab-1', 'b-1', 'b-2', 'b-3', '-1', '$s-1', 'å-1'];
export const TYPES = ['t', 'u', 'tt', '$v'];
export const TEXTS = ['x', 'y', 'ü'];
const METADATA = ['', 'none', '[]', '{}', '{"$tags":"x"}', '{"$correlationId":7,"$tags":[1,"","x"]}'];

function metadataOf(random: Random): string {
  if (random.chance(0.2)) return random.pick(METADATA);
  const tags = TEXTS.filter(() => random.chance(0.5));
  return JSON.stringify({
    mine: 1,
    ...(random.chance(0.7) && { $correlationId: random.pick(TEXTS) }),
    ...(random.chance(0.7) && { $tags: tags }),
  });
}

export interface History extends Setup {
  readonly attributes: MemoryAttributes;
  /** All that an index that has never forgotten anything would know. */
  readonly written: StoredEvent[];
}

/** A history of everything that decides what a query shows. */
export async function history(random: Random, options: Partial<EventStoreOptions>, misses: number): Promise<History> {
  const chances = new Misses(random.int(1, 1_000), misses);
  const attributes = new MemoryAttributes(() => chances.next());
  const s = setUp({ options, attributes, misses });
  const { store, log, clock } = s;
  const hand = new ByHand(log);
  const ids = new SeededIds(9);
  const written: StoredEvent[] = [];
  for (let i = 0; i < 60; i++) {
    const stream = random.pick(STREAMS);
    const choice = random.int(1, 20);
    // oxlint-disable-next-line no-await-in-loop
    await clock.advance(random.int(0, 2_000));
    // oxlint-disable-next-line no-await-in-loop
    await step(stream, choice);
  }
  for (const each of await everything(s)) if (!written.some(({ id }) => id === each.id)) written.push(each);
  return { ...s, attributes, written };

  async function step(stream: string, choice: number): Promise<void> {
    if (choice <= 12) {
      const several = Array.from({ length: random.int(1, 4) }, () =>
        event('d'.repeat(random.int(0, 40)), {
          type: random.pick(TYPES),
          metadata: encodeText(metadataOf(random)),
        }),
      );
      await store.append(stream, ANY, several).catch(() => {});
    } else if (choice <= 14) {
      const rules = random.pick(['{}', '{"$maxCount":2}', '{"$maxAge":5}', '{"$tb":2}', '{"$acl":{"$r":"u"}}']);
      await setMetadata(store, stream, rules).catch(() => {});
    } else if (choice === 15 && random.chance(0.3)) await store.deleteStream(stream, ANY, 'hard').catch(() => {});
    else if (choice === 16) await store.deleteStream(stream, ANY, 'soft').catch(() => {});
    else if (choice === 17) {
      for (const each of await everything(s)) if (!written.some(({ id }) => id === each.id)) written.push(each);
      const events = written.filter((each) => each.stream === stream && each.position === each.preparePosition);
      if (events.length > 0 && !stream.startsWith('$'))
        await redact(store, ids, 'me', {
          stream,
          numbers: [random.pick(events).number],
          reason: 'why',
          metadata: random.chance(0.5) ? ['$correlationId'] : [],
        }).catch(() => {});
    } else if (choice === 18) {
      const old = `old-${random.int(1, 2)}`;
      const begin = hand.prepare(old, BEGIN, -1, -1, -2);
      const events = Array.from({ length: random.int(1, 3) }, () => ({
        type: random.pick(TYPES),
        metadata: metadataOf(random),
      }));
      const numbers = s.index.bulks.length * 10;
      for (const [offset, text] of events.entries()) {
        if (random.chance(0.3)) await store.append('between', ANY, [event('')]);
        s.index.addEvent(old, numbers + offset, hand.prepare(old, DATA, begin, offset, -2, text));
      }
      hand.prepare(old, END, begin, -1, -2);
      hand.commit(begin, numbers);
    } else if (choice === 19) await store.appendInternal('c-1', ANY, [event('')], { completeChunkAfter: true });
    else await clock.advance(2_000);
  }
}

export async function everything({ store }: Pick<Setup, 'store'>): Promise<StoredEvent[]> {
  const page = await store.readAll({ direction: 'forward', from: 'start', count: 4_096 });
  expect(page.isEnd).toBe(true);
  return page.events;
}

/** What a stream's rules leave, in the plainest words. */
export function isVisible(info: StreamInfo, each: StoredEvent, nowMs: number): boolean {
  const { lastEventNumber, isTombstoned, isSoftDeleted, metadata } = info;
  if (isTombstoned || isSoftDeleted || lastEventNumber < 0 || each.number === TOMBSTONE) return false;
  if (metadata.truncateBefore !== undefined && each.number < metadata.truncateBefore) return false;
  if (metadata.maxCount !== undefined && each.number <= lastEventNumber - metadata.maxCount) return false;
  return metadata.maxAge === undefined || each.createdMs >= nowMs - metadata.maxAge * 1_000;
}

/** Reads like a user `u`: what has a list names him, or it has none. */
export function accessOf(): EventAccess & { begun: number } {
  return {
    begun: 0,
    begin() {
      this.begun++;
    },
    allows: (stream, { acl }) => stream !== 'b-2' && (acl?.read === undefined || acl.read.includes('u')),
  };
}

export async function wantedOf(
  s: Pick<Setup, 'store' | 'clock'>,
  filter: AllFilter & { query: EventQuery },
  access: EventAccess | undefined,
): Promise<StoredEvent[]> {
  const wanted: StoredEvent[] = [];
  for (const each of await everything(s)) {
    if (!isAskedFor(filter.query, each)) continue;
    if (filter.prefixes !== undefined && !filter.prefixes.some((prefix) => each.stream.startsWith(prefix))) continue;
    // oxlint-disable-next-line no-await-in-loop
    const info = await s.store.streamInfo(each.stream);
    // Metadata of a stream are seen by the list of the stream.
    const owner = each.stream.startsWith('$$') ? each.stream.slice(2) : each.stream;
    // oxlint-disable-next-line no-await-in-loop
    const { metadata } = await s.store.streamInfo(owner);
    if (isVisible(info, each, s.clock.nowMs()) && (access?.allows(each.stream, metadata) ?? true)) wanted.push(each);
  }
  return wanted;
}

export const nameOf = (each: StoredEvent): string =>
  `${each.number}@${each.stream}/${each.type}/${each.preparePosition}`;

export function compare(a: AllPosition, b: AllPosition): number {
  return a.commit - b.commit || a.prepare - b.prepare;
}

export function placeOf({ position, preparePosition }: StoredEvent): AllPosition {
  return { commit: position, prepare: preparePosition };
}

/** Fills the indexes as they may be: each as far as it has come, with more behind that, and some of what is gone. */
export function fill({ attributes, written, log }: History, random: Random): void {
  for (const name of ['names', 'correlations', 'tags'] as const) {
    const choice = random.int(1, 4);
    if (choice === 1) attributes.entries[name] = null;
    else attributes.of(name)!.coveredTo = choice === 2 ? random.pick(log.starts) : log.end;
  }
  const coveredTo = (name: 'names' | 'correlations' | 'tags'): number => attributes.of(name)?.coveredTo ?? 0;
  const most = Math.max(coveredTo('names'), coveredTo('correlations'), coveredTo('tags'));
  for (const each of written) {
    if (each.position < most || random.chance(0.3)) {
      const { names, correlations, tags } = attributes.entries;
      const isBelow = (name: 'names' | 'correlations' | 'tags'): boolean =>
        each.position < coveredTo(name) || random.chance(0.3);
      if (!isBelow('names')) attributes.entries.names = null;
      if (!isBelow('correlations')) attributes.entries.correlations = null;
      if (!isBelow('tags')) attributes.entries.tags = null;
      attributes.add(each);
      Object.assign(attributes.entries, { names, correlations, tags });
    }
    // Another key has the hash of this one.
    if (random.chance(0.1)) attributes.of('tags')?.add('tag', random.pick(TEXTS), each.position);
  }
}
