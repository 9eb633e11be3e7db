import type { BlockCache } from '../cache/cache.ts';
import type { StreamIndex } from '../index/index.ts';
import { Background } from '../index/background-work/background-work.ts';
import type { IndexSettings } from '../index/api.ts';
import type { ChunkTable } from '../log/api.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { Log } from '../ports/log.ts';
import { isOwnName } from '../ports/own-names.ts';
import type { Storage } from '../ports/storage.ts';
import {
  ATTRIBUTE_INDEXES,
  ATTRIBUTE_SETTING_DEFAULT,
  type AttributeEntries,
  type AttributeFollower,
  type AttributeIndexName,
  type AttributeIndexStatus,
  type AttributeSetting,
  type ReadAhead,
} from './api.ts';
import { isSameSetting } from './format/setting.ts';
import { attributeFolder } from './format/attribute-folders.ts';
import { AttributeIndex } from './index/attribute-index.ts';
import { CatchingUp } from './index/catching-up.ts';
import { LiveIntake } from './index/live-intake.ts';

export { ATTRIBUTE_INDEX_SETTINGS } from './index/attribute-index.ts';

interface AttributesWorld {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly jobs: Jobs;
  readonly log: Log;
}

export interface AttributesOptions {
  readonly world: AttributesWorld;
  readonly cache: BlockCache;
  readonly log: ChunkTable;
  /** Position of the log's last epoch, as far as is known; -1 for none. */
  readonly lastEpoch: number;
  readonly settings?: Partial<IndexSettings>;
}

/** What a scavenge needs of an index. */
export interface OpenAttributeIndex {
  readonly name: AttributeIndexName;
  readonly tables: Pick<StreamIndex, 'tables' | 'readTable' | 'scavengeTables' | 'holdMerges' | 'memTables'>;
  /**
   * Writes what is in memory as tables; what of an explicit transaction is being taken in may stay there. Rejects with
   * what stands in the way.
   */
  flush(): Promise<void>;
  /** Where the error says that its tables are damaged, the index is given up and built anew; else false. */
  gaveUp(error: unknown): boolean;
}

/**
 * The attribute indexes of a directory. Nothing waits for them: they are opened, verified, built and removed in the
 * background, as the setting of the log says, and each is seen from when it has something.
 */
export class Attributes implements AttributeFollower {
  readonly #options: AttributesOptions;
  readonly #open = new Map<AttributeIndexName, AttributeIndex>();
  readonly #live: LiveIntake;
  readonly #ending = new AbortController();
  readonly #work: Background;
  readonly #catchingUp: CatchingUp;
  readonly #scrubbing = new Map<AttributeIndex, { readonly ending: AbortController; readonly ended: Promise<void> }>();
  /** Those whose tables turned out to be damaged. */
  readonly #damaged = new Set<AttributeIndex>();
  #setting: AttributeSetting = ATTRIBUTE_SETTING_DEFAULT;
  #hasBegun = false;

  constructor(options: AttributesOptions) {
    const { world, log } = options;
    this.#options = options;
    this.#live = new LiveIntake(log, () => this.#work.kick());
    this.#catchingUp = new CatchingUp({ ...world, table: log, signal: this.#ending.signal });
    this.#work = new Background('Work on attribute indexes', () => this.#step(), {
      ...world,
      signal: this.#ending.signal,
    });
  }

  isOn(name: AttributeIndexName): boolean {
    return this.#setting[name];
  }

  of(name: AttributeIndexName): AttributeEntries | null {
    return this.#open.get(name) ?? null;
  }

  /** Those that are open, for scavenges and checks. */
  get open(): readonly OpenAttributeIndex[] {
    return [...this.#open.values()];
  }

  get setting(): AttributeSetting {
    return this.#setting;
  }

  /** Begins to do what the setting says. */
  begin(setting: AttributeSetting): void {
    this.#setting = setting;
    this.#hasBegun = true;
    this.#work.kick();
  }

  follow(setting: AttributeSetting): void {
    if (isSameSetting(setting, this.#setting)) return;
    this.#setting = setting;
    this.#options.world.log.info('The setting of attribute indexes has changed.', { ...setting });
    if (this.#hasBegun) this.#work.kick();
  }

  takeIn(records: Uint8Array, start: number, end: number, ahead: ReadAhead | null = null): void {
    this.#live.take(records, start, end, ahead);
  }

  /** Resolves when all that the setting says is open and live. Rejects with the next failure, or `store_closed`. */
  idle(): Promise<void> {
    return this.#work.idle();
  }

  status(): readonly AttributeIndexStatus[] {
    return ATTRIBUTE_INDEXES.map((name) => this.#statusOf(name));
  }

  #statusOf(name: AttributeIndexName): AttributeIndexStatus {
    const index = this.#open.get(name);
    const state = !this.#setting[name] ? 'off' : index?.isLive === true ? 'live' : 'building';
    const { failure } = this.#work;
    return {
      name,
      state,
      coveredTo: index?.coveredTo ?? 0,
      logEnd: this.#options.log.end,
      entries: index?.entries ?? 0,
      tableBytes: index?.tableBytes ?? 0,
      ...(state === 'building' &&
        failure !== null && { error: failure instanceof Error ? failure.message : String(failure) }),
    };
  }

  /** One thing that is to be done; false when there is none. */
  async #step(): Promise<boolean> {
    for (const index of this.#damaged) {
      await this.#remove(index.name, index);
      this.#damaged.delete(index);
      return true;
    }
    for (const name of ATTRIBUTE_INDEXES) {
      const index = this.#open.get(name);
      if (this.#setting[name] && index === undefined) await this.#openIndex(name);
      else if (!this.#setting[name] && (index !== undefined || (await this.#hasFiles(name))))
        await this.#remove(name, index);
      else continue;
      return true;
    }
    const behind = [...this.#open.values()].filter((index) => !index.isLive && !this.#damaged.has(index));
    if (behind.length === 0) {
      for (const index of this.#open.values()) await index.saveSome();
      return false;
    }
    await this.#catchingUp.run(behind, {
      isStale: () => this.#isStale(),
      onLive: () => this.#showLive(),
    });
    return true;
  }

  #showLive(): void {
    this.#live.set([...this.#open.values()].filter(({ isLive }) => isLive));
  }

  /** The setting asks for something else than to bring these up to the log's end. */
  #isStale(): boolean {
    return this.#damaged.size > 0 || ATTRIBUTE_INDEXES.some((name) => this.#setting[name] !== this.#open.has(name));
  }

  async #openIndex(name: AttributeIndexName): Promise<void> {
    const { world, cache, log, lastEpoch, settings } = this.#options;
    const index = await AttributeIndex.open({
      name,
      ports: { ...world, cache },
      log,
      lastEpoch,
      ...(settings !== undefined && { settings }),
      onDamage: (error) => {
        world.log.error('An attribute index is damaged, and is built anew.', { index: name, error });
        this.#damaged.add(index);
        this.#showLive();
        this.#work.kick();
      },
    });
    if (this.#ending.signal.aborted) return index.close();
    this.#open.set(name, index);
    const ending = new AbortController();
    this.#scrubbing.set(index, { ending, ended: index.scrub(ending.signal) });
  }

  async #hasFiles(name: AttributeIndexName): Promise<boolean> {
    const folder = attributeFolder(name);
    return (await this.#options.world.storage.list(folder)).some((file) => isOwnName(`${folder}/${file}`));
  }

  /** Readers don't see it any more; then its files go, the map first, so that a crash leaves no map without tables. */
  async #remove(name: AttributeIndexName, index: AttributeIndex | undefined): Promise<void> {
    const { storage, log } = this.#options.world;
    this.#open.delete(name);
    this.#showLive();
    if (index !== undefined) await this.#close(index);
    const folder = attributeFolder(name);
    const files = (await storage.list(folder)).filter((file) => isOwnName(`${folder}/${file}`));
    for (const file of files.toSorted((a, b) => Number(b === MAP_NAME) - Number(a === MAP_NAME)))
      await storage.remove(`${folder}/${file}`);
    log.info('The files of an attribute index have been removed.', { index: name, files: files.length });
  }

  async #close(index: AttributeIndex): Promise<void> {
    const scrub = this.#scrubbing.get(index);
    this.#scrubbing.delete(index);
    scrub?.ending.abort();
    await scrub?.ended;
    await index.close();
  }

  /** Begins a stop: merges and the building of indexes end. */
  end(): void {
    this.#ending.abort();
    for (const index of this.#open.values()) index.endMerges();
  }

  /**
   * Ends all work and closes the files, when nothing is taken in any more. `isClean`: what is in memory is written
   * before, and what was verified noted.
   */
  async close(isClean: boolean): Promise<void> {
    this.end();
    await this.#work.ended();
    const indexes = [...this.#open.values()];
    this.#live.set([]);
    for (const index of indexes) {
      const isSound = isClean && !this.#damaged.has(index);
      if (isSound)
        await index
          .writeLast()
          .catch((error: unknown) =>
            this.#options.world.log.warn(
              'An attribute index could not be written; the next start reads the log from where it is.',
              { index: index.name, error: String(error) },
            ),
          );
      if (isSound) await index.saveScrubbed();
      await this.#close(index);
    }
    this.#open.clear();
  }
}

const MAP_NAME = 'indexmap';
