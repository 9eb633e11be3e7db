import { expect } from 'vitest';
import { ATTRIBUTE_INDEXES, type AttributeIndexName, type AttributeSetting } from '../../core/attributes/api.ts';
import { hashKey, type KeyKind } from '../../core/attributes/format/attribute-keys.ts';
import { encodeSetting, SETTING_STREAM, SETTING_TYPE } from '../../core/attributes/format/setting.ts';
import { attributeFolder } from '../../core/attributes/format/attribute-folders.ts';
import { Hash64 } from '../../core/base/stream-hash.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { loadIndexMap } from '../../core/index/format/index-map.ts';
import { readBatches } from '../../core/index/format/table-scan.ts';
import { verifyTable } from '../../core/index/jobs/jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { isAttributeFile } from '../../core/shared-log/format/manifest-attributes.ts';
import { createManifest, formatOf, type ObjectManifest } from '../../core/shared-log/format/manifest.ts';
import { ObjectStorage } from '../../core/shared-log/tick/tick-storage.ts';
import type { ObjectWorld } from '../../core/shared-log/api.ts';
import { ANY, type EventQuery, type EventStore, type NewEvent, type StoredEvent } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import type { Random } from '../support/random.ts';
import type { SeededIds } from '../support/seeded-ids.ts';
import { manifestOf, uuid } from './tick-kit.ts';

/** Events with attributes, what a query must find of them, and what tables must have of them. */

export const STREAMS = ['a-1', 'a-2', 'a', 'b-1', '-1', '$s-1'];
const TYPES = ['t', 'u', 'v'];
const TEXTS = ['x', 'y', 'ü'];

export function anyEvent(random: Random, ids: SeededIds, bytes = 0): NewEvent {
  const metadata = {
    ...(random.chance(0.5) && { $correlationId: random.pick(TEXTS) }),
    ...(random.chance(0.5) && { $tags: TEXTS.filter(() => random.chance(0.5)) }),
  };
  return {
    id: uuid(ids),
    type: random.pick(TYPES),
    isJson: false,
    data: new Uint8Array(bytes),
    metadata: random.chance(0.2) ? new Uint8Array(0) : encodeText(JSON.stringify(metadata)),
  };
}

export function anyQuery(random: Random): EventQuery {
  const query = {
    ...(random.chance(0.5) && { category: random.pick(['a', 'b', 'nothing']) }),
    ...(random.chance(0.4) && { types: [random.pick(TYPES), ...(random.chance(0.5) ? [random.pick(TYPES)] : [])] }),
    ...(random.chance(0.3) && { correlation: random.pick(TEXTS) }),
    ...(random.chance(0.3) && { tags: [random.pick(TEXTS)] }),
  };
  return Object.keys(query).length === 0 ? { category: 'a' } : query;
}

interface Attributes {
  readonly category: string | null;
  readonly correlation: string | null;
  readonly tags: readonly string[];
}

function attributesOf({ stream, metadata }: StoredEvent): Attributes {
  const { $correlationId, $tags }: { $correlationId?: string; $tags?: string[] } =
    metadata.length === 0 || metadata[0] !== 0x7b ? {} : JSON.parse(decodeText(metadata));
  return {
    category: stream.startsWith('$') || stream.startsWith('-') ? null : stream.split('-')[0]!,
    correlation: $correlationId ?? null,
    tags: $tags ?? [],
  };
}

export function isAskedFor({ category, types, correlation, tags = [] }: EventQuery, event: StoredEvent): boolean {
  const has = attributesOf(event);
  return (
    (category === undefined || has.category === category) &&
    (types === undefined || types.includes(event.type)) &&
    (correlation === undefined || has.correlation === correlation) &&
    tags.every((tag) => has.tags.includes(tag))
  );
}

export async function everything(store: EventStore): Promise<StoredEvent[]> {
  const page = await store.readAll({ direction: 'forward', from: 'start', count: 4_096 });
  expect(page.isEnd).toBe(true);
  return page.events;
}

/** All pages of a query, from one end to the other. */
export async function found(
  store: EventStore,
  query: EventQuery,
  direction: 'forward' | 'backward',
  count: number,
): Promise<number[]> {
  const positions: number[] = [];
  let from: Parameters<EventStore['readAll']>[0]['from'] = direction === 'forward' ? 'start' : 'end';
  for (;;) {
    const page = await store.readAll({ direction, from, count, filter: { on: 'stream', query } });
    positions.push(...page.events.map(({ position }) => position));
    if (page.isEnd || (direction === 'backward' && page.next.commit <= 0)) return positions;
    from = page.next;
  }
}

/** Random queries find what a look at everything finds. */
export async function expectAnswers(store: EventStore, random: Random, queries = 4): Promise<void> {
  const all = await everything(store);
  for (let i = 0; i < queries; i++) {
    const query = anyQuery(random);
    const count = random.int(1, 9);
    const expected = all.filter((event) => isAskedFor(query, event)).map(({ position }) => position);
    const what = JSON.stringify(query);
    expect(await found(store, query, 'forward', count), what).toEqual(expected);
    expect(await found(store, query, 'backward', count), what).toEqual(expected.toReversed());
  }
}

export async function writeSetting(store: EventStore, ids: SeededIds, setting: AttributeSetting): Promise<void> {
  await store.append(SETTING_STREAM, ANY, [
    { id: uuid(ids), type: SETTING_TYPE, isJson: true, data: encodeSetting(setting), metadata: new Uint8Array(0) },
  ]);
}

const hash = new Hash64();

function keyOf(kind: KeyKind, text: string, position: number): string {
  hashKey(kind, text, hash);
  return `${hash.hi} ${hash.lo} ${position}`;
}

function entriesOf(name: AttributeIndexName, event: StoredEvent): string[] {
  const { category, correlation, tags } = attributesOf(event);
  const { position, type } = event;
  if (name === 'correlations') return correlation === null ? [] : [keyOf('bc', correlation, position)];
  if (name === 'tags') return tags.map((tag) => keyOf('tag', tag, position));
  return [keyOf('et', type, position), ...(category === null ? [] : [keyOf('ce', category, position)])];
}

/**
 * The tables that the newest manifest names have exactly the entries of the events below where they cover the log:
 * `events` are all that there are.
 */
export async function expectTables(objects: ObjectStore, events: readonly StoredEvent[]): Promise<ObjectManifest> {
  const manifest = await manifestOf(objects);
  const storage = ObjectStorage.of(manifest, objects, new MemoryStorage());
  expect(manifest.format).toBe(formatOf(manifest.files));
  for (const name of ATTRIBUTE_INDEXES) {
    const covered = manifest.attributes?.[name]?.coveredTo ?? 0;
    const folder = attributeFolder(name);
    const map = await loadIndexMap(storage, nodeDigests, folder);
    const entries: string[] = [];
    for (const table of map?.levels.flat() ?? []) {
      const path = `${folder}/${table}`;
      expect(await verifyTable({ path }, verifyContext(storage))).toBe(null);
      for await (const { hi, lo, positions, count } of readBatches(storage, path))
        for (let i = 0; i < count; i++) entries.push(`${hi[i]} ${lo[i]} ${positions[i]}`);
    }
    const expected = events.filter(({ position }) => position < covered).flatMap((event) => entriesOf(name, event));
    expect(entries.sort(), name).toEqual([...new Set(expected)].sort());
  }
  return manifest;
}

function verifyContext(storage: ObjectStorage): Parameters<typeof verifyTable>[1] {
  return {
    storage,
    digests: nodeDigests,
    progress() {},
    async checkpoint() {},
    monotonicMs: () => 0,
    async sleep() {},
  };
}

/** The newest manifest as an older program would have written it: it knows nothing of attribute indexes. */
export async function forgetAttributes(world: ObjectWorld): Promise<void> {
  const { attributes: _, ...manifest } = await manifestOf(world.objects);
  const files = manifest.files.filter(({ name }) => !isAttributeFile(name));
  await createManifest(world, { ...manifest, format: formatOf(files), number: manifest.number + 1, files });
}

/** Positions that entries name, of all tables. */
export async function positionsInTables(objects: ObjectStore, name: AttributeIndexName): Promise<number[]> {
  const storage = ObjectStorage.of(await manifestOf(objects), objects, new MemoryStorage());
  const folder = attributeFolder(name);
  const found: number[] = [];
  for (const table of (await loadIndexMap(storage, nodeDigests, folder))?.levels.flat() ?? [])
    for await (const { positions, count } of readBatches(storage, `${folder}/${table}`))
      found.push(...positions.subarray(0, count));
  return found;
}
