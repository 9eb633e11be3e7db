import { guidToText, guidFromUuidBytes } from '../../core/base/guid.ts';
import { ANY } from '../../core/streams/api.ts';
import type { EventStore, NewEvent } from '../../core/streams/api.ts';
import { codeOf } from './crash.ts';
import { Random } from './random.ts';

/** One request that a client makes of the store, and what became of it. */
export interface Request {
  readonly kind: 'append' | 'metadata' | 'soft-delete' | 'hard-delete';
  readonly stream: string;
  /** Where its events go: the stream, or its metastream. */
  readonly target: string;
  readonly expectedVersion: number;
  readonly events: readonly NewEvent[];
  /** Requests of one round run at the same time; those of a later round begin after all of an earlier one ended. */
  readonly round: number;
  /** Set when it was acknowledged; numbers are -1 where the store does not tell them. */
  acknowledged: { firstEventNumber: number; lastEventNumber: number; position: number; operations: number } | null;
  /** Code of the error it ended with. */
  refusedWith: string | null;
  /**
   * Appends to other streams that are made in the same commit, all or none; each stands among the requests of the
   * round, too, with null here. Absent for a request of its own.
   */
  readonly together?: readonly Request[] | null;
}

export interface WorkloadOptions {
  readonly seed: number;
  readonly rounds: number;
  readonly streams?: number;
  /** Largest payload of one event in bytes. */
  readonly dataBytesMax?: number;
  readonly prefix?: string;
  /** Chance that an append is one to several streams. */
  readonly togetherChance?: number;
  /** Number of the first round, for a workload that goes on after another one. */
  readonly firstRound?: number;
}

const text = new TextEncoder();
const PREFIX = 'load';

/** The requests of a workload, decided beforehand, so that a seed means the same whatever goes wrong. */
export function planWorkload(options: WorkloadOptions): Request[][] {
  // Another sequence than that of seeded ids, so that no id comes up twice.
  const random = new Random(options.seed ^ 0x5bd1_e995);
  const streams = Array.from({ length: options.streams ?? 6 }, (_, i) => `${options.prefix ?? PREFIX}-${i}`);
  const rounds: Request[][] = [];
  const first = options.firstRound ?? 0;
  for (let round = first; round < first + options.rounds; round++) {
    const count = random.int(1, 4);
    const requests = Array.from({ length: count }, () =>
      planRequest(random, random.pick(streams), round, options.dataBytesMax ?? 900),
    );
    rounds.push(
      options.togetherChance === undefined
        ? requests
        : requests.flatMap((request) => joined(request, random, streams, options.togetherChance!)),
    );
  }
  return rounds;
}

function planRequest(random: Random, stream: string, round: number, dataBytesMax: number): Request {
  const request = (kind: Request['kind'], target: string, events: NewEvent[]): Request => ({
    kind,
    stream,
    target,
    expectedVersion: ANY,
    events,
    round,
    acknowledged: null,
    refusedWith: null,
  });
  const choice = random.int(0, 99);
  if (choice < 8)
    return request('metadata', `$$${stream}`, [
      newEvent(
        random,
        '$metadata',
        random.pick(['{"$maxCount":5}', '{"$tb":3,"owner":"team-1"}', '{"$maxCount":40,"$tb":1}', '{}']),
      ),
    ]);
  if (choice < 13) return request('soft-delete', `$$${stream}`, []);
  // Hard deletes end a stream, so only two streams get them.
  if (choice < 16 && /-[01]$/.test(stream)) return request('hard-delete', stream, []);
  const count = choice < 60 ? 1 : random.int(2, 12);
  return request(
    'append',
    stream,
    Array.from({ length: count }, () => newEvent(random, `type-${random.int(0, 4)}`, null, dataBytesMax)),
  );
}

/** The append with others to other streams, which share its fate. */
function joined(request: Request, random: Random, streams: readonly string[], chance: number): readonly Request[] {
  if (request.kind !== 'append' || !random.chance(chance)) return [request];
  const others = streams
    .filter((stream) => stream !== request.stream && random.chance(0.4))
    .map((stream): Request => ({
      ...request,
      stream,
      target: stream,
      events: Array.from({ length: random.int(1, 4) }, () => newEvent(random, 'together', null, 400)),
      together: null,
    }));
  return others.length === 0 ? [request] : [{ ...request, together: others }, ...others];
}

export function newEvent(random: Random, type: string, json: string | null, dataBytesMax = 900): NewEvent {
  const id = guidToText(guidFromUuidBytes(randomUuid(random)), 0);
  if (json !== null) return { id, type, isJson: true, data: text.encode(json), metadata: new Uint8Array(0) };
  const isJson = random.chance(0.5);
  const size = random.chance(0.1) ? 0 : random.int(1, dataBytesMax);
  const data = isJson ? text.encode(JSON.stringify({ at: random.next(), fill: 'x'.repeat(size) })) : random.bytes(size);
  return { id, type, isJson, data, metadata: random.chance(0.3) ? random.bytes(random.int(1, 40)) : new Uint8Array(0) };
}

export function randomUuid(random: Random): Uint8Array {
  const id = random.bytes(16);
  id[6] = (id[6]! & 0x0f) | 0x40;
  id[8] = (id[8]! & 0x3f) | 0x80;
  return id;
}

/** Makes one request and notes its outcome. `operations` counts what the storage has done so far. */
export async function perform(store: EventStore, request: Request, operations: () => number): Promise<void> {
  if (request.together === null) return;
  try {
    if (request.together !== undefined) {
      const all = [request, ...request.together];
      const { streams } = await store.appendToStreams(
        all.map(({ stream, expectedVersion, events }) => ({ stream, expectedVersion, events })),
      );
      for (const [i, one] of all.entries()) {
        const { lastEventNumber, position } = streams[i]!;
        one.acknowledged = {
          firstEventNumber: lastEventNumber - one.events.length + 1,
          lastEventNumber,
          position,
          operations: operations(),
        };
      }
    } else if (request.kind === 'append' || request.kind === 'metadata') {
      const result = await store.append(request.target, request.expectedVersion, request.events);
      request.acknowledged = {
        firstEventNumber: result.firstEventNumber,
        lastEventNumber: result.lastEventNumber,
        position: result.position,
        operations: operations(),
      };
    } else {
      const result = await store.deleteStream(
        request.stream,
        request.expectedVersion,
        request.kind === 'soft-delete' ? 'soft' : 'hard',
      );
      request.acknowledged = {
        firstEventNumber: -1,
        lastEventNumber: -1,
        position: result.position,
        operations: operations(),
      };
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === null) throw error;
    for (const one of [request, ...(request.together ?? [])]) one.refusedWith = code;
  }
}
