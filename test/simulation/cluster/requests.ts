import { isSkuaError, type SkuaError } from '../../../core/base/errors.ts';
import {
  ANY,
  type AppendCondition,
  type AppendResult,
  type EventStore,
  type NewEvent,
  STREAM_EXISTS,
} from '../../../core/streams/api.ts';
import { PASSING, REFUSALS } from './codes.ts';
import { checkStream } from './reads.ts';
import type { SimMember } from './sim-member.ts';
import { CHUNK_BYTES, KEPT, stamp } from './truth.ts';
import type { World } from './world.ts';

/** What is asked of a writer. It may be asked for more than once, of one or another. */
export interface Request {
  readonly stream: string;
  readonly what: 'append' | 'soft' | 'hard';
  readonly expected: number;
  readonly events: readonly NewEvent[];
  /** Names it where it has no ids of its own, so that nobody can know a repeat. */
  readonly token: string | null;
  /** What an append is decided on. */
  readonly condition?: AppendCondition;
}

/** Of a record, beside its data, and of what comes with a write. */
const OVERHEAD_BYTES_MAX = 512;

/** Requests that arrive a second time, some time later: one that was refused may have become right by then. */
const again = new WeakSet<Request>();

export function comesAgain(request: Request): void {
  again.add(request);
}

export type Answer = 'done' | 'unknown' | 'failed';

/** What a writer answered to a request that it was sent. */
export interface Outcome {
  readonly kind: 'done' | 'repeat' | 'refused' | 'unknown' | 'failed';
  /** Of what was written, the number of its first event, and where it ends. */
  readonly first: number;
  /** Of a refusal by a condition, of the event that it names. */
  readonly position: number;
  readonly code: string;
}

/**
 * Lets a store decide a request. `epoch`: in which it was forwarded; `arrivedMs`: when it came to a member; `fence`
 * refuses it in any other epoch, and when it is too late.
 */
export async function put(
  world: World,
  store: EventStore,
  request: Request,
  epoch: number | null,
  arrivedMs: number | null,
  fence: (() => SkuaError | null) | null,
): Promise<Outcome> {
  const { stream, what, expected, token } = request;
  try {
    if (what !== 'append') {
      const { position } = await store.deleteStream(stream, expected, what, ...(fence === null ? [] : [fence]));
      return { kind: 'done', first: -1, position, code: '' };
    }
    const isStamped = !stream.startsWith('$');
    const events = request.events.map((event) => ({
      ...event,
      ...(isStamped && { data: stamped(event.data, epoch, token, arrivedMs) }),
      ...(token !== null && { id: world.newId() }),
    }));
    const result =
      request.condition === undefined
        ? await store.append(stream, expected, events, ...(fence === null ? [] : [fence]))
        : await appendIf(store, request, events, fence);
    return {
      kind: result.isRepeat ? 'repeat' : 'done',
      first: result.firstEventNumber,
      position: result.position,
      code: '',
    };
  } catch (error) {
    const position = isSkuaError(error, 'condition_failed') ? Number(error.data['position']) : -1;
    const failed = { first: -1, position, code: isSkuaError(error) ? error.code : '' };
    if (isSkuaError(error, 'write_expired')) world.judge.count('expired');
    if (isSkuaError(error, 'commit_outcome_unknown')) return { kind: 'unknown', ...failed };
    if (isSkuaError(error) && REFUSALS.includes(error.code)) return { kind: 'refused', ...failed };
    if (!isSkuaError(error) || !PASSING.includes(error.code))
      world.judge.problem(`an unexpected error of a write: ${String((error as Error).stack)}`);
    return { kind: 'failed', ...failed };
  }
}

async function appendIf(
  store: EventStore,
  { stream, expected: expectedVersion, condition }: Request,
  events: readonly NewEvent[],
  fence: (() => SkuaError | null) | null,
): Promise<AppendResult> {
  const write = { stream, expectedVersion, events, ...(fence !== null && { authorize: fence }) };
  const { streams, position, isRepeat } = await store.appendToStreams([write], { condition });
  const { lastEventNumber } = streams[0]!;
  return { firstEventNumber: lastEventNumber - events.length + 1, lastEventNumber, position, isRepeat };
}

function stamped(data: Uint8Array, epoch: number | null, token: string | null, arrivedMs: number | null): Uint8Array {
  const mark = Buffer.from(stamp(epoch, token, arrivedMs));
  const out = new Uint8Array(Math.max(data.length, mark.length)).fill(46);
  out.set(mark);
  return out;
}

interface Asked {
  /** Number of the last commit when the request was made. */
  readonly before: number;
  readonly wasUnknown: boolean;
  readonly startedMs: number;
  readonly member?: SimMember;
}

/** Whether its events may not fit into a chunk: four of the largest don't. */
function isTooLarge({ events }: Request): boolean {
  return events.reduce((bytes, { data }) => bytes + data.length + OVERHEAD_BYTES_MAX, 0) > CHUNK_BYTES;
}

/** A client hears what became of its request, and judges it. */
export async function answered(
  world: World,
  who: string,
  request: Request,
  outcome: Outcome,
  { before, wasUnknown, startedMs, member }: Asked,
): Promise<Answer> {
  const { judge } = world;
  const { stream, events, what, token, condition } = request;
  const { kind, first, code } = outcome;
  switch (kind) {
    case 'unknown':
      judge.count('unknown');
      return 'unknown';
    case 'failed':
      judge.count('failed');
      return 'failed';
    case 'refused':
      judge.count('refused');
      // What is remembered no more may be there, and be refused for what came behind it.
      if (
        token === null &&
        KEPT.includes(stream) &&
        !again.has(request) &&
        (condition === undefined || judge.truth.remembersAll)
      )
        for (const { id } of events) judge.refused(id);
      if (code === 'condition_failed') judge.conditions.refused(who, events[0]!.id, outcome.position, before);
      else if (!(code === 'batch_too_large' ? isTooLarge(request) : mayRefuse(world, request, before)))
        judge.problem(
          `${who} refused a write to ${stream} that expected ${request.expected} (${code}), and ${judge.lastAt(stream, judge.truth.last)} was its last event all the time`,
        );
      return 'done';
    default:
  }
  judge.count(kind === 'repeat' ? 'repeats' : 'acknowledged');
  judge.note(
    `${who} acknowledges ${what === 'append' ? `${stream}#${first}` : `that ${stream} is deleted`} after ${world.timeline.now - startedMs} ms${kind === 'repeat' ? ', a repeat' : ''}${wasUnknown ? ', which was unknown before' : ''}`,
  );
  // A scavenge may remove what would show that it is a repeat.
  const isForgotten = again.has(request) && !KEPT.includes(stream);
  if (what === 'append' && token === null && !isForgotten)
    events.forEach(({ id }, i) => judge.acknowledged(stream, id, first + i));
  // C4: at once, at the member that took it, unless its copy could not take it in within five seconds.
  if (member?.opened?.log != null && KEPT.includes(stream) && what === 'append') {
    const { log } = member.opened;
    if (log.trouble === null && log.isCaughtUp && world.timeline.now - startedMs < 4_000)
      member.seen.set(stream, Math.max(member.seen.get(stream) ?? -1, first + events.length - 1));
    if (world.random.chance(0.5)) await checkStream(world, member, stream);
  }
  return 'done';
}

/** A refusal is right when the stream was in such a state at some time between request and answer. */
function mayRefuse({ judge }: World, { stream, expected }: Request, before: number): boolean {
  if (!KEPT.includes(stream)) return true;
  const first = judge.lastAt(stream, before);
  const last = judge.lastAt(stream, judge.truth.last);
  if (expected === ANY) return false;
  if (expected === STREAM_EXISTS) return first < 0;
  return first !== expected || last !== expected;
}
