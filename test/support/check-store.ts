import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { EventStore, StoredEvent } from '../../core/streams/api.ts';
import { foldStreams } from './fold.ts';
import { readWholeAll, readWholeStream } from './oracle.ts';
import type { Request } from './workload.ts';

/**
 * What is wrong with a store in view of the requests made of it; empty when all is well. Every acknowledged request
 * must be there. One that was cut off by a crash may be there whole. One that was refused must not be there, but for
 * those refused with a code in `undecided`.
 */
export async function findLosses(
  store: EventStore,
  requests: readonly Request[],
  nowMs: number,
  undecided: readonly string[] = ['storage_crashed', 'writer_stopped'],
): Promise<string[]> {
  const wrong: string[] = [];
  const all = await readWholeAll(store, 'forward', 500);
  const backward = await readWholeAll(store, 'backward', 333);
  if (backward.reverse().map(keyOf).join() !== all.map(keyOf).join())
    wrong.push('$all backward is not the reverse of $all forward');
  const claimed = claimEvents(all, requests, wrong);
  const ids = new Set(all.map((event) => event.id));
  for (const request of requests) {
    if (request.refusedWith === null || undecided.includes(request.refusedWith)) continue;
    if (request.events.some((event) => ids.has(event.id)))
      wrong.push(
        `${request.kind} of round ${request.round} on ${request.stream} was refused with ${request.refusedWith} and is there`,
      );
  }
  for (const request of requests) {
    if (request.together === undefined || request.together === null) continue;
    const there = [request, ...request.together].filter(({ events }) => events.some(({ id }) => ids.has(id)));
    if (there.length > 0 && there.length <= request.together.length)
      wrong.push(
        `of an append to ${request.together.length + 1} streams in round ${request.round}, only those to ${there.map(({ stream }) => stream).join(', ')} are there`,
      );
  }
  checkRest(
    all.filter((event) => !claimed.has(event)),
    requests,
    wrong,
  );
  checkOrder(requests, wrong);
  checkNumbers(all, wrong);
  for (const [stream, expected] of foldStreams(all, nowMs)) {
    const forward = await readWholeStream(store, stream, 'forward', 50);
    const reverse = await readWholeStream(store, stream, 'backward', 49);
    const wanted = describe(expected);
    if (describe(forward) !== wanted) wrong.push(`${stream} forward reads ${describe(forward)}, $all says ${wanted}`);
    if (describe(Array.isArray(reverse) ? reverse.reverse() : reverse) !== wanted)
      wrong.push(`${stream} backward differs from ${wanted}`);
  }
  return wrong;
}

function keyOf(event: StoredEvent): string {
  return `${event.position}/${event.stream}/${event.number}/${event.id}`;
}

function describe(read: readonly StoredEvent[] | { readonly error: string }): string {
  return 'error' in read ? read.error : read.map((event) => `${event.number}:${event.id}@${event.position}`).join(' ');
}

/** Finds the events of each request: all of an acknowledged one, all or none of another. */
function claimEvents(all: readonly StoredEvent[], requests: readonly Request[], wrong: string[]): Set<StoredEvent> {
  const byId = new Map<string, StoredEvent[]>();
  for (const event of all) byId.set(event.id, [...(byId.get(event.id) ?? []), event]);
  const byPosition = new Map(all.map((event) => [event.position, event]));
  const claimed = new Set<StoredEvent>();
  for (const request of requests) {
    const found = request.events.flatMap((event) => byId.get(event.id) ?? []);
    for (const event of found) claimed.add(event);
    const name = `${request.kind} of round ${request.round} on ${request.stream}`;
    if (request.events.length === 0) {
      if (request.acknowledged === null) continue;
      const event = byPosition.get(request.acknowledged.position);
      if (event === undefined || !isDeletion(event, request))
        wrong.push(
          `${name}: acknowledged at ${request.acknowledged.position}, where ${event === undefined ? 'nothing' : keyOf(event)} stands`,
        );
      else claimed.add(event);
      continue;
    }
    if (found.length !== request.events.length && (request.acknowledged !== null || found.length > 0)) {
      wrong.push(
        `${name}: ${found.length} of ${request.events.length} events are there, ${request.acknowledged === null ? 'unacknowledged' : `acknowledged at ${request.acknowledged.position}`}`,
      );
    } else if (found.length > 0) checkEvents(name, request, found, wrong);
  }
  return claimed;
}

function isDeletion(event: StoredEvent, request: Request): boolean {
  if (request.kind === 'hard-delete')
    return event.stream === request.stream && event.number === TOMBSTONE && event.type === '$streamDeleted';
  return (
    event.stream === request.target &&
    event.type === '$metadata' &&
    Buffer.from(event.data).toString() === '{"$tb":9223372036854775807}'
  );
}

function checkEvents(name: string, request: Request, found: readonly StoredEvent[], wrong: string[]): void {
  const ack = request.acknowledged;
  for (const [i, event] of found.entries()) {
    const sent = request.events[i]!;
    const number = ack === null ? found[0]!.number + i : ack.firstEventNumber + i;
    if (event.stream !== request.target || event.number !== number)
      wrong.push(`${name}: event ${i} is ${keyOf(event)}, not number ${number} of ${request.target}`);
    if (
      event.type !== sent.type ||
      event.isJson !== sent.isJson ||
      !same(event.data, sent.data) ||
      !same(event.metadata, sent.metadata)
    )
      wrong.push(`${name}: event ${i} has another content`);
    if (i > 0 && event.position <= found[i - 1]!.position)
      wrong.push(`${name}: event ${i} does not follow the one before it`);
  }
  if (ack !== null && found.at(-1)!.position !== ack.position)
    wrong.push(`${name}: acknowledged at ${ack.position}, found at ${found.at(-1)!.position}`);
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/**
 * Events that no request names by id: deletions that were not acknowledged, and the metadata of a stream written again.
 */
function checkRest(rest: readonly StoredEvent[], requests: readonly Request[], wrong: string[]): void {
  for (const event of rest) {
    const ofStream = requests.filter((request) => request.stream === event.stream || request.target === event.stream);
    const unsure = ofStream.filter((request) => request.acknowledged === null && isDeletion(event, request));
    const recreated =
      event.type === '$metadata' &&
      event.stream.startsWith('$$') &&
      !Buffer.from(event.data).toString().includes('9223372036854775807') &&
      requests.some((request) => request.kind === 'soft-delete' && request.target === event.stream);
    if (unsure.length === 0 && !recreated) wrong.push(`nobody wrote ${keyOf(event)} of type ${event.type}`);
  }
}

/** What was acknowledged in an earlier round stands before what was acknowledged in a later one. */
function checkOrder(requests: readonly Request[], wrong: string[]): void {
  let before = -1;
  let highest = -1;
  let round = -1;
  for (const request of requests) {
    if (request.acknowledged === null) continue;
    if (request.round !== round) before = highest;
    round = request.round;
    if (request.acknowledged.position <= before)
      wrong.push(
        `${request.kind} of round ${request.round} at ${request.acknowledged.position} stands before one of an earlier round at ${before}`,
      );
    highest = Math.max(highest, request.acknowledged.position);
  }
}

/** Numbers of each stream are 0, 1, 2, ... and a tombstone may end it. */
function checkNumbers(all: readonly StoredEvent[], wrong: string[]): void {
  const next = new Map<string, number>();
  for (const event of all) {
    const expected = next.get(event.stream) ?? 0;
    if (event.number !== expected && event.number !== TOMBSTONE)
      wrong.push(`${keyOf(event)} should have number ${expected}`);
    next.set(event.stream, event.number === TOMBSTONE ? NaN : event.number + 1);
  }
}
