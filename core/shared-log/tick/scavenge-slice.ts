import type { BlockCache } from '../../cache/cache.ts';
import { type ErrorCode, isSkuaError, SkuaError } from '../../base/errors.ts';
import type { StreamIndex } from '../../index/index.ts';
import { InlineJobs } from '../../memory/inline-jobs.ts';
import type { Job, JobContext } from '../../ports/jobs.ts';
import { type ScavengeStates, stateOptionsOf } from '../../ports/scavenge-state.ts';
import type { Storage } from '../../ports/storage.ts';
import type { ScavengeConfig, ScavengeDeps, ScavengeResult, ScavengeStore } from '../../scavenge/api.ts';
import { waitingPoint } from '../../scavenge/points/points.ts';
import { historyStreamOf, HistoryWriter, sumsOf, writeEnd, TRACES_TYPE } from '../../scavenge/history/history.ts';
import { SCAVENGE_JOBS } from '../../scavenge/jobs/jobs.ts';
import { type ActiveRun, checkedOptions, launchRun } from '../../scavenge/launch/launch.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import type { ObjectWorld } from '../api.ts';
import { newestManifestNumber, type ObjectScavenge, type ObjectScavengeProgress } from '../format/manifest.ts';
import type { ObjectStorage } from './tick-storage.ts';
import { derivedId, stopKey } from '../control/control.ts';
import type { TickLog } from './tick-log.ts';

export const STATE_PATH = 'index/scavenging/scavenging.db';
/** SQLite's log beside the database. */
const STATE_LOG_PATH = `${STATE_PATH}-wal`;
/** Largest scavenge database in bytes: ticks bring it to and fro. */
export const SCAVENGE_STATE_BYTES_MAX = 268_435_456;
/**
 * How often a slice looks whether it is to stop, whether it still counts, and how much space it uses; before each job
 * too.
 */
const LOOK_MS = 2_000;
/** Errors that say that the object store can't be reached: the run is sound, and the next tick goes on with it. */
const OUTAGES: ReadonlySet<string> = new Set([
  'storage_unreachable',
  'storage_throttled',
  'storage_denied',
  'outcome_unknown',
  'commit_outcome_unknown',
  'commit_contended',
  'clock_skewed',
]);

interface SliceParts {
  readonly world: ObjectWorld;
  readonly storage: ObjectStorage;
  /** The files of the scavenge database are in it under their own names. */
  readonly scratch: Storage;
  readonly states: ScavengeStates;
  /** On which the work stands. */
  readonly manifestNumber: number;
  readonly cache: BlockCache;
  readonly log: TickLog;
  readonly index: StreamIndex;
  /** The attribute indexes, which are open. */
  readonly attributes: ScavengeDeps['data']['attributes'];
  /** The streams as they are now. */
  readonly store: ScavengeStore;
  /** Takes over the commits that there are, and their index entries. False when some had to be left. */
  readonly compact: () => Promise<boolean>;
  readonly config: ScavengeConfig;
  /** Monotonic time at which the slice ends. */
  readonly untilMs: number;
  /** Bytes of new files at which it ends too. */
  readonly ownBytesMax: number;
  /** Largest scavenge database in bytes. */
  readonly stateBytesMax: number;
  readonly hasher?: StreamHasher;
}

/** Does a part of a run, and says how the run stands then: `running` when it goes on with the next tick. */
export async function runSlice(parts: SliceParts, running: ObjectScavenge): Promise<ObjectScavenge> {
  const { storage, scratch, stateBytesMax } = parts;
  if (storage.base(STATE_PATH) !== undefined) {
    // From here on it is a file of the scratch storage, where SQLite finds it.
    await (await storage.open(STATE_PATH, 'write')).close();
  }
  const ended = await new Slice(parts, running).run();
  const stateBytes = (await scratch.size(STATE_PATH)) ?? 0;
  if (stateBytes > stateBytesMax) {
    // It is always safe to begin without it.
    await storage.remove(STATE_PATH);
    return endedAs(running, 'Errored', tooLarge(stateBytes, stateBytesMax).message, parts.world);
  }
  await storage.adopt(STATE_PATH);
  return ended;
}

function endedAs(
  running: ObjectScavenge,
  result: ScavengeResult,
  error: string | null,
  { clock }: ObjectWorld,
): ObjectScavenge {
  return { ...running, state: 'ended', result, error, endedMs: Math.floor(clock.nowMs()), isTold: false };
}

function historyWriter(
  { ids, log, digests }: ObjectWorld,
  store: ScavengeStore,
  { nodeEndpoint, historyMaxAgeDays }: ScavengeConfig,
): HistoryWriter {
  return new HistoryWriter({
    store,
    ids,
    log,
    nodeEndpoint,
    historyMaxAgeDays,
    idOf: (text) => derivedId(text, digests),
  });
}

/**
 * Writes the end of a run into its history, once however often it is called. Of two ticks at work on one run only that
 * one may tell of its end whose manifest counts, so this comes after the manifest.
 */
export async function tellOfEnd(
  world: ObjectWorld,
  store: ScavengeStore,
  config: ScavengeConfig,
  { scavengeId, startedMs, endedMs, result, error }: ObjectScavenge,
  tracesUntilMs: number | null,
): Promise<void> {
  const writer = historyWriter(world, store, config);
  const sums = await sumsOf(writer, scavengeId, new AbortController().signal);
  await writeEnd(writer, scavengeId, sums, {
    result: result as ScavengeResult,
    error,
    elapsedMs: Math.max(0, (endedMs ?? startedMs) - startedMs),
    ...(tracesUntilMs !== null && { tracesUntilMs }),
  });
}

/** Writes into the history of a run that nothing is left of what it removed, once however often it is called. */
export async function tellOfErasure(
  world: ObjectWorld,
  store: ScavengeStore,
  config: ScavengeConfig,
  scavengeId: string,
): Promise<void> {
  await historyWriter(world, store, config).writeEvent(historyStreamOf(scavengeId), TRACES_TYPE, {
    scavengeId,
    nodeEndpoint: config.nodeEndpoint,
  });
}

function tooLarge(bytes: number, limit: number): SkuaError {
  return new SkuaError(
    'scavenge_state_too_large',
    `The scavenge database has ${bytes} bytes and the limit on object storage is ${limit}: scavenge this store on a node, or split it.`,
    { bytes, limit },
  );
}

/** A table in which nothing was to be done: each slice looks at those before the one with which it comes further. */
function wroteNoTable(result: unknown): boolean {
  return typeof result === 'object' && result !== null && (result as { wasWritten?: unknown }).wasWritten === false;
}

class Slice {
  readonly #parts: SliceParts;
  readonly #running: ObjectScavenge;
  #run: ActiveRun | null = null;
  #lookedMs: number;
  /** The tail is being taken over for the run, which may have ended meanwhile. */
  #completing: Promise<void> = Promise.resolve();
  /** Of the slice; so that it comes further, however large its files are, one is always done. */
  #jobsDone = 0;

  constructor(parts: SliceParts, running: ObjectScavenge) {
    this.#parts = parts;
    this.#running = running;
    this.#lookedMs = parts.world.clock.monotonicMs();
  }

  async run(): Promise<ObjectScavenge> {
    const { scavengeId, startedMs, threshold, syncOnly, startAfresh = false } = this.#running;
    const options = { ...checkedOptions({ threshold, syncOnly, startAfresh }), freshSinceMs: startedMs };
    const { world, store, states, config } = this.#parts;
    const writer = historyWriter(world, store, config);
    const jobs = this.#jobs();
    let ended: { readonly result: ScavengeResult; readonly error: string | null } = {
      result: 'Interrupted',
      error: null,
    };
    const isToStop = await this.#isToStop();
    try {
      this.#run = launchRun(
        this.#deps(jobs),
        writer,
        scavengeId,
        options,
        (result, error) => {
          ended = { result, error };
        },
        false,
      );
      if (isToStop) this.#run.stop('stopped');
      await this.#run.ended;
    } finally {
      // What the tick puts in force must not move on meanwhile.
      await this.#completing;
      await jobs.close();
    }
    const { result, error } = ended;
    const running = await this.#begun(this.#run);
    if (result === 'Interrupted') return { ...running, progress: this.#progress(this.#run) };
    const waiting = result === 'Success' ? null : await waitingPoint(this.#deps(jobs));
    const reached =
      result === 'Success' ? states.storedCheckpoint(stateOptionsOf(config, 1))?.point.eventNumber : undefined;
    return {
      ...endedAs(running, result, error, world),
      ...(waiting !== null && { waiting }),
      ...(reached !== undefined && { reached }),
    };
  }

  /**
   * The run with what its first part has decided: to later parts its own point is that of an unfinished run. What was
   * begun afresh goes into force with it.
   */
  async #begun(run: ActiveRun): Promise<ObjectScavenge> {
    const { startAfresh, ...running } = this.#running;
    const isToStartAfresh = startAfresh === true && !run.isAfresh();
    const decided = running.olderPoint === undefined ? await run.decided : running.olderPoint;
    // A point that a part of this very run has written, of which nothing else came into force, is not older than the
    // run.
    const olderPoint =
      decided?.why === 'unreached' && decided.point.effectiveNowMs >= running.startedMs ? null : decided;
    return { ...running, ...(isToStartAfresh && { startAfresh }), ...(olderPoint !== undefined && { olderPoint }) };
  }

  /** For callers that ask before the next part ends. */
  #progress(run: ActiveRun): ObjectScavengeProgress {
    const { phase, chunksDone, chunksTotal, bytesDone, bytesTotal, bytesReclaimed } = run.progress();
    return {
      phase,
      chunksDone,
      chunksTotal,
      bytesDone,
      bytesTotal,
      bytesReclaimed: (this.#running.progress?.bytesReclaimed ?? 0) + bytesReclaimed,
    };
  }

  #deps(jobs: InlineJobs): ScavengeDeps {
    const { world, storage, cache, states, index, attributes = null, log, config } = this.#parts;
    return {
      data: { store: this.#store(), index, attributes, table: log.table, cache, withNextChunk: (work) => work() },
      ports: { ...world, storage, jobs, states },
      config: { ...config, mergesWhileExecuting: false },
    };
  }

  /** The streams, with a chunk that is completed only when its file is here. */
  #store(): ScavengeStore {
    const { store } = this.#parts;
    const guarded = <T>(work: () => Promise<T>, pardoned?: ErrorCode): Promise<T> =>
      work().catch((error: unknown) => this.#failed(error, pardoned));
    return {
      redactions: store.redactions,
      append: (...args) => guarded(() => store.append(...args)),
      // Another tick that works on the same run was first: the next one goes on from there.
      appendInternal: (...args) => guarded(() => store.appendInternal(...args), 'wrong_expected_version'),
      readStream: (...args) => guarded(() => store.readStream(...args)),
      streamInfo: (...args) => guarded(() => store.streamInfo(...args)),
      forgetTombstones: () => store.forgetTombstones(),
      completeChunk: (position) => {
        const completing = guarded(() => this.#completeChunk(position));
        this.#completing = completing.catch(() => {});
        return completing;
      },
    };
  }

  /** The chunk of the scavenge point is complete when all commits up to its end have been taken over. */
  async #completeChunk(position: number): Promise<void> {
    const { store, log, compact } = this.#parts;
    const isComplete = () => log.table.chunkAt(position)?.isCompleted === true;
    let hasAll = await compact();
    if (hasAll && !isComplete()) {
      await store.completeChunk(position);
      hasAll = await compact();
    }
    if (hasAll || isComplete()) return;
    this.#run?.stop('interrupted');
    throw new SkuaError(
      'aborted',
      'The tail is too long to be compacted at once: the scavenge continues with the next tick.',
    );
  }

  /** An outage ends the slice and not the run. */
  #failed(error: unknown, pardoned?: ErrorCode): never {
    if (isSkuaError(error) && (OUTAGES.has(error.code) || error.code === pardoned)) {
      this.#parts.world.log.warn('SCAVENGING: this part of the run ends early; the next tick continues.', { error });
      this.#run?.stop('interrupted');
    }
    throw error;
  }

  #jobs(): InlineJobs {
    const { world, storage, states, hasher } = this.#parts;
    const { digests, ids, clock } = world;
    const jobs = Object.fromEntries(Object.entries(SCAVENGE_JOBS).map(([name, job]) => [name, this.#watched(job)]));
    return new InlineJobs({
      jobs,
      storage,
      digests,
      ids,
      clock,
      scavengeStates: states,
      ...(hasher !== undefined && { hasher }),
    });
  }

  /** The job, which looks before it begins, and now and then, whether the slice is to end. */
  #watched(job: Job): Job {
    return async (args, context: JobContext) => {
      const checkpoint = async (): Promise<void> => {
        await this.#check(false);
        await context.checkpoint();
      };
      try {
        await this.#check(true);
        await context.checkpoint();
        const result = await job(args, { ...context, checkpoint });
        if (!wroteNoTable(result)) this.#jobsDone++;
        return result;
      } catch (error) {
        return this.#failed(error);
      }
    };
  }

  async #check(isDue: boolean): Promise<void> {
    const { world, scratch, storage, untilMs, ownBytesMax, stateBytesMax, manifestNumber } = this.#parts;
    const nowMs = world.clock.monotonicMs();
    if (nowMs >= untilMs) this.#run?.stop('interrupted');
    if (!isDue && nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    const stateBytes = ((await scratch.size(STATE_PATH)) ?? 0) + ((await scratch.size(STATE_LOG_PATH)) ?? 0);
    if (stateBytes > stateBytesMax) throw tooLarge(stateBytes, stateBytesMax);
    if (isDue && this.#jobsDone > 0 && (await storage.ownBytes()) > ownBytesMax) this.#run?.stop('interrupted');
    // What another tick has put in force makes this work useless.
    if ((await newestManifestNumber(world.objects)) !== manifestNumber) this.#run?.stop('interrupted');
    else if (await this.#isToStop()) this.#run?.stop('stopped');
  }

  async #isToStop(): Promise<boolean> {
    return (await this.#parts.world.objects.head(stopKey(this.#running.scavengeId))) !== null;
  }
}
