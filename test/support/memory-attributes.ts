import type { AttributeEntries, AttributeIndexes, AttributeIndexName } from '../../core/attributes/api.ts';
import { hashKey, type KeyKind } from '../../core/attributes/format/attribute-keys.ts';
import { Hash64 } from '../../core/base/stream-hash.ts';
import { HIT, type Miss, type Outcome } from '../../core/base/step.ts';
import { decodeText } from '../../core/base/text.ts';
import type { StoredEvent } from '../../core/streams/api.ts';

/** One attribute index as a sorted array of positions for each hash; it counts what is asked of it. */
export class MemoryEntries implements AttributeEntries {
  coveredTo = 0;
  asked = 0;
  readonly #positions = new Map<string, number[]>();
  readonly #miss: () => Miss | null;

  constructor(miss: () => Miss | null) {
    this.#miss = miss;
  }

  #of(hi: number, lo: number): number[] {
    return this.#positions.get(`${hi}/${lo}`) ?? [];
  }

  add(kind: KeyKind, text: string, position: number): void {
    const hash = new Hash64();
    hashKey(kind, text, hash);
    const key = `${hash.hi}/${hash.lo}`;
    let list = this.#positions.get(key);
    if (list === undefined) this.#positions.set(key, (list = []));
    if (list.includes(position)) return;
    list.push(position);
    if (list.length > 1 && list.at(-2)! > position) list.sort((a, b) => a - b);
  }

  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome {
    this.asked++;
    const all = this.#of(hi, lo);
    const found = isUpwards ? all.filter((at) => at >= from) : all.filter((at) => at <= from).toReversed();
    const miss = this.#miss();
    out.length = 0;
    // A search that misses may have found something before.
    out.push(...found.slice(0, miss === null ? count : 1));
    return miss ?? HIT;
  }
}

/** Attribute indexes in memory, filled from events that were read. */
export class MemoryAttributes implements AttributeIndexes {
  readonly entries: Record<AttributeIndexName, MemoryEntries | null>;

  constructor(miss: () => Miss | null = () => null) {
    this.entries = {
      names: new MemoryEntries(miss),
      correlations: new MemoryEntries(miss),
      tags: new MemoryEntries(miss),
    };
  }

  isOn(name: AttributeIndexName): boolean {
    return this.entries[name] !== null;
  }

  of(name: AttributeIndexName): MemoryEntries | null {
    return this.entries[name];
  }

  /** Adds the attributes of an event. */
  add({ stream, type, metadata, position }: StoredEvent): void {
    const { names, correlations, tags } = this.entries;
    const category = stream.split('-')[0]!;
    if (category !== '' && !stream.startsWith('$')) names?.add('ce', category, position);
    names?.add('et', type, position);
    let members: unknown;
    try {
      members = JSON.parse(decodeText(metadata));
    } catch {
      return;
    }
    if (typeof members !== 'object' || members === null || Array.isArray(members)) return;
    const { $correlationId, $tags } = members as { $correlationId?: unknown; $tags?: unknown };
    if (typeof $correlationId === 'string') correlations?.add('bc', $correlationId, position);
    if (Array.isArray($tags))
      for (const tag of $tags.slice(0, 64)) if (typeof tag === 'string') tags?.add('tag', tag, position);
  }
}
