import { isSkuaError, type SkuaError } from '../../base/errors.ts';
import type { Outcome } from '../../base/step.ts';
import { POSITION_TABLE_VERSION } from '../../index/format/table-format.ts';
import { type IndexPorts, StreamIndex } from '../../index/index.ts';
import type { IndexSettings } from '../../index/api.ts';
import type { ChunkTable } from '../../log/api.ts';
import type { AttributeEntries, AttributeIndexName, AttributeSink, AttributeSinks } from '../api.ts';
import { formatAnchor, type KnownEpoch, LogAnchors, parseAnchor } from '../format/anchor.ts';
import { attributeFolder } from '../format/attribute-folders.ts';
import { LogOfAttributes } from '../format/log-of-attributes.ts';

/**
 * What is left out is as in the stream index. Tables stay small, so that each spans few chunks of the log: 64
 * memtables, which exceed their number by the entries of one event, make the largest. An event has twice as many
 * entries as in the stream index and more, so none is to be merged more than twice: by eight.
 */
export const ATTRIBUTE_INDEX_SETTINGS: Partial<IndexSettings> = {
  memTableEntriesMax: 261_120,
  tablesPerLevelMax: 8,
  mergedEntriesMax: 16_777_216,
  cacheDepth: 8,
  existenceFilterBytes: 0,
};

/**
 * Bytes of the log that an index takes in at most before what it knows is durable: an index with few entries fills no
 * memtable, and would have to read all of that again after a crash.
 */
const UNSAVED_BYTES_MAX = 1_073_741_824;

interface AttributeIndexParts {
  readonly name: AttributeIndexName;
  readonly ports: IndexPorts;
  readonly log: ChunkTable;
  /** Position of the log's last epoch, as far as is known; -1 for none. */
  readonly lastEpoch: number;
  readonly settings?: Partial<IndexSettings>;
  /** Tables turned out to be damaged by what a search found: the index is of no use any more. */
  readonly onDamage: (error: SkuaError) => void;
}

/** Taken in before all: an index that has nothing. */
const NOWHERE = -1;

/** One attribute index: tables and memtables of entries, and how far they cover the log. */
export class AttributeIndex implements AttributeEntries, AttributeSink {
  readonly name: AttributeIndexName;
  /** As `AttributeEntries` has it; also 0 when the index is closed, or found to be damaged. */
  coveredTo = 0;
  /** All that is committed comes in before readers see it. */
  isLive = false;
  readonly #index: StreamIndex;
  readonly #onDamage: (error: SkuaError) => void;
  /** Position of the last record that was taken in. */
  #taken: number;
  /** Start of a record, or the log's end, up to which all was taken in. */
  #resumesAt: number;
  /** The epochs from the last one below the map's end on, as far as they were seen. */
  #epochs: KnownEpoch[];
  #isClosed = false;
  /** Some entries of a transaction have been taken in, and not all. */
  #isWithin = false;

  private constructor(parts: AttributeIndexParts, index: StreamIndex, epochs: KnownEpoch[]) {
    this.name = parts.name;
    this.#onDamage = parts.onDamage;
    this.#index = index;
    this.#epochs = epochs;
    this.#taken = index.commitCheckpoint;
    this.#resumesAt = Math.max(0, index.commitCheckpoint);
    this.coveredTo = this.#resumesAt;
  }

  /** Opens what is on disk; what is damaged or of another log is discarded. */
  static async open(parts: AttributeIndexParts): Promise<AttributeIndex> {
    const { ports, log, lastEpoch, name } = parts;
    const anchors = new LogAnchors(log, lastEpoch);
    const entries = new LogOfAttributes(log);
    const epochs: KnownEpoch[] = [];
    const self: { opened: AttributeIndex | null } = { opened: null };
    const index = await StreamIndex.open({
      ports,
      settings: { ...ATTRIBUTE_INDEX_SETTINGS, ...parts.settings },
      home: { folder: attributeFolder(name), tableVersion: POSITION_TABLE_VERSION },
      logEnd: log.end,
      whyAnother: (path) => entries.whyAnother(ports.storage, path),
      anchoring: {
        make: async (end) => {
          const epoch = self.opened?.epochBelow(end) ?? null;
          return formatAnchor({ recordId: await anchors.recordIdAt(end), epoch });
        },
        whyAnother: async (end, text) => {
          const why = await anchors.whyAnother(end, text);
          const epoch = why === null && text !== undefined ? parseAnchor(text)!.epoch : null;
          if (epoch !== null) epochs.push(epoch);
          return why;
        },
      },
    });
    self.opened = new AttributeIndex(parts, index, index.wasReset === null ? epochs : []);
    return self.opened;
  }

  /** Where reading the log goes on: the start of a record, before which nothing is missing. */
  get resumesAt(): number {
    return this.#resumesAt;
  }
  /** Its memtables wait to be written: it takes in nothing now. */
  get isFull(): boolean {
    return this.#index.isFull;
  }
  get entries(): number {
    return this.#index.tables().reduce((sum, table) => sum + table.entries, this.#index.entriesInMemory);
  }
  get tableBytes(): number {
    return this.#index.tableBytes;
  }
  /** As `OpenAttributeIndex` has it. */
  get tables(): Pick<StreamIndex, 'tables' | 'readTable' | 'scavengeTables' | 'holdMerges' | 'memTables'> {
    return this.#index;
  }

  add(hi: number, lo: number, position: number): void {
    if (position <= this.#taken) return;
    this.#isWithin = true;
    this.#index.add(hi, lo, position, position);
  }

  end(position: number): void {
    if (position <= this.#taken) return;
    this.#taken = position;
    this.#isWithin = false;
    this.#index.endBulk(position, position);
  }

  /** An epoch begins there. */
  noteEpoch(epoch: KnownEpoch): void {
    if (epoch.position > (this.#epochs.at(-1)?.position ?? NOWHERE)) this.#epochs.push(epoch);
  }

  /** All that is committed below has been taken in. */
  cover(position: number): void {
    if (!this.#isClosed && position > this.coveredTo) this.coveredTo = this.#resumesAt = position;
  }

  /** It has all that is committed; in the step in which it has got there. */
  goLive(): void {
    this.isLive = !this.#isClosed;
  }

  /** What it has taken in is far ahead of what a crash would leave. */
  get isUnsaved(): boolean {
    return this.#taken - this.#index.commitCheckpoint >= UNSAVED_BYTES_MAX;
  }

  /** The last epoch below a position. Those before it are of no use any more. */
  epochBelow(position: number): KnownEpoch | null {
    const at = this.#epochs.findLastIndex((epoch) => epoch.position < position);
    if (at > 0) this.#epochs.splice(0, at);
    return at < 0 ? null : this.#epochs[0]!;
  }

  /** A search that finds damage fails; the next one does without the index. */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome {
    try {
      return this.#index.run(hi, lo, from, isUpwards, count, out);
    } catch (error) {
      if (isSkuaError(error, 'index_corrupt')) this.#damaged(error);
      throw error;
    }
  }

  #damaged(error: SkuaError): void {
    if (this.#isClosed) return;
    this.#forget();
    this.#onDamage(error);
  }

  #forget(): void {
    this.#isClosed = true;
    this.isLive = false;
    this.coveredTo = 0;
  }

  /** Resolves when it takes in more. Rejects as `StreamIndex.ready` does. */
  async ready(): Promise<void> {
    for (let full = this.#index.ready(); full !== null; full = this.#index.ready()) await full;
  }

  /** Makes what was taken in durable where that is much, though it is no full memtable. */
  async saveSome(): Promise<void> {
    if (this.isUnsaved) await this.#index.saveAll();
  }

  /** As `OpenAttributeIndex` has it. */
  async flush(): Promise<void> {
    if (!this.#isWithin) await this.#index.saveAll();
  }

  /** As `OpenAttributeIndex` has it. */
  gaveUp(error: unknown): boolean {
    if (!isSkuaError(error, 'index_corrupt')) return false;
    this.#damaged(error);
    return true;
  }

  /** Compares tables with their checksums until the signal aborts. Never rejects. */
  scrub(signal: AbortSignal): Promise<void> {
    return this.#index.scrub(signal, (error) => this.#damaged(error));
  }

  /** Begins a stop. */
  endMerges(): void {
    this.#index.endMerges();
  }

  /** Part of a clean stop, before `close`, when nothing more comes in. */
  async writeLast(): Promise<void> {
    await this.#index.writeLast();
    await this.#index.saveEnd();
  }

  saveScrubbed(): Promise<void> {
    return this.#index.saveScrubbed();
  }

  /** Readers that still have it find that it covers nothing. */
  async close(): Promise<void> {
    this.#forget();
    await this.#index.close();
  }
}

/** Where entries of these indexes go. */
export function sinksOf(indexes: readonly AttributeIndex[]): AttributeSinks {
  const of = (wanted: AttributeIndexName): AttributeIndex | null => indexes.find(({ name }) => name === wanted) ?? null;
  return { names: of('names'), correlations: of('correlations'), tags: of('tags') };
}
