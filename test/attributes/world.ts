import { encodeText, decodeText } from '../../core/base/text.ts';
import { Hash64 } from '../../core/base/stream-hash.ts';
import { untilHit } from '../../core/base/step.ts';
import { ATTRIBUTE_INDEXES, type AttributeEntries, type AttributeIndexName } from '../../core/attributes/api.ts';
import { encodeSetting, SETTING_STREAM, SETTING_TYPE } from '../../core/attributes/format/setting.ts';
import { categoryOf, hashKey, type KeyKind } from '../../core/attributes/format/attribute-keys.ts';
import type { DirectoryStore, Store } from '../../core/store/store.ts';
import { ANY, type EventStore, type NewEvent, type StoredEvent } from '../../core/streams/api.ts';
import { openTestStore, type TestStoreOptions } from '../support/test-store.ts';
import type { Random } from '../support/random.ts';

/** A store whose attribute indexes have caught up. */
export async function openIndexed(options: TestStoreOptions): Promise<DirectoryStore> {
  const open = await openTestStore({ chunkSizeBytes: 65_536, ...options });
  await open.attributes!.idle();
  return open;
}

export async function set(
  store: EventStore,
  over: Partial<Record<AttributeIndexName, boolean>>,
  id = randomId(),
): Promise<void> {
  const data = encodeSetting({ names: true, correlations: false, tags: false, ...over });
  await store.append(SETTING_STREAM, ANY, [
    { id, type: SETTING_TYPE, isJson: true, data, metadata: new Uint8Array(0) },
  ]);
}

let ids = 0;
export function randomId(): string {
  return `11111111-0000-4000-8000-${String(++ids).padStart(12, '0')}`;
}

export function newEvent(type: string, metadata: unknown = null): NewEvent {
  return {
    id: randomId(),
    type,
    isJson: true,
    data: encodeText('{}'),
    metadata: metadata === null ? new Uint8Array(0) : encodeText(JSON.stringify(metadata)),
  };
}

/** Appends events with attributes that a seed chooses. */
export async function appendSome(store: EventStore, random: Random, appends: number): Promise<void> {
  for (let n = 0; n < appends; n++) {
    const stream = `${['order', 'cart', '$sys', 'plain'][random.int(0, 3)]!}${random.int(0, 2) === 0 ? '' : `-${random.int(0, 4)}`}`;
    const events = Array.from({ length: random.int(1, 3) }, () =>
      newEvent(`type-${random.int(0, 5)}`, metadataOf(random)),
    );
    await store.append(stream, ANY, events);
  }
}

function metadataOf(random: Random): unknown {
  switch (random.int(0, 3)) {
    case 0:
      return null;
    case 1:
      return { $correlationId: `c-${random.int(0, 8)}`, other: ['$tags'] };
    case 2:
      return { $tags: Array.from({ length: random.int(0, 3) }, () => `tag-${random.int(0, 4)}`) };
    default:
      return { user: 'é', $tags: ['red', 7, ''], $correlationId: `c-${random.int(0, 8)}` };
  }
}

type Keys = Record<AttributeIndexName, Set<string>>;

/** The keys of an event by the rules of the README, from what is read of it. */
export function keysOf(event: StoredEvent): Keys {
  const keys: Keys = { names: new Set([`et:${event.type}`]), correlations: new Set(), tags: new Set() };
  const category = categoryOf(event.stream);
  if (category !== null) keys.names.add(`ce:${category}`);
  let metadata: unknown = null;
  try {
    metadata = JSON.parse(decodeText(event.metadata));
  } catch {
    return keys;
  }
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return keys;
  const { $correlationId, $tags } = metadata as Record<string, unknown>;
  if (isText($correlationId)) keys.correlations.add(`bc:${$correlationId}`);
  if (Array.isArray($tags)) for (const tag of $tags.slice(0, 64)) if (isText(tag)) keys.tags.add(`tag:${tag}`);
  return keys;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && encodeText(value).length <= 256;
}

/** Positions by key, as reading the whole log gives them, up to an end. */
export async function naive(open: Store, name: AttributeIndexName, end = Infinity): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>();
  let from: Parameters<EventStore['readAll']>[0]['from'] = 'start';
  for (;;) {
    const page = await open.store.readAll({ from, direction: 'forward', count: 1_000 });
    for (const event of page.events) {
      if (event.position >= end) continue;
      for (const key of keysOf(event)[name]) {
        const positions = found.get(key) ?? [];
        if (positions.at(-1) !== event.position) positions.push(event.position);
        found.set(key, positions);
      }
    }
    if (page.isEnd) return found;
    from = page.next;
  }
}

export async function positionsOf(entries: AttributeEntries, key: string): Promise<number[]> {
  const hash = new Hash64();
  const colon = key.indexOf(':');
  hashKey(key.slice(0, colon) as KeyKind, key.slice(colon + 1), hash);
  const list: number[] = [];
  await untilHit(() => entries.run(hash.hi, hash.lo, 0, true, Infinity, list));
  return list;
}

/**
 * What each index has is what the log has, up to where it covers it; or more, where a scavenge has left entries.
 * Answers with what is wrong.
 */
export async function differences(open: DirectoryStore, mayHaveMore = false): Promise<string[]> {
  const wrong: string[] = [];
  for (const name of ATTRIBUTE_INDEXES) {
    const entries = open.attributes!.of(name);
    if (entries === null) continue;
    // It may go on meanwhile.
    const end = entries.coveredTo;
    for (const [key, positions] of await naive(open, name, end)) {
      const wanted = new Set(positions);
      const have = (await positionsOf(entries, key)).filter((at) => at < end && (!mayHaveMore || wanted.has(at)));
      if (have.join() !== positions.join()) wrong.push(`${name} ${key}: ${have.join()} for ${positions.join()}`);
    }
  }
  return wrong;
}
