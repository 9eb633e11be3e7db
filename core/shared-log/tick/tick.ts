import { BlockCache } from '../../cache/cache.ts';
import { isSkuaError } from '../../base/errors.ts';
import type { StreamIndex } from '../../index/index.ts';
import { TABLE_JOBS } from '../../index/jobs/jobs.ts';
import { InlineJobs } from '../../memory/inline-jobs.ts';
import type { ObjectInfo } from '../../ports/object-store.ts';
import type { ScavengeStates } from '../../ports/scavenge-state.ts';
import type { Storage } from '../../ports/storage.ts';
import { DEFAULT_CONFIG, type ScavengeConfig, type ScavengeStore } from '../../scavenge/api.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import {
  CACHE_DEFAULT_BYTES,
  FRESH_DEFAULT_MS,
  type ObjectLogOptions,
  type ObjectWorld,
  REMOVE_AFTER_DEFAULT_MS,
} from '../api.ts';
import { manifestNumberOf, newUuid } from '../format/object-keys.ts';
import {
  newestManifestNumber,
  type ObjectManifest,
  type ObjectPoints,
  type ObjectScavenge,
  readManifest,
} from '../format/manifest.ts';
import { listLog, type LogList, listTail, readTail, type Tail } from '../tail/tail.ts';
import { indexLog, lastPoint, openIndex, settleTables, type TickIndexParts } from './compaction.ts';
import { requestedScavenge } from '../control/control.ts';
import { publish } from './publish.ts';
import { runSlice, SCAVENGE_STATE_BYTES_MAX, tellOfEnd, tellOfErasure } from './scavenge-slice.ts';
import { ObjectStorage } from './tick-storage.ts';
import { type Ages, agesOf, erasureOf, listManifests, Sweep, type Swept } from '../sweep/sweep.ts';
import { ATTRIBUTE_SETTING_DEFAULT } from '../../attributes/api.ts';
import { Lookup } from '../../streams/lookup/lookup.ts';
import { loadSetting } from '../../streams/load-setting/load-setting.ts';
import { isBehind } from '../format/manifest-attributes.ts';
import { TickAttributes } from './tick-attributes.ts';
import { TickMarks } from './tick-marks.ts';
import { TickLog } from './tick-log.ts';

/** What a tick is given, and what it says. */

export interface TickSettings {
  /** A tail is taken over when it has this many commits, ... */
  readonly compactCommitsMin: number;
  /** ... or this many bytes, ... */
  readonly compactBytesMin: number;
  /** ... or when the newest manifest is this old. */
  readonly compactAfterMs: number;
  /**
   * New files that a tick writes before it publishes, in bytes; the last one may exceed it. The scratch storage must
   * hold twice as much.
   */
  readonly ownBytesMax: number;
  /**
   * Largest scavenge database in bytes, which ticks bring to and fro; the scratch storage must hold it besides. A
   * larger one ends its run.
   */
  readonly stateBytesMax: number;
  readonly scavenge: Partial<ScavengeConfig>;
}

/** A tail is taken over at the latest when the newest manifest is this old, in milliseconds. */
export const COMPACT_AFTER_MS = 600_000;
const TICK_DEFAULTS: TickSettings = {
  compactCommitsMin: 64,
  compactBytesMin: 1_048_576,
  compactAfterMs: COMPACT_AFTER_MS,
  ownBytesMax: 201_326_592,
  stateBytesMax: SCAVENGE_STATE_BYTES_MAX,
  scavenge: {},
};

export interface TickParts {
  readonly world: ObjectWorld;
  readonly options?: ObjectLogOptions;
  readonly settings?: Partial<TickSettings>;
  /** Empty, and of this tick alone. The caller clears it afterwards. */
  readonly scratch: Storage;
  /** The scavenge database at its place in the scratch storage. */
  readonly scavengeStates: ScavengeStates;
  /** By the monotonic clock: everything is published by then. */
  readonly deadlineMs: number;
  /**
   * Lets the schedule have its say, which may ask for a scavenge or for its end (`createScheduler`). Left out where
   * scavenges are not scheduled.
   */
  readonly autoScavenge?: (deadlineMs: number) => Promise<void>;
  /**
   * Called at the end with the time that is left. What it throws ends the tick with that error; everything else is done
   * by then.
   */
  readonly shipBackup?: (deadlineMs: number) => Promise<unknown>;
  /** Tests inject a hash with collisions. */
  readonly hasher?: StreamHasher;
  /**
   * `openObjectStore`, or the store of a member. Called when a scavenge needs the streams; the tick closes what it
   * gets.
   */
  readonly open: (world: ObjectWorld, options: ObjectLogOptions) => Promise<TickStreams>;
}

/** The streams as a tick needs them. */
export interface TickStreams {
  readonly internals: ScavengeStore;
  /** Takes in all that there is. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

export interface TickReport {
  /**
   * `idle`: there was nothing to do. `published`: a manifest was written. `superseded`: another tick was first, and
   * nothing of this one counts.
   */
  readonly outcome: 'idle' | 'published' | 'superseded';
  /** Number of the manifest that this tick wrote, or else began with. */
  readonly manifest: number;
  /** What was taken over from the tail. */
  readonly commits: number;
  readonly bytes: number;
  readonly chunksCompleted: number;
  /** Some of the tail had to be left to the next tick. */
  readonly hasMore: boolean;
  /** The log is a cluster's. */
  readonly isCluster: boolean;
  /** The scavenge that goes on, or that was the last. */
  readonly scavenge: ObjectScavenge | null;
  /** Objects removed that are read no more. */
  readonly removed: number;
}

/** Of the time that a tick has, this part is kept for publishing what it did, and never more than this. */
const PUBLISH_SHARE = 1 / 4;
const PUBLISH_MS_MAX = 60_000;
/** Of the time for work this part goes into building attribute indexes; merges and a scavenge have the rest. */
const BUILD_SHARE = 1 / 2;
/** With less time than this left no part of a scavenge is begun. */
const SLICE_MS_MIN = 2_000;
/** After a run that failed the shared files of a cluster follow again when this has passed. */
const FOLLOW_AGAIN_MS = 3_600_000;
/** Names what scavenges the shared files of a cluster in the history: no member has such an address. */
const SHARED_FILES_ENDPOINT = 'shared-files:1';
const NO_POINTS: ObjectPoints = { seen: -1, reached: -1 };
/** Commits that one tick takes over at most. */
const TICK_COMMITS_MAX = 100_000;

/**
 * One bounded slice of everything that a store on object storage needs done: the tail becomes segments, chunks and
 * index tables, a scavenge goes on, what is read no more is removed. It works like a node on a view of the files,
 * and one new manifest puts all of it in force. It may be killed anywhere and any number may run at once: either a
 * tick's manifest is the next one, or nothing of it counts.
 */
export async function tick(parts: TickParts): Promise<TickReport> {
  const { world } = parts;
  const manifests = await listManifests(world.objects, world.onStrangers);
  // The process that opens the log begins it. A tick never does: one that is gone must not become an empty one.
  if (manifests.length === 0) return { ...NOTHING, outcome: 'idle', manifest: 0 };
  const number = manifestNumberOf(manifests[0]!.key)!;
  const manifest = await readManifest(world.objects, number, world.digests);
  // It was swept away between two requests, so others are at work.
  if (manifest === null) return { ...NOTHING, outcome: 'superseded', manifest: number };
  const report = await attempt(parts, manifest, manifests);
  await parts.shipBackup?.(parts.deadlineMs);
  return report;
}

async function attempt(
  parts: TickParts,
  manifest: ObjectManifest,
  manifests: readonly ObjectInfo[],
): Promise<TickReport> {
  const { objects, log } = parts.world;
  const running = new Tick(parts, manifest, manifests);
  // A manifest must not name what was uploaded into another root than it lies in itself.
  const forget = objects.recognise?.(() => Promise.resolve('a tick is at work')) ?? (() => {});
  try {
    return await running.run();
  } catch (error) {
    if ((await newestManifestNumber(objects)) === running.number) throw error;
    // What this tick stands on may have been removed under it.
    log.info('another tick was first; this one ends', { manifest: manifest.number, error: String(error) });
    return { ...NOTHING, outcome: 'superseded', manifest: manifest.number, isCluster: manifest.cluster === true };
  } finally {
    forget();
    await running.close();
  }
}

const NOTHING = {
  commits: 0,
  bytes: 0,
  chunksCompleted: 0,
  hasMore: false,
  isCluster: false,
  scavenge: null,
  removed: 0,
} as const;

class Tick {
  readonly #parts: TickParts;
  readonly #settings: TickSettings;
  readonly #manifest: ObjectManifest;
  /** All that there were when the tick began, the newest first. */
  readonly #manifests: readonly ObjectInfo[];
  readonly #cache: BlockCache;
  readonly #storage: ObjectStorage;
  readonly #log: TickLog;
  readonly #jobs: InlineJobs;
  /** Monotonic time from which on everything is about publishing. */
  readonly #workUntilMs: number;
  /** Of the manifest that this tick has written, or else stands on. */
  number: number;
  #index: StreamIndex | null = null;
  #instance: TickStreams | null = null;
  /** Why commits were taken over and not all of their index entries. */
  #torn: { readonly error: unknown } | null = null;
  readonly #marks: TickMarks;
  readonly #attributes: TickAttributes;
  #hasMore = false;
  /** Of a cluster's log. */
  #points: ObjectPoints | undefined;

  constructor(parts: TickParts, manifest: ObjectManifest, manifests: readonly ObjectInfo[]) {
    this.#parts = parts;
    this.#settings = { ...TICK_DEFAULTS, ...parts.settings };
    this.#manifest = manifest;
    this.number = manifest.number;
    this.#points = manifest.points;
    this.#manifests = manifests;
    const {
      world: { objects, digests, ids, clock },
      options,
      scratch,
      deadlineMs,
    } = parts;
    this.#cache = new BlockCache(options?.cacheBytes ?? CACHE_DEFAULT_BYTES);
    this.#storage = ObjectStorage.of(manifest, objects, scratch);
    this.#marks = new TickMarks(this.#storage, digests);
    this.#log = TickLog.of(manifest, { storage: this.#storage, scratch, objects, digests, ids, cache: this.#cache });
    this.#jobs = new InlineJobs({
      jobs: TABLE_JOBS,
      storage: this.#storage,
      digests,
      ids,
      clock,
      scavengeStates: parts.scavengeStates,
    });
    this.#attributes = new TickAttributes({
      world: parts.world,
      storage: this.#storage,
      cache: this.#cache,
      jobs: this.#jobs,
      base: manifest,
      log: this.#log,
      ownBytesMax: this.#settings.ownBytesMax,
    });
    this.#workUntilMs =
      deadlineMs - Math.min(PUBLISH_MS_MAX, Math.max(0, deadlineMs - clock.monotonicMs()) * PUBLISH_SHARE);
  }

  async run(): Promise<TickReport> {
    const manifest = this.#manifest;
    if (manifest.cluster !== true) await this.#parts.autoScavenge?.(this.#workUntilMs);
    const last = await this.#told(manifest.scavenge);
    const log = await listLog(this.#parts.world, this.#log.boundary, TICK_COMMITS_MAX);
    const { tail } = log;
    if (tail === null) return this.#report('superseded', manifest, 0);
    const running = await this.#toRun();
    const sweep = this.#sweepOf(log);
    const lacksAttributes = isBehind(manifest);
    if (
      running === null &&
      last === manifest.scavenge &&
      !lacksAttributes &&
      !this.#isDue(tail) &&
      !(await sweep.isDue())
    )
      return this.#report('idle', manifest, 0);
    if (tail.sizes.length > 0) await this.#compact(tail);
    // No older tick has said which indexes the log has.
    else if (lacksAttributes && manifest.attributes === undefined) await this.#followSetting();
    await this.#attributes.build(this.#buildUntilMs());
    if (tail.sizes.length > 0 || lacksAttributes) await this.#settle();
    // What was just taken over may hold a point.
    const toRun = running ?? this.#toFollow();
    const scavenge = toRun === null ? last : await this.#scavenge(toRun);
    await this.#index?.close();
    this.#index = null;
    await this.#attributes.close();
    return this.#publish(scavenge, sweep);
  }

  #buildUntilMs(): number {
    const nowMs = this.#parts.world.clock.monotonicMs();
    return nowMs + Math.max(0, this.#workUntilMs - nowMs) * BUILD_SHARE;
  }

  /** Goes by the newest setting of attribute indexes that has been taken over. */
  async #followSetting(): Promise<void> {
    const setting = await loadSetting(new Lookup(this.#log.table, await this.#openIndex()));
    await this.#attributes.follow(setting ?? ATTRIBUTE_SETTING_DEFAULT);
  }

  #sweepOf(log: LogList): Sweep {
    return new Sweep({
      world: this.#parts.world,
      base: this.#manifest,
      manifests: this.#manifests,
      log,
      ages: this.#ages,
    });
  }

  get #ages(): Ages {
    const { freshMs = FRESH_DEFAULT_MS, removeAfterMs = REMOVE_AFTER_DEFAULT_MS } = this.#parts.options ?? {};
    return agesOf(freshMs, removeAfterMs);
  }

  async #open(): Promise<TickStreams> {
    const { world, options = {}, open } = this.#parts;
    return (this.#instance ??= await open(world, options));
  }

  /** Sees to it that the end of the last run is in the history: a tick may have died between the manifest and that. */
  async #told(last: ObjectScavenge | null, erasure = this.#manifest.erasure): Promise<ObjectScavenge | null> {
    if (last === null || last.state === 'running' || last.isTold) return last;
    const instance = await this.#open();
    await instance.refresh();
    await tellOfEnd(
      this.#parts.world,
      instance.internals,
      this.#scavengeConfig(),
      last,
      erasure?.scavengeId === last.scavengeId ? erasure.untilMs : null,
    );
    return { ...last, isTold: true };
  }

  #scavengeConfig(): ScavengeConfig {
    const config = { ...DEFAULT_CONFIG, ...this.#settings.scavenge, repairHistory: false, checkState: false };
    return this.#manifest.cluster === true
      ? { ...config, unsafeIgnoreHardDelete: false, nodeEndpoint: SHARED_FILES_ENDPOINT }
      : config;
  }

  #listTail(): Promise<Tail | null> {
    return listTail(this.#parts.world.objects, this.#log.boundary, TICK_COMMITS_MAX);
  }

  /** The run that goes on, or the one that was asked for. */
  async #toRun(): Promise<ObjectScavenge | null> {
    const { scavenge } = this.#manifest;
    if (scavenge?.state === 'running') return scavenge;
    if (this.#manifest.cluster === true) return this.#toFollow();
    const { objects, clock } = this.#parts.world;
    const requested = await requestedScavenge(objects, this.#manifest);
    if (requested === null) return null;
    const { scavengeId, threshold, syncOnly, startAfresh = false } = requested;
    return {
      scavengeId,
      threshold,
      syncOnly,
      ...(startAfresh && { startAfresh }),
      startedMs: Math.floor(clock.nowMs()),
      state: 'running',
      endedMs: null,
      isTold: false,
      result: null,
      error: null,
    };
  }

  /**
   * The run by which the shared files of a cluster follow a scavenge point of its members: no member shall download
   * what was erased.
   */
  #toFollow(): ObjectScavenge | null {
    const { cluster, scavenge } = this.#manifest;
    const { seen, reached } = this.#points ?? NO_POINTS;
    if (cluster !== true || seen <= reached) return null;
    const { clock, ids } = this.#parts.world;
    const nowMs = Math.floor(clock.nowMs());
    const hasFailed = scavenge !== null && scavenge.state === 'ended' && scavenge.result !== 'Success';
    if (hasFailed && nowMs - (scavenge.endedMs ?? 0) < FOLLOW_AGAIN_MS) return null;
    return {
      scavengeId: newUuid(ids),
      threshold: 0,
      syncOnly: true,
      startedMs: nowMs,
      state: 'running',
      endedMs: null,
      isTold: false,
      result: null,
      error: null,
    };
  }

  #isDue({ sizes, bytes }: Tail): boolean {
    const { compactCommitsMin, compactBytesMin, compactAfterMs } = this.#settings;
    const isOld = this.#parts.world.clock.nowMs() - this.#manifest.writtenMs >= compactAfterMs;
    return sizes.length > 0 && (sizes.length >= compactCommitsMin || bytes >= compactBytesMin || isOld);
  }

  /**
   * Takes over the commits of the tail, as far as time and space allow, and their index entries. False when some are
   * left.
   */
  async #compact(tail: Tail): Promise<boolean> {
    const { objects, digests, clock } = this.#parts.world;
    let index: StreamIndex;
    try {
      for await (const commit of readTail(objects, digests, tail)) {
        await this.#log.take(commit);
        if (commit.hasMarks) this.#marks.take(commit);
        if (clock.monotonicMs() >= this.#workUntilMs || this.#log.bytesTaken >= this.#settings.ownBytesMax) break;
      }
      this.#log.show();
      // Side by side: each is a row of requests, and a slow store leaves a tick few of them.
      [index] = await Promise.all([this.#openIndex(), this.#attributes.openAll()]);
      await indexLog(index, this.#log, this.#parts.world);
      await this.#marks.save();
    } catch (error) {
      this.#torn = { error };
      throw error;
    }
    if (this.#manifest.cluster === true)
      this.#points = { ...NO_POINTS, ...this.#points, seen: await lastPoint(index, this.#log) };
    await this.#followSetting();
    await this.#attributes.take();
    this.#hasMore = this.#log.boundary !== tail.from + tail.sizes.length;
    return !this.#hasMore;
  }

  async #openIndex(): Promise<StreamIndex> {
    return (this.#index ??= await openIndex(this.#indexParts(), this.#log.logEnd));
  }

  #indexParts(): TickIndexParts {
    const { world, options, hasher } = this.#parts;
    return {
      world,
      storage: this.#storage,
      cache: this.#cache,
      jobs: this.#jobs,
      ...(options?.indexCacheDepth !== undefined && { cacheDepth: options.indexCacheDepth }),
      ...(hasher !== undefined && { hasher }),
    };
  }

  /** Merges index tables. A merge that takes too long is left to a later tick. */
  async #settle(): Promise<void> {
    const { clock } = this.#parts.world;
    await this.#index?.close();
    this.#index = null;
    const ending = new AbortController();
    const onProgress = (): void => {
      if (clock.monotonicMs() >= this.#workUntilMs) ending.abort();
    };
    try {
      const jobOptions = { signal: ending.signal, onProgress };
      const settled = await Promise.allSettled([
        settleTables(this.#indexParts(), jobOptions),
        this.#attributes.settle(jobOptions),
      ]);
      for (const one of settled) if (one.status === 'rejected') throw one.reason;
    } catch (error) {
      if (!isSkuaError(error, 'aborted')) throw error;
    }
  }

  /** Does a part of the run, or leaves it as it is when there is no time. */
  async #scavenge(running: ObjectScavenge): Promise<ObjectScavenge> {
    const { world, scratch, scavengeStates, hasher } = this.#parts;
    if (this.#workUntilMs - world.clock.monotonicMs() < SLICE_MS_MIN) return running;
    const instance = await this.#open();
    const [index] = await Promise.all([this.#openIndex(), this.#attributes.openAll(), instance.refresh()]);
    const compact = async (): Promise<boolean> => {
      const tail = await this.#listTail();
      return tail !== null && (tail.sizes.length === 0 || (await this.#compact(tail)));
    };
    return runSlice(
      {
        world,
        scratch,
        compact,
        storage: this.#storage,
        states: scavengeStates,
        cache: this.#cache,
        log: this.#log,
        index,
        attributes: this.#attributes,
        store: instance.internals,
        manifestNumber: this.#manifest.number,
        config: this.#scavengeConfig(),
        untilMs: this.#workUntilMs,
        ownBytesMax: this.#settings.ownBytesMax,
        stateBytesMax: this.#settings.stateBytesMax,
        ...(hasher !== undefined && { hasher }),
      },
      running,
    );
  }

  async #publish(scavenge: ObjectScavenge | null, sweep: Sweep): Promise<TickReport> {
    const { world, deadlineMs } = this.#parts;
    // Readers would look in vain for what the files have and the index has not.
    if (this.#torn !== null) throw this.#torn.error;
    const { swept, failure } = await this.#swept(sweep);
    const hasEnded = scavenge?.state === 'ended' && !scavenge.isTold;
    const erasure = hasEnded
      ? erasureOf(scavenge.scavengeId, this.#manifest.number + 1, Math.floor(world.clock.nowMs()), this.#ages)
      : swept.erasure;
    const points =
      this.#points !== undefined && hasEnded && scavenge.result === 'Success'
        ? { ...this.#points, reached: scavenge.reached ?? this.#points.seen }
        : this.#points;
    const manifest = await publish({
      world,
      storage: this.#storage,
      log: this.#log,
      base: this.#manifest,
      scavenge,
      forgotten: swept.forgotten,
      erasure,
      points,
      attributes: this.#attributes.said,
      deadlineMs,
    });
    if (manifest === null) return this.#report('superseded', this.#manifest, 0);
    this.number = manifest.number;
    world.log.info('a tick has written a manifest', {
      manifest: manifest.number,
      boundary: manifest.boundary,
      chunks: manifest.chunks.length,
      chunksCompleted: this.#log.chunksCompleted,
      scavenge: scavenge?.state ?? null,
    });
    if (failure !== null) throw failure.error;
    // Only the newest manifest says what is so: one that was overtaken, or came so late that its number was free again,
    // has no say.
    if ((await newestManifestNumber(world.objects)) === manifest.number) await this.#told(scavenge, erasure);
    return this.#report('published', manifest, swept.removed);
  }

  /**
   * Removes what is read no more. What can't be removed keeps no commit from the files: it is tried again, and
   * the tick fails in the end.
   */
  async #swept(sweep: Sweep): Promise<{ readonly swept: Swept; readonly failure: { readonly error: unknown } | null }> {
    const { erasure } = this.#manifest;
    try {
      const swept = await sweep.run();
      // Told before the manifest says so, and once however often.
      if (swept.erasure?.goneMs != null && erasure?.goneMs === null)
        await this.#toldOfErasure(swept.erasure.scavengeId);
      return { swept, failure: null };
    } catch (error) {
      return { swept: { removed: 0, forgotten: new Set(), erasure }, failure: { error } };
    }
  }

  async #toldOfErasure(scavengeId: string): Promise<void> {
    const instance = await this.#open();
    await instance.refresh();
    await tellOfErasure(this.#parts.world, instance.internals, this.#scavengeConfig(), scavengeId);
  }

  #report(outcome: TickReport['outcome'], manifest: ObjectManifest, removed: number): TickReport {
    const counts = outcome === 'published';
    const { boundary, bytesTaken, chunksCompleted } = this.#log;
    return {
      outcome,
      manifest: manifest.number,
      removed,
      scavenge: manifest.scavenge,
      isCluster: manifest.cluster === true,
      hasMore: counts && this.#hasMore,
      commits: counts ? boundary - this.#manifest.boundary : 0,
      bytes: counts ? bytesTaken : 0,
      chunksCompleted: counts ? chunksCompleted : 0,
    };
  }

  async close(): Promise<void> {
    await this.#index?.close();
    await this.#attributes.close();
    await this.#log.close().catch(() => {});
    await this.#jobs.close();
    await this.#instance?.close();
  }
}
