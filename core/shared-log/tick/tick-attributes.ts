import {
  ATTRIBUTE_INDEXES,
  type AttributeIndexName,
  type AttributeSetting,
  type AttributeSink,
} from '../../attributes/api.ts';
import { ATTRIBUTE_INDEX_SETTINGS, type OpenAttributeIndex } from '../../attributes/attributes.ts';
import { formatAnchor, LogAnchors } from '../../attributes/format/anchor.ts';
import { attributeFolder } from '../../attributes/format/attribute-folders.ts';
import { AttributeIntake } from '../../attributes/intake/intake.ts';
import { isSkuaError, type SkuaError } from '../../base/errors.ts';
import type { BlockCache } from '../../cache/cache.ts';
import { StreamIndex } from '../../index/index.ts';
import type { IndexHome } from '../../index/api.ts';
import { entryBytesOf, POSITION_TABLE_VERSION } from '../../index/format/table-format.ts';
import { scanLog } from '../../log/chunk-table/chunk-table.ts';
import type { JobOptions, Jobs } from '../../ports/jobs.ts';
import { isOwnName } from '../../ports/own-names.ts';
import type { ObjectWorld } from '../api.ts';
import { coveredTo, type ObjectAttributes, settingOf } from '../format/manifest-attributes.ts';
import { newestManifestNumber, type ObjectManifest } from '../format/manifest.ts';
import { settleTables, TABLES_PER_LEVEL_MAX } from './compaction.ts';
import type { TickLog } from './tick-log.ts';
import type { ObjectStorage } from './tick-storage.ts';

interface TickAttributesParts {
  readonly world: ObjectWorld;
  readonly storage: ObjectStorage;
  readonly cache: BlockCache;
  readonly jobs: Jobs;
  readonly base: ObjectManifest;
  readonly log: TickLog;
  /** New files in bytes at which an index that is far behind is left to the next tick. */
  readonly ownBytesMax: number;
}

const CACHE_DEPTH = ATTRIBUTE_INDEX_SETTINGS.cacheDepth!;
const TABLE_BYTES_MAX = ATTRIBUTE_INDEX_SETTINGS.mergedEntriesMax! * entryBytesOf(POSITION_TABLE_VERSION);
/** Thrown by the visitor of a scan to end it. */
const STOP = new Error('enough was read');

/** Whether the error says that the files of the index are not what they were. */
function isOfTable({ code, data: { path, key } }: SkuaError, { home: { folder } }: TickAttribute): boolean {
  const isLost = code === 'io_error' && typeof key === 'string';
  return (code === 'index_corrupt' || isLost) && typeof path === 'string' && path.startsWith(`${folder}/`);
}

/** One index as a tick has it. */
class TickAttribute implements AttributeSink, OpenAttributeIndex {
  readonly name: AttributeIndexName;
  /** All that is committed below is in the tables. */
  coveredTo: number;
  /** Null while it is closed. */
  index: StreamIndex | null = null;
  /** A scavenge has met damage in its tables. */
  isGivenUp = false;

  constructor(name: AttributeIndexName, covered: number) {
    this.name = name;
    this.coveredTo = covered;
  }

  get home(): IndexHome {
    return { folder: attributeFolder(this.name), tableVersion: POSITION_TABLE_VERSION };
  }

  get tables(): StreamIndex {
    return this.index!;
  }

  flush(): Promise<void> {
    return this.index!.flush();
  }

  gaveUp(error: unknown): boolean {
    this.isGivenUp ||= isSkuaError(error) && isOfTable(error, this);
    return this.isGivenUp;
  }

  add(hi: number, lo: number, position: number): void {
    if (position >= this.coveredTo) this.index!.add(hi, lo, position, position);
  }

  end(position: number): void {
    if (position >= this.coveredTo) this.index!.endBulk(position, position);
  }
}

/**
 * The attribute indexes that the next manifest names. One that had all of the log before takes in all that this tick
 * has taken over, since instances would have to read on from where it ends; one that is behind, as a new one is, gets
 * as far as time and space allow. What fails leaves it where it was.
 */
export class TickAttributes {
  readonly #parts: TickAttributesParts;
  readonly #indexes = new Map<AttributeIndexName, TickAttribute>();
  /** End of the log up to which those that are not behind have all. */
  #end: number;

  constructor(parts: TickAttributesParts) {
    this.#parts = parts;
    const { base } = parts;
    this.#end = base.logEnd;
    const setting = settingOf(base);
    for (const name of ATTRIBUTE_INDEXES)
      if (setting[name]) this.#indexes.set(name, new TickAttribute(name, coveredTo(base, name)));
  }

  /** As the next manifest has it. */
  get said(): ObjectAttributes {
    return Object.fromEntries(
      [...this.#indexes.values()].map(({ name, coveredTo: end }) => [name, { coveredTo: end }]),
    );
  }

  /** What the log says of its indexes; files of one that it has no more go. */
  async follow(setting: AttributeSetting): Promise<void> {
    for (const name of ATTRIBUTE_INDEXES) {
      if (!setting[name]) {
        await this.#remove(name);
        this.#indexes.delete(name);
      } else if (!this.#indexes.has(name)) this.#indexes.set(name, new TickAttribute(name, 0));
    }
  }

  /** Takes in what was taken over, where nothing lies between. */
  async take(): Promise<void> {
    const { logEnd } = this.#parts.log;
    if (logEnd === this.#end) return;
    await this.openAll();
    await this.#read([...this.#indexes.values()].filter((one) => one.coveredTo >= this.#end));
    this.#end = logEnd;
  }

  /**
   * Brings those that are behind further, until that monotonic time. Events that can't be read leave them where they
   * end: the log goes on without.
   */
  async build(untilMs: number): Promise<void> {
    const { world, log, storage, ownBytesMax } = this.#parts;
    const behind = [...this.#indexes.values()].filter((one) => one.coveredTo < log.logEnd);
    if (behind.length === 0) return;
    try {
      for (const one of behind) await this.#open(one);
      await this.#read(
        behind,
        async () => world.clock.monotonicMs() >= untilMs || (await storage.ownBytes()) >= ownBytesMax,
      );
      world.log.info('attribute indexes have taken in earlier events', { ...this.said, logEnd: log.logEnd });
    } catch (error) {
      world.log.warn('attribute indexes of earlier events can not be built further', { ...this.said, error });
    }
  }

  /** Reads on from where all of them have what lies before. */
  async #read(indexes: readonly TickAttribute[], isOver?: () => Promise<boolean>): Promise<void> {
    if (indexes.length === 0 || (await isOver?.()) === true) return;
    const { log } = this.#parts;
    const of = (wanted: AttributeIndexName): TickAttribute | null =>
      indexes.find(({ name }) => name === wanted) ?? null;
    const intake = new AttributeIntake({ names: of('names'), correlations: of('correlations'), tags: of('tags') });
    const from = Math.min(...indexes.map((one) => one.coveredTo));
    let at = from;
    let failed: { readonly error: unknown } | null = null;
    try {
      await scanLog(
        log.table,
        from,
        (frame) => {
          const { next } = frame;
          const ended = intake.visit(frame, log.table);
          if (ended === undefined) at = next;
          return ended?.then(() => {
            at = next;
          });
        },
        async () => {
          for (const { index } of indexes) await index!.ready();
          if ((await isOver?.()) === true) throw STOP;
        },
        true,
      );
      at = log.logEnd;
    } catch (error) {
      if (error !== STOP) failed = { error };
    }
    // What was read counts, so that no tick writes it again.
    if (failed === null || at > from) {
      for (const { index } of indexes) await index!.flush();
      for (const one of indexes) one.coveredTo = Math.max(one.coveredTo, at);
    }
    if (failed !== null) throw failed.error;
  }

  /** For a scavenge, after `openAll`: an entry whose record is gone leaves its tables. */
  get open(): readonly OpenAttributeIndex[] {
    return [...this.#indexes.values()].filter(({ index, isGivenUp }) => index !== null && !isGivenUp);
  }

  async openAll(): Promise<void> {
    await Promise.all([...this.#indexes.values()].map((one) => this.#open(one)));
  }

  async #open(one: TickAttribute): Promise<void> {
    while (one.index === null) await this.#orDiscard(one, () => this.#openTables(one));
  }

  async #openTables(one: TickAttribute): Promise<void> {
    const { storage, cache, jobs, log, world } = this.#parts;
    const { digests, ids, clock } = world;
    const anchors = new LogAnchors(log.table, -1);
    one.index = await StreamIndex.open({
      ports: { storage, cache, digests, ids, jobs, log: world.log, clock },
      logEnd: log.logEnd,
      settings: { ...ATTRIBUTE_INDEX_SETTINGS, verify: false, tablesPerLevelMax: TABLES_PER_LEVEL_MAX },
      home: one.home,
      anchoring: {
        // There are no epochs on object storage, and no other log under this prefix.
        make: async (end) => formatAnchor({ recordId: await anchors.recordIdAt(end), epoch: null }),
        whyAnother: async () => null,
      },
    });
    if (one.index.wasReset !== null) one.coveredTo = 0;
  }

  /** An index with a table that is damaged, or gone though the newest manifest names it, is built anew. */
  async #orDiscard(one: TickAttribute, work: () => Promise<void>): Promise<void> {
    const { world, base } = this.#parts;
    try {
      await work();
    } catch (error) {
      if (!isSkuaError(error) || !isOfTable(error, one)) throw error;
      if ((await newestManifestNumber(world.objects)) !== base.number) throw error;
      world.log.warn('an attribute index is damaged, and is built anew', { index: one.name, error });
      await this.#discard(one);
    }
  }

  async #discard(one: TickAttribute): Promise<void> {
    await this.#remove(one.name);
    one.coveredTo = 0;
    one.isGivenUp = false;
  }

  async #remove(name: AttributeIndexName): Promise<void> {
    const { storage } = this.#parts;
    const one = this.#indexes.get(name);
    await one?.index?.close();
    if (one !== undefined) one.index = null;
    const folder = attributeFolder(name);
    for (const file of await storage.list(folder))
      if (isOwnName(`${folder}/${file}`)) await storage.remove(`${folder}/${file}`);
  }

  /** Merges tables as those of the stream index are. None may be in use. */
  async settle(jobOptions: JobOptions): Promise<void> {
    await this.close();
    for (const one of this.#indexes.values())
      await this.#orDiscard(one, () =>
        settleTables({ ...this.#parts, cacheDepth: CACHE_DEPTH }, jobOptions, {
          home: one.home,
          tableBytesMax: TABLE_BYTES_MAX,
        }),
      );
  }

  async close(): Promise<void> {
    for (const one of this.#indexes.values()) {
      await one.index?.close();
      one.index = null;
      if (one.isGivenUp) await this.#discard(one);
    }
  }
}
