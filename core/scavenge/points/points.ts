import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { Ids } from '../../ports/ids.ts';
import { type ScavengeCheckpoint, type ScavengePoint, stateOptionsOf } from '../../ports/scavenge-state.ts';
import { NO_STREAM, type StoredEvent } from '../../streams/api.ts';
import { POINT_TYPE, POINTS_STREAM } from '../../streams/format/names.ts';
import type { EventStoreInternals } from '../../streams/streams.ts';
import type { ResumedPoint, ScavengeDeps } from '../api.ts';

/** Scavenge points: those of the log, a new one, and which of them a run goes to. */

const NO_BYTES = new Uint8Array(0);
/** Of a threshold. */
const I32_MIN = -2_147_483_648;
const I32_MAX = 2_147_483_647;

/** What an administrator asked for that matters only at the beginning. */
export interface BeginningOptions {
  readonly threshold: number;
  readonly syncOnly: boolean;
  readonly startAfresh: boolean;
  /**
   * Where one run has several parts: a point written from this time on, in milliseconds since 1970, is new enough to
   * start afresh with.
   */
  readonly freshSinceMs?: number;
}

/**
 * The older point to which a run that began now would go; null where it would write a new one, and where that can't be
 * told.
 */
export async function waitingPoint({
  data: { store, table },
  ports: { states, log },
  config,
}: Pick<ScavengeDeps, 'data' | 'ports' | 'config'>): Promise<ResumedPoint | null> {
  try {
    const stored = states.storedCheckpoint(stateOptionsOf(config, 1));
    if (stored !== null && stored.point.position >= table.end) return null;
    const latest = stored !== null && stored.stage !== 'Done' ? null : await readLatestPoint(store);
    return resumedPointOf(decideBeginning(stored, latest, { syncOnly: true, startAfresh: false }, table.chunkSize));
  } catch (error) {
    // A caller that only asks must not be stopped by this error; the next start is, and reports it.
    log.debug('SCAVENGING: could not determine whether a scavenge is unfinished.', { error: String(error) });
    return null;
  }
}

export function resumedPointOf(beginning: Beginning): ResumedPoint | null {
  if (beginning.kind === 'resume') return { point: beginning.checkpoint.point, why: 'unfinished' };
  return beginning.kind === 'use' ? { point: beginning.point, why: 'unreached' } : null;
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

/**
 * Decides how a run begins: afresh, or by what the checkpoint and the latest point are. `latest` is not looked at when
 * a run is to be resumed.
 */
export function decideBeginning(
  checkpoint: ScavengeCheckpoint | null,
  latest: ScavengePoint | null,
  { syncOnly, startAfresh, freshSinceMs = Infinity }: Omit<BeginningOptions, 'threshold'>,
  chunkSize: number,
): Beginning {
  if (startAfresh) {
    const fromChunk = learntChunks(checkpoint, chunkSize);
    const isFresh =
      latest !== null &&
      latest.effectiveNowMs >= freshSinceMs &&
      latest.eventNumber > (checkpoint?.point.eventNumber ?? -1);
    return isFresh
      ? { kind: 'use', point: latest, fromChunk }
      : { kind: 'write', after: latest?.eventNumber ?? -1, fromChunk };
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

/**
 * The first logical chunk that was not accumulated yet. A point ends its chunk, so what is new behind it begins with
 * the next one.
 */
function learntChunks(checkpoint: ScavengeCheckpoint | null, chunkSize: number): number {
  if (checkpoint === null) return 0;
  return checkpoint.stage === 'Accumulating'
    ? (checkpoint.doneChunk ?? -1) + 1
    : Math.floor(checkpoint.point.position / chunkSize) + 1;
}

type PointStore = Pick<EventStoreInternals, 'appendInternal' | 'readStream'>;

/**
 * The latest scavenge point of the log, or null. Throws `scavenge_failed` when the last event of the stream is none.
 */
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
 * that is known, -1 for none. Of two nodes that write a point at once the log takes one point, and both use it
 * (core/cluster/replica/README.md, rule 6). Throws `scavenge_failed` where the stream is not what it was and has no
 * newer point, and what the store throws.
 */
export async function writePoint(store: PointStore, ids: Ids, after: number, threshold: number): Promise<WrittenPoint> {
  const id = guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
  const expected = after < 0 ? NO_STREAM : after;
  let number: number;
  try {
    number = (
      await store.appendInternal(POINTS_STREAM, expected, [
        { id, type: POINT_TYPE, isJson: true, data: pointJson(threshold), metadata: NO_BYTES },
      ])
    ).lastEventNumber;
  } catch (error) {
    if (!isSkuaError(error, 'wrong_expected_version')) throw error;
    const winner = await readLatestPoint(store);
    if (winner !== null && winner.eventNumber > after) return { point: winner, isOwn: false };
    throw new SkuaError(
      'scavenge_failed',
      'Failed to add new scavenge point: WrongExpectedVersion',
      { expected },
      error,
    );
  }
  const point = await readLatestPoint(store);
  // A single node reads its own write at once. Where metadata of the stream hide even its last event, no point can be
  // used.
  if (point === null || point.eventNumber < number)
    throw new SkuaError(
      'scavenge_failed',
      `The scavenge point ${number} that was just written can't be read: check the metadata of ${POINTS_STREAM}`,
      { eventNumber: number },
    );
  return { point, isOwn: point.eventNumber === number };
}

/**
 * The point as it counts for a run of this node: its time, by which ages are judged, is not ahead of the clock by which
 * readers see events. A record that was written after the clock had stepped back a little has the time of the one
 * before it.
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
  if (event.type !== POINT_TYPE)
    throw new SkuaError(
      'scavenge_failed',
      `Event ${event.number} of ${POINTS_STREAM} has the type ${event.type} and is not a scavenge point`,
      { eventNumber: event.number },
    );
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
    if (Number.isInteger(threshold) && (threshold as number) >= I32_MIN && (threshold as number) <= I32_MAX)
      return threshold as number;
  }
  throw new SkuaError(
    'scavenge_failed',
    `The data of event ${event.number} of ${POINTS_STREAM} is not that of a scavenge point`,
    { eventNumber: event.number },
  );
}
