import { isSkuaError, SkuaError } from '../errors.ts';
import type { ScavengeOptions } from '../scavenge/api.ts';
import { checkedOptions } from '../scavenge/launch.ts';
import { decodeText, encodeText } from '../text.ts';
import type { ObjectWorld } from './api.ts';
import { newUuid } from './keys.ts';
import type { ObjectManifest, ObjectScavengeProgress } from './manifest.ts';
import { newestManifest } from './manifests.ts';

/**
 * What is asked of ticks, as objects under `control/`. Ticks scavenge and nobody else does, so a request only leaves a note:
 *
 * - `control/start-<id>`: the run that follows the run `id` (the id of the store where there was none). As there is one key for
 *   the successor of each run, and it is created once, any number of requests at a time start one run.
 * - `control/stop-<id>`: the run `id` is to end.
 */
export const CONTROL_PREFIX = 'control/';
const START_PREFIX = `${CONTROL_PREFIX}start-`;
const STOP_PREFIX = `${CONTROL_PREFIX}stop-`;

/** How often an undecided create of a note is looked at. */
const TRIES_MAX = 5;
const TRY_WAIT_MS = 200;
/** How long a request to stop waits for the tick that does it, and how often it looks. */
export const STOP_WAIT_MS = 25_000;
const STOP_LOOK_MS = 1_000;
/** After this the request is worth repeating: the next tick has begun by then. */
const RETRY_AFTER_SECONDS = 60;

export interface ScavengeRequest {
  readonly scavengeId: string;
  readonly threshold: number;
  readonly syncOnly: boolean;
  /** Milliseconds since 1970. */
  readonly requestedMs: number;
}

export interface ScavengeStatus {
  readonly scavengeId: string;
  /** `requested`: the next tick begins it. */
  readonly state: 'requested' | 'running' | 'ended';
  readonly startedMs: number;
  /** How far it had come when its last part ended; null before, and at the end. */
  readonly progress: ObjectScavengeProgress | null;
  /** Of one that has ended: `Success`, `Stopped` or `Errored`. */
  readonly result: string | null;
  readonly error: string | null;
}

type Notes = Pick<ObjectWorld, 'objects' | 'digests' | 'clock' | 'ids'>;

export function stopKey(scavengeId: string): string {
  return STOP_PREFIX + scavengeId;
}

/** Where the request for the next run stands; null while one is running. */
export function startKey({ scavenge, storeId }: ObjectManifest): string | null {
  if (scavenge?.state === 'running') return null;
  return START_PREFIX + (scavenge?.scavengeId ?? storeId);
}

/** True for a note that no tick looks at any more. */
export function isOldNote(key: string, manifest: ObjectManifest): boolean {
  return key !== startKey(manifest) && key !== stopKey(manifest.scavenge?.state === 'running' ? manifest.scavenge.scavengeId : '');
}

/** The run that the next tick is asked to begin, or null. */
export async function requestedScavenge(objects: Notes['objects'], manifest: ObjectManifest): Promise<ScavengeRequest | null> {
  const key = startKey(manifest);
  return key === null ? null : requestOf(objects, key);
}

/**
 * Asks for a scavenge, which the next tick begins. Repeated with the same id it has the same answer. Throws `scavenge_in_progress`
 * (data: scavengeId) or `bad_option`. Ticks run on one thread and don't rest, whatever the options say.
 */
export async function startScavenge(world: Notes, options: ScavengeOptions = {}, scavengeId: string = newUuid(world.ids)): Promise<{ readonly scavengeId: string }> {
  const { threshold, syncOnly } = checkedOptions(options);
  const request: ScavengeRequest = { scavengeId, threshold, syncOnly, requestedMs: Math.floor(world.clock.nowMs()) };
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const manifest = await manifestOf(world);
    if (manifest.scavenge?.scavengeId === scavengeId) return { scavengeId };
    const key = startKey(manifest);
    if (key === null) throw inProgress(manifest.scavenge!.scavengeId);
    const noted = await leaveNote(world, key, request);
    const now = await manifestOf(world);
    const isWaiting = startKey(now) === key;
    const isTaken = now.scavenge?.scavengeId === noted;
    if ((isWaiting || isTaken) && noted === scavengeId) return { scavengeId };
    if (isWaiting || (isTaken && now.scavenge?.state === 'running')) throw inProgress(noted);
    // The run that the note belongs to has been and gone meanwhile: no tick looks there any more.
  }
  throw new SkuaError('too_busy', 'Scavenges begin and end faster than another one can be asked for: try again.', {});
}

/** Creates the note, and gives the id in the one that is there then. */
async function leaveNote({ objects, clock }: Notes, key: string, request: ScavengeRequest): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      if (await objects.create(key, encodeText(JSON.stringify(request))) === 'created') return request.scavengeId;
    } catch (error) {
      if (!isSkuaError(error, 'outcome_unknown') || tries === TRIES_MAX) throw error;
      await clock.sleep(TRY_WAIT_MS);
    }
    const there = await requestOf(objects, key);
    if (there !== null) return there.scavengeId;
    if (tries === TRIES_MAX) throw new SkuaError('outcome_unknown', `It could not be found out whether ${key} was written: ${objects.place} does not answer.`, { key });
  }
}

async function requestOf(objects: Notes['objects'], key: string): Promise<ScavengeRequest | null> {
  const bytes = await objects.get(key);
  return bytes === null ? null : JSON.parse(decodeText(bytes)) as ScavengeRequest;
}

/** The run that goes on or was asked for, else the last one; null when there was none. */
export async function scavengeStatus(world: Notes): Promise<ScavengeStatus | null> {
  const manifest = await manifestOf(world);
  const requested = await requestedScavenge(world.objects, manifest);
  if (requested !== null) return { scavengeId: requested.scavengeId, state: 'requested', startedMs: requested.requestedMs, progress: null, result: null, error: null };
  const { scavenge } = manifest;
  if (scavenge === null) return null;
  const { scavengeId, state, startedMs, progress, result, error } = scavenge;
  return { scavengeId, state, startedMs, progress: state === 'running' ? progress ?? null : null, result, error };
}

/** Leaves the note that a run is to end, without waiting for that. */
export async function askToStop({ objects }: Pick<Notes, 'objects'>, scavengeId: string): Promise<void> {
  await objects.put(stopKey(scavengeId), encodeText('{}'));
}

/**
 * Ends a run, given by its id or as `current`, and resolves with its id once it has ended. Throws `scavenge_not_found`, and
 * `scavenge_stopping` (data: scavengeId, retryAfterSeconds) when that takes longer than `waitMs`: it ends with the next tick all the same.
 */
export async function stopScavenge(world: Notes, scavengeId: string, waitMs = STOP_WAIT_MS): Promise<string> {
  const { clock } = world;
  const status = await scavengeStatus(world);
  if (status === null || status.state === 'ended' || (scavengeId !== 'current' && scavengeId !== status.scavengeId)) {
    throw new SkuaError('scavenge_not_found', 'Scavenge Id does not exist', { scavengeId });
  }
  const id = status.scavengeId;
  await askToStop(world, id);
  const untilMs = clock.monotonicMs() + waitMs;
  for (;;) {
    const now = await scavengeStatus(world);
    if (now === null || now.scavengeId !== id || now.state === 'ended') return id;
    const leftMs = untilMs - clock.monotonicMs();
    if (leftMs <= 0) break;
    await clock.sleep(Math.min(STOP_LOOK_MS, leftMs));
  }
  throw new SkuaError('scavenge_stopping', `The scavenge ${id} is being stopped and has not ended yet: ask again later.`, { scavengeId: id, retryAfterSeconds: RETRY_AFTER_SECONDS });
}

function inProgress(scavengeId: string): SkuaError {
  return new SkuaError('scavenge_in_progress', `The scavenge ${scavengeId} is running: wait for its end, or stop it.`, { scavengeId });
}

async function manifestOf({ objects, digests }: Notes): Promise<ObjectManifest> {
  const manifest = await newestManifest(objects, digests);
  if (manifest === null) throw new SkuaError('manifest_invalid', `There is no store under ${objects.place}: open it first, which creates it.`, { place: objects.place });
  return manifest;
}
