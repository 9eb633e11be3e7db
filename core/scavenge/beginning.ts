import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import type { Ids } from '../ports/ids.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { ScavengeCheckpoint, ScavengePoint } from '../ports/scavenge-state.ts';
import { NO_STREAM, type StoredEvent } from '../streams/api.ts';
import type { EventStoreInternals } from '../streams/streams.ts';
import { POINT_TYPE, POINTS_STREAM } from '../streams/format/names.ts';
import { decodeText, encodeText } from '../base/text.ts';
import { ACCUMULATE_JOB } from './accumulation.ts';
import type { OlderPoint } from './api.ts';
import { type RunContext, type ScavengeDeps, stateOptionsOf } from './run-context.ts';
import { pointName } from './run-log.ts';
import type { RunSettings } from './sources/run-settings.ts';

const NO_BYTES = new Uint8Array(0);
/** Of a threshold. */
const I32_MIN = -2_147_483_648;
const I32_MAX = 2_147_483_647;

/** What an administrator asked for that matters only at the beginning. */
export interface BeginningOptions {
  readonly threshold: number;
  readonly syncOnly: boolean;
  readonly startAfresh: boolean;
  /** Where one run has several parts: a point written from this time on, in milliseconds since 1970, is new enough to start afresh with. */
  readonly freshSinceMs?: number;
}

/** Finds out where to begin. Null when there is nothing to do. */
export async function beginRun(run: RunContext, stored: ScavengeCheckpoint | null, options: BeginningOptions): Promise<ScavengeCheckpoint | null> {
  const { data: { store, table }, ports: { ids, jobs }, config: { keepsDeletedData } } = run.deps;
  if (stored !== null) checkBelongsToLog(stored, table.end);
  const isResumed = stored !== null && stored.stage !== 'Done' && !options.startAfresh;
  const latest = isResumed ? null : await run.orAborted(readLatestPoint(store));
  const beginning = decideBeginning(stored, latest, options, table.chunkSize);
  run.decided(olderPointOf(beginning));
  if (beginning.kind === 'nothing') {
    run.lines.nothingToDo();
    return null;
  }
  if (beginning.kind === 'resume') {
    run.point = markedPoint(beginning.checkpoint.point, beginning.checkpoint.point.emptiesDeleted === true && !keepsDeletedData);
    run.lines.resumed(beginning.checkpoint.stage, run.point);
    return beginning.checkpoint;
  }
  run.check();
  // While the point is written and its chunk completed, there will be threads for what comes behind that.
  jobs.prepare?.(ACCUMULATE_JOB);
  jobs.prepare?.();
  const { point, isOwn } = beginning.kind === 'use' ? { point: beginning.point, isOwn: false } : await run.deps.data.withNextChunk(() => writePoint(store, ids, beginning.after, options.threshold));
  run.point = markedPoint(notAhead(point, run.deps.ports.clock.nowMs()), !keepsDeletedData);
  run.lines.usesPoint(run.point, isOwn ? 'created' : 'existing', stored === null ? null : pointName(stored.point));
  const fromChunk = missesDeleted(run, stored) ? 0 : beginning.fromChunk;
  return { point: run.point, stage: 'Accumulating', ...(fromChunk > 0 && { doneChunk: fromChunk - 1 }) };
}

/**
 * True when rows of soft-deleted streams may be gone from the database though their last events still have their data: the reference, an older version, or runs that keep these data have written it. A run
 * that begins then learns all of the log anew.
 */
export function missesDeleted({ deps: { config } }: Pick<RunContext, 'deps'>, stored: ScavengeCheckpoint | null): stored is ScavengeCheckpoint {
  return stored !== null && !config.keepsDeletedData && stored.point.emptiesDeleted !== true;
}

function markedPoint({ emptiesDeleted: _before, ...point }: ScavengePoint, isMarked: boolean): ScavengePoint {
  return isMarked ? { ...point, emptiesDeleted: true } : point;
}

export const ABANDON_JOB = 'scavenge.abandon';

interface AbandonArgs {
  readonly settings: RunSettings;
  readonly first: ScavengeCheckpoint;
}

/**
 * Begins afresh, once the chunk of the point is complete: puts the beginning of this run in the place of one that did not end, if there is
 * one. What that one has learnt of the log stays, since each chunk of it is read once; so do the chunks that it has rewritten. What it has
 * decided is decided anew. All of it is one transaction: a crash before it leaves the unfinished run as it was, beside one more scavenge
 * point, and a crash behind it this run.
 */
export async function startAfresh(run: RunContext, stored: ScavengeCheckpoint | null, first: ScavengeCheckpoint): Promise<void> {
  if (stored !== null && stored.stage !== 'Done') {
    const args: AbandonArgs = { settings: run.settings(), first };
    await run.job(ABANDON_JOB, args, () => {});
    run.lines.abandoned(stored.stage, stored.point);
  }
  run.isAfresh = true;
}

/** The job. */
export async function abandonUnfinished({ settings, first }: AbandonArgs, context: JobContext): Promise<Record<string, never>> {
  await context.checkpoint();
  const state = context.scavengeStates.open(settings.state);
  try {
    state.begin();
    try {
      state.forgetDiscardPoints();
    } catch (error) {
      state.rollback();
      throw error;
    }
    state.commit(first);
  } finally {
    state.close();
  }
  return {};
}

/** The older point to which a run that began now would go; null where it would write a new one, and where that can't be told. */
export async function waitingPoint({ data: { store, table }, ports: { states, log }, config }: Pick<ScavengeDeps, 'data' | 'ports' | 'config'>): Promise<OlderPoint | null> {
  try {
    const stored = states.storedCheckpoint(stateOptionsOf(config, 1));
    if (stored !== null && stored.point.position >= table.end) return null;
    const latest = stored !== null && stored.stage !== 'Done' ? null : await readLatestPoint(store);
    return olderPointOf(decideBeginning(stored, latest, { syncOnly: true, startAfresh: false }, table.chunkSize));
  } catch (error) {
    // Whoever only asks must not be stopped by it; the next start is, and says so.
    log.debug('SCAVENGING: it could not be read whether a scavenge waits to go on.', { error: String(error) });
    return null;
  }
}

function olderPointOf(beginning: Beginning): OlderPoint | null {
  if (beginning.kind === 'resume') return { point: beginning.checkpoint.point, why: 'unfinished' };
  return beginning.kind === 'use' ? { point: beginning.point, why: 'unreached' } : null;
}

/**
 * Sees to it that the chunk of the point is complete: a full disk or the end of the process can come between the two.
 * Nothing may be accumulated before, as an open chunk is not read and would never be read later.
 */
export async function completePointsChunk(run: RunContext): Promise<void> {
  const { store, table } = run.deps.data;
  const { position } = run.point;
  const isComplete = () => table.chunkAt(position)?.isCompleted === true;
  if (isComplete()) return;
  await run.orAborted(store.completeChunk(position));
  if (!isComplete()) throw new SkuaError('scavenge_failed', `The chunk of ${pointName(run.point)} could not be completed: free some disk space, and start again`, { position });
}

/** What was learnt of another log, or of a part of this one that was cut off since, must not be applied. */
function checkBelongsToLog({ point }: ScavengeCheckpoint, logEnd: number): void {
  if (point.position < logEnd) return;
  throw new SkuaError('scavenge_state_invalid', `The scavenge database reaches to position ${point.position}, beyond the end of the log at ${logEnd}: it belongs to another log, or this one was truncated. Delete index/scavenging/scavenging.db, which is always safe, and start again`, { position: point.position, logEnd });
}

/** What a run does first. */
type Beginning =
  /** Goes on from this checkpoint, for its scavenge point. */
  | { readonly kind: 'resume'; readonly checkpoint: ScavengeCheckpoint }
  /** Scavenges to a point that is in the log, accumulating from this logical chunk on. */
  | { readonly kind: 'use'; readonly point: ScavengePoint; readonly fromChunk: number }
  /** Writes a point behind the one with number `after` (-1: none) and scavenges to it. */
  | { readonly kind: 'write'; readonly after: number; readonly fromChunk: number }
  /** Nothing is to be done, and that is a success. */
  | { readonly kind: 'nothing' };

/** Decides how a run begins: afresh, or by what the checkpoint and the latest point are. `latest` is not looked at when a run is to be resumed. */
export function decideBeginning(checkpoint: ScavengeCheckpoint | null, latest: ScavengePoint | null, { syncOnly, startAfresh, freshSinceMs = Infinity }: Omit<BeginningOptions, 'threshold'>, chunkSize: number): Beginning {
  if (startAfresh) {
    const fromChunk = learntChunks(checkpoint, chunkSize);
    const isFresh = latest !== null && latest.effectiveNowMs >= freshSinceMs && latest.eventNumber > (checkpoint?.point.eventNumber ?? -1);
    return isFresh ? { kind: 'use', point: latest, fromChunk } : { kind: 'write', after: latest?.eventNumber ?? -1, fromChunk };
  }
  if (checkpoint === null) {
    if (latest !== null) return { kind: 'use', point: latest, fromChunk: 0 };
    return syncOnly ? { kind: 'nothing' } : { kind: 'write', after: -1, fromChunk: 0 };
  }
  if (checkpoint.stage !== 'Done') return { kind: 'resume', checkpoint };
  const { point } = checkpoint;
  const fromChunk = learntChunks(checkpoint, chunkSize);
  if (latest !== null && latest.eventNumber > point.eventNumber) return { kind: 'use', point: latest, fromChunk };
  if (syncOnly) return { kind: 'nothing' };
  return { kind: 'write', after: latest === null ? -1 : point.eventNumber, fromChunk };
}

/** The first logical chunk that was not accumulated yet. A point ends its chunk, so what is new behind it begins with the next one. */
function learntChunks(checkpoint: ScavengeCheckpoint | null, chunkSize: number): number {
  if (checkpoint === null) return 0;
  return checkpoint.stage === 'Accumulating' ? (checkpoint.doneChunk ?? -1) + 1 : Math.floor(checkpoint.point.position / chunkSize) + 1;
}

type PointStore = Pick<EventStoreInternals, 'appendInternal' | 'readStream'>;

/** The latest scavenge point of the log, or null. Throws `scavenge_failed` when the last event of the stream is none. */
export async function readLatestPoint(store: PointStore): Promise<ScavengePoint | null> {
  let last: StoredEvent | undefined;
  try {
    last = (await store.readStream(POINTS_STREAM, { direction: 'backward', from: 'end', count: 1 })).events[0];
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found')) return null;
    throw error;
  }
  return last === undefined ? null : pointOf(last);
}

interface WrittenPoint {
  readonly point: ScavengePoint;
  readonly isOwn: boolean;
}

/**
 * Writes a new scavenge point, which also completes its chunk, and reads it back. `after` is the number of the last one
 * that is known, -1 for none. Of two nodes that write a point at once the log takes one's, and the other uses that (core/cluster/copy/README.md, rule 6).
 * Throws `scavenge_failed` where the stream is not what it was and has no newer point, and what the store throws.
 */
async function writePoint(store: PointStore, ids: Ids, after: number, threshold: number): Promise<WrittenPoint> {
  const id = guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
  const expected = after < 0 ? NO_STREAM : after;
  let number: number;
  try {
    number = (await store.appendInternal(POINTS_STREAM, expected, [{ id, type: POINT_TYPE, isJson: true, data: pointJson(threshold), metadata: NO_BYTES }])).lastEventNumber;
  } catch (error) {
    if (!isSkuaError(error, 'wrong_expected_version')) throw error;
    const winner = await readLatestPoint(store);
    if (winner !== null && winner.eventNumber > after) return { point: winner, isOwn: false };
    throw new SkuaError('scavenge_failed', 'Failed to add new scavenge point: WrongExpectedVersion', { expected }, error);
  }
  const point = await readLatestPoint(store);
  // A single node reads its own write at once. Where metadata of the stream hide even its last event, no point can be used.
  if (point === null || point.eventNumber < number) throw new SkuaError('scavenge_failed', `The scavenge point ${number} that was just written can't be read: look at the metadata of ${POINTS_STREAM}`, { eventNumber: number });
  return { point, isOwn: point.eventNumber === number };
}

/**
 * The point as it counts for a run of this node: its time, by which ages are judged, is not ahead of the clock by which
 * readers see events. A record that was written after the clock had stepped back a little has the time of the one before it.
 */
export function notAhead(point: ScavengePoint, nowMs: number): ScavengePoint {
  const ms = Math.floor(nowMs);
  const ticks = Math.floor((nowMs - ms) * 10_000);
  const { effectiveNowMs, effectiveNowTicks = 0, ...rest } = point;
  if (effectiveNowMs < ms || (effectiveNowMs === ms && effectiveNowTicks <= ticks)) return point;
  return { ...rest, effectiveNowMs: ms, ...(ticks !== 0 && { effectiveNowTicks: ticks }) };
}

/** The type's default is left out. */
function pointJson(threshold: number): Uint8Array {
  return encodeText(threshold === 0 ? '{}' : `{\n  "threshold": ${threshold}\n}`);
}

/** Throws `scavenge_failed` when the event is no scavenge point. */
function pointOf(event: StoredEvent): ScavengePoint {
  if (event.type !== POINT_TYPE) throw new SkuaError('scavenge_failed', `Event ${event.number} of ${POINTS_STREAM} has the type ${event.type} and is no scavenge point`, { eventNumber: event.number });
  return {
    position: event.preparePosition,
    eventNumber: event.number,
    effectiveNowMs: event.createdMs,
    ...(event.createdTicks !== 0 && { effectiveNowTicks: event.createdTicks }),
    threshold: thresholdOf(event),
  };
}

function thresholdOf(event: StoredEvent): number {
  let value: unknown;
  try {
    value = JSON.parse(decodeText(event.data));
  } catch {
    value = null;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const threshold = (value as { threshold?: unknown }).threshold ?? 0;
    if (Number.isInteger(threshold) && (threshold as number) >= I32_MIN && (threshold as number) <= I32_MAX) return threshold as number;
  }
  throw new SkuaError('scavenge_failed', `The data of event ${event.number} of ${POINTS_STREAM} are those of no scavenge point`, { eventNumber: event.number });
}
