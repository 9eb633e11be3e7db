import { orderInStream } from '../../auto-scavenge/orders/orders.ts';
import type { CyclesStore } from '../../auto-scavenge/api.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { guidToText } from '../../base/guid.ts';
import type { Digests } from '../../ports/digests.ts';
import type { KeyKind } from '../../ports/object-kinds.ts';
import type {
  LastReply,
  NodeAddress,
  Nodes,
  NodesView,
  ScavengeOrder,
  StartReply,
  StopReply,
} from '../../ports/nodes.ts';
import type { ResumedPoint, ScavengeOptions, ScavengeTraces } from '../../scavenge/api.ts';
import { checkedOptions } from '../../scavenge/launch/launch.ts';
import { flag, moment, optional, record, uuid, whole, wrongText } from '../../base/shape.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { ObjectWorld } from '../api.ts';
import { newUuid } from '../format/object-keys.ts';
import { newestManifest, type ObjectManifest, type ObjectScavengeProgress } from '../format/manifest.ts';

/**
 * What is asked of ticks, as objects under `control/`. Ticks scavenge and nothing else does, so a request only leaves a
 * note:
 *
 * - `control/start-<id>`: the run that follows the run `id` (the id of the store where there was none). As there is one
 *   key for the successor of each run, and it is created once, any number of requests at a time start one run.
 * - `control/stop-<id>`: the run `id` is to end.
 */
export const CONTROL_PREFIX = 'control/';
/** With the draft of a backup that goes on from tick to tick. */
export const CONTROL: KeyKind = {
  prefix: CONTROL_PREFIX,
  rest: /^(backup|(start|stop)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/,
};
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

interface ScavengeRequest {
  readonly scavengeId: string;
  readonly threshold: number;
  readonly syncOnly: boolean;
  readonly startAfresh?: boolean;
  /** Milliseconds since 1970. */
  readonly requestedMs: number;
}

const requestShape = record<ScavengeRequest>({
  scavengeId: uuid,
  threshold: whole(Number.MIN_SAFE_INTEGER),
  syncOnly: flag,
  startAfresh: optional(flag),
  requestedMs: moment,
});

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
  /** As in the manifest. */
  readonly olderPoint?: ResumedPoint;
  readonly waiting?: ResumedPoint;
  /** What is left of what it removed; null before it has ended. */
  readonly traces: ScavengeTraces | null;
}

/** Why scavenges are neither asked for nor scheduled here. */
export const OF_CLUSTER =
  'This log belongs to a cluster: its members scavenge their own replicas, on demand and on a schedule, and the shared files follow. Ask a member.';

type Notes = Pick<ObjectWorld, 'objects' | 'digests' | 'clock' | 'ids'>;

export function stopKey(scavengeId: string): string {
  return STOP_PREFIX + scavengeId;
}

/** Where the request for the next run stands; null while one is running. */
function startKey({ scavenge, storeId }: ObjectManifest): string | null {
  if (scavenge?.state === 'running') return null;
  return START_PREFIX + (scavenge?.scavengeId ?? storeId);
}

/** True for a note that no tick looks at any more. */
export function isOldNote(key: string, manifest: ObjectManifest): boolean {
  return (
    key !== startKey(manifest) &&
    key !== stopKey(manifest.scavenge?.state === 'running' ? manifest.scavenge.scavengeId : '')
  );
}

/** The run that the next tick is asked to begin, or null. */
export async function requestedScavenge(
  objects: Notes['objects'],
  manifest: ObjectManifest,
): Promise<ScavengeRequest | null> {
  // The shared files of a cluster follow the points of its members.
  const key = manifest.cluster === true ? null : startKey(manifest);
  return key === null ? null : requestOf(objects, key);
}

/**
 * Asks for a scavenge, which the next tick begins. Repeated with the same id it has the same answer. Throws
 * `scavenge_in_progress` (data: scavengeId), `bad_option`, or `bad_request` where the log is a cluster's. Ticks run on
 * one thread and don't rest, whatever the options say.
 */
export async function startScavenge(
  world: Notes,
  options: ScavengeOptions = {},
  scavengeId: string = newUuid(world.ids),
): Promise<{ readonly scavengeId: string }> {
  const { threshold, syncOnly, startAfresh } = checkedOptions(options);
  const request: ScavengeRequest = {
    scavengeId,
    threshold,
    syncOnly,
    ...(startAfresh && { startAfresh }),
    requestedMs: Math.floor(world.clock.nowMs()),
  };
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const manifest = await manifestOf(world);
    if (manifest.scavenge?.scavengeId === scavengeId) return { scavengeId };
    if (manifest.cluster === true) throw new SkuaError('bad_request', OF_CLUSTER);
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
  throw new SkuaError('too_busy', 'Scavenges start and finish too fast to request another one: try again.', {});
}

/** Creates the note, and gives the id in the one that is there then. */
async function leaveNote({ objects, clock }: Notes, key: string, request: ScavengeRequest): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      if ((await objects.create(key, encodeText(JSON.stringify(request)))) === 'created') return request.scavengeId;
    } catch (error) {
      if (!isSkuaError(error, 'outcome_unknown') || tries === TRIES_MAX) throw error;
      await clock.sleep(TRY_WAIT_MS);
    }
    const there = await requestOf(objects, key);
    if (there !== null) return there.scavengeId;
    if (tries === TRIES_MAX)
      throw new SkuaError(
        'outcome_unknown',
        `It is not known whether ${key} was written: ${objects.place} does not answer.`,
        { key },
      );
  }
}

async function requestOf(objects: Notes['objects'], key: string): Promise<ScavengeRequest | null> {
  const bytes = await objects.get(key);
  if (bytes === null) return null;
  let request: unknown;
  try {
    request = JSON.parse(decodeText(bytes));
  } catch {
    // Told as what it is: no object.
  }
  const wrong = requestShape(request, '');
  if (wrong === null) return request as ScavengeRequest;
  throw new SkuaError(
    'manifest_invalid',
    `The note ${key} in ${objects.place} ${wrongText(wrong)}. Something else wrote it, and it starts no scavenge: remove it.`,
    { key, member: wrong.member },
  );
}

/** The run that goes on or was asked for, else the last one; null when there was none. */
export async function scavengeStatus(world: Notes): Promise<ScavengeStatus | null> {
  const manifest = await manifestOf(world);
  const requested = await requestedScavenge(world.objects, manifest);
  if (requested !== null)
    return {
      scavengeId: requested.scavengeId,
      state: 'requested',
      startedMs: requested.requestedMs,
      progress: null,
      result: null,
      error: null,
      traces: null,
    };
  const { scavenge, erasure } = manifest;
  if (scavenge === null) return null;
  const { scavengeId, state, startedMs, progress, result, error, olderPoint, waiting } = scavenge;
  const points = {
    ...(olderPoint !== undefined && olderPoint !== null && { olderPoint }),
    ...(waiting !== undefined && { waiting }),
  };
  return {
    scavengeId,
    state,
    startedMs,
    progress: state === 'running' ? (progress ?? null) : null,
    result,
    error,
    traces: erasure?.scavengeId === scavengeId ? { untilMs: erasure.untilMs, goneMs: erasure.goneMs } : null,
    ...points,
  };
}

/** Leaves the note that a run is to end, without waiting for that. */
export async function askToStop({ objects }: Pick<Notes, 'objects'>, scavengeId: string): Promise<void> {
  await objects.put(stopKey(scavengeId), encodeText('{}'));
}

/**
 * Ends a run, given by its id or as `current`, and resolves with its id once it has ended. Throws `scavenge_not_found`,
 * and `scavenge_stopping` (data: scavengeId, retryAfterSeconds) when that takes longer than `waitMs`: it ends with the
 * next tick all the same.
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
  throw new SkuaError(
    'scavenge_stopping',
    `The scavenge ${id} is being stopped and has not finished yet: ask again later.`,
    { scavengeId: id, retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

function inProgress(scavengeId: string): SkuaError {
  return new SkuaError(
    'scavenge_in_progress',
    `The scavenge ${scavengeId} is running: wait until it has finished, or stop it.`,
    { scavengeId },
  );
}

async function manifestOf({ objects, digests }: Notes): Promise<ObjectManifest> {
  const manifest = await newestManifest(objects, digests);
  if (manifest === null)
    throw new SkuaError(
      'manifest_invalid',
      `There is no store under ${objects.place}: open it first, which creates it.`,
      { place: objects.place },
    );
  return manifest;
}

/** The same id for the same text, in the form of a UUID. */
export function derivedId(text: string, digests: Digests): string {
  const digest = digests.sha256();
  digest.update(encodeText(text));
  const bytes = digest.finish().slice(0, 16);
  bytes[7] = (bytes[7]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return guidToText(bytes, 0);
}

interface ObjectNodesParts {
  readonly world: Pick<ObjectWorld, 'objects' | 'digests' | 'clock' | 'ids'>;
  readonly store: CyclesStore & { readonly end: number };
  /** Under which the store's only member appears in cycles. */
  readonly self: NodeAddress;
}

/**
 * A store on object storage as a cluster of one, for auto-scavenge: orders become notes that ticks carry out. Any
 * process may drive it, several at once too: the streams of auto-scavenge decide between them, and the id of a run is
 * made of its order, so that an order that is repeated finds the run that it has started.
 */
export function createObjectNodes(parts: ObjectNodesParts): Nodes {
  return new ObjectNodes(parts);
}

class ObjectNodes implements Nodes {
  readonly #parts: ObjectNodesParts;

  constructor(parts: ObjectNodesParts) {
    this.#parts = parts;
  }

  view(): NodesView {
    const { self, store } = this.#parts;
    return {
      self,
      clusterSize: 1,
      leadsSinceMs: 0,
      members: [{ node: self, isLeader: true, isReadOnlyReplica: false, isAlive: true, writerCheckpoint: store.end }],
    };
  }

  async startScavenge(_: NodeAddress, order: ScavengeOrder): Promise<StartReply> {
    const { world, store } = this.#parts;
    try {
      const known = await orderInStream(store, order);
      if (known.isLate) return { kind: 'late' };
      const scavengeId =
        known.scavengeId ?? derivedId(`scavenge ${order.clusterScavengeId} ${order.attempt}`, world.digests);
      return { kind: 'started', scavengeId: (await startScavenge(world, {}, scavengeId)).scavengeId };
    } catch (error) {
      return isSkuaError(error, 'scavenge_in_progress') ? { kind: 'busy' } : { kind: 'failed', reason: String(error) };
    }
  }

  async lastScavenge(): Promise<LastReply> {
    const status = await this.#status();
    if (typeof status === 'string') return { kind: 'unreachable', reason: status };
    return {
      kind: 'last',
      scavengeId: status?.scavengeId ?? null,
      result: status === null ? 'Unknown' : (status.result ?? 'InProgress'),
    };
  }

  async stopScavenge(_: NodeAddress, __: ScavengeOrder, scavengeId: string | null): Promise<StopReply> {
    const status = await this.#status();
    if (typeof status === 'string') return { kind: 'unreachable', reason: status };
    if (scavengeId === null || status === null || status.scavengeId !== scavengeId || status.state === 'ended')
      return { kind: 'stopped' };
    try {
      await askToStop(this.#parts.world, scavengeId);
      return { kind: 'stopping' };
    } catch (error) {
      return { kind: 'unreachable', reason: String(error) };
    }
  }

  /** There is no other that could lead. */
  async resign(): Promise<void> {}

  /** A text says why it can't be told. */
  #status(): ReturnType<typeof scavengeStatus> | Promise<string> {
    return scavengeStatus(this.#parts.world).catch((error: unknown) => String(error)) as
      | ReturnType<typeof scavengeStatus>
      | Promise<string>;
  }
}
