import type { Ending } from '../../../handlers/grpc/call.ts';
import type { Json } from '../codec.ts';
import { toBytes, typeOf } from '../codec.ts';
import { loadGrpcExchanges, pathOf, requestOf, timeOf, trailersOf } from './exchange.ts';
import type { Exchange } from './exchange.ts';
import { Likeness } from './likeness.ts';
import { Recorder } from './unrecorded.ts';
import type { Writes } from './unrecorded.ts';

/** A call as its client sees it. */
export interface ClientCall {
  readonly received: readonly Json[];
  readonly ending: Ending | null;
  push(...messages: readonly Json[]): unknown;
  pushBytes(...messages: readonly Uint8Array[]): unknown;
  halfClose(): unknown;
  cancel(): void;
}

export interface World {
  readonly store: Writes;
  open(path: string, metadata: Readonly<Record<string, string>>, deadlineMs: number | null): ClientCall;
  /** Lets the server work until this holds, or it has become clear that it never will. */
  until(holds: () => boolean): Promise<boolean>;
  /** Lets the server work for a while, so that what should not come can come. */
  quiet(): Promise<void>;
  /** The time of the recording at which a call was made. */
  at(timeMs: number): void;
  /** Whether a call can be made here at all. */
  plays(exchange: Exchange): boolean;
}

/** How each call differed, by its name; calls that did not are absent. */
export interface Replayed {
  readonly differences: ReadonlyMap<string, readonly string[]>;
  readonly compared: number;
  /** Paths of methods that this node does not have, where the recorded one did. */
  readonly absent: ReadonlySet<string>;
}

const AT_END = 1_000;

/**
 * A recorded deadline by which not all had come is doubled up to twice this, in milliseconds: no longer than is waited
 * for anything.
 */
const LONGER_DEADLINE_MS_MAX = 800;

/**
 * Calls that were made while another one was open: by its name, how many messages it had received by then, and their
 * names.
 */
const WITHIN: Readonly<Record<string, readonly (readonly [number, readonly string[]])[]>> = {
  'ps: read with buffer 3, ack': [
    [4, ['ps: info while a consumer is connected']],
    [AT_END, ['ps: info after the acks']],
  ],
  'ps: replay parked with a consumer': [
    [1, ['ps: replay parked']],
    [AT_END, ['ps: info after the replay']],
  ],
  'ps: read $all group, nack stop': [[AT_END, ['ps: info of the $all group after reading']]],
  'ps: first of two on a group with max_subscriber_count 1': [
    [3, ['ps: second of two on a group with max_subscriber_count 1']],
  ],
  'ps: group deleted while reading': [[4, ['ps: delete']]],
  'ps: group updated while reading': [[4, ['ps: update of a group with a consumer']]],
  'ps: reading across a subsystem restart': [[1, ['ps: restart subsystem']]],
  'shutdown: subscription to a stream, open': [[2, ['shutdown: subscription to $all, open']]],
  'shutdown: subscription to $all, open': [[2, ['shutdown: persistent subscription, open']]],
  'shutdown: persistent subscription, open': [[1, ['shutdown: batch append, open']]],
  'shutdown: batch append, open': [[1, ['shutdown: stats, open']]],
  'shutdown: stats, open': [[AT_END, ['shutdown: as ops', 'shutdown: read 0 ms after the answer']]],
};

/** Calls whose client kept its side open. */
function staysOpen({ name, service, method }: Exchange): boolean {
  if (service.endsWith('.PersistentSubscriptions') && method === 'Read') return name !== 'ps: half-close by the client';
  return /^(batch: (never final, 1 s|later chunk|long-lived)|append: cancelled before|shutdown: batch)/.test(name);
}

/** Calls that the recorder made once what they tell of had been done: it waited. */
const AFTER_A_WHILE = /^(ps: info (after|of the|with parked)|shutdown: as ops)/;

/** Which of many messages were recorded. */
function sampled(exchange: Exchange, received: readonly Json[]): readonly Json[] {
  // Appends of a batch are answered as they are completed, in any order.
  if (exchange.method === 'BatchAppend')
    return exchange.responses.length === received.length
      ? exchange.responses.map(
          (recorded) => received.find((ours) => isSame(ours['correlation_id'], recorded['correlation_id'])) ?? {},
        )
      : received;
  if (exchange.name === 'sub: $all from start') return [...received.slice(0, 3), ...received.slice(-2)];
  return exchange.responses_total === undefined ? received : received.slice(0, exchange.responses.length);
}

export class Replay {
  readonly #world: World;
  readonly #recorder: Recorder;
  readonly #likeness = new Likeness();
  readonly #exchanges = loadGrpcExchanges();
  readonly #byName = new Map(this.#exchanges.map((exchange) => [exchange.name, exchange]));
  readonly #differences = new Map<string, string[]>();
  readonly #absent = new Set<string>();
  readonly #played = new Set<string>();

  constructor(world: World) {
    this.#world = world;
    this.#recorder = new Recorder(world.store, (recorded, position) => this.#likeness.pair(recorded, position));
  }

  async run(): Promise<Replayed> {
    const inner = new Set(Object.values(WITHIN).flat(2).flat());
    for (const exchange of this.#exchanges) if (!inner.has(exchange.name)) await this.#play(exchange);
    return { differences: this.#differences, compared: this.#played.size, absent: this.#absent };
  }

  async #play(exchange: Exchange): Promise<void> {
    if (!this.#world.plays(exchange) || this.#played.has(exchange.name)) return;
    this.#played.add(exchange.name);
    const found = await this.#differencesOf(exchange);
    if (found.length > 0) this.#differences.set(exchange.name, found);
  }

  async #differencesOf(exchange: Exchange, deadlineMs = exchange.client_deadline_ms ?? null): Promise<string[]> {
    const { name, requests, responses } = exchange;
    const time = timeOf(exchange);
    if (time !== null) this.#world.at(time);
    await this.#recorder.before(name);
    if (AFTER_A_WHILE.test(name)) await this.#world.quiet();
    const isLive = /^(sub|ps|shutdown|deadline): /.test(name) && exchange.order !== undefined;
    if (!isLive) await this.#recorder.saw(responses);
    const call = this.#world.open(pathOf(exchange), exchange.metadata, deadlineMs);
    const script = exchange.order ?? '>'.repeat(requests.length) + '<'.repeat(responses.length);
    const halfCloses = staysOpen(exchange)
      ? 'never'
      : exchange.note?.startsWith('half-closed after the responses') === true
        ? 'late'
        : 'at once';
    let sent = 0;
    let wanted = 0;
    if (requests.length === 0 && halfCloses === 'at once') call.halfClose();
    for (const step of script) {
      if (step === '>') {
        await this.#within(exchange, wanted);
        this.#send(call, exchange, requests[sent++]!);
        if (sent === requests.length && halfCloses === 'at once') call.halfClose();
        continue;
      }
      await this.#within(exchange, wanted);
      await this.#recorder.during(name, wanted);
      if (isLive) await this.#recorder.saw(responses.slice(wanted, wanted + 1));
      wanted++;
      if (!(await this.#world.until(() => call.received.length >= wanted || call.ending !== null))) break;
      if (call.ending !== null && call.received.length < wanted) break;
    }
    await this.#within(exchange, AT_END);
    await this.#recorder.during(name, wanted);
    const found = await this.#judged(exchange, call, halfCloses === 'late');
    // Where a machine stood still until the deadline was over that says nothing of the answers.
    const isTooLate =
      deadlineMs !== null && deadlineMs <= LONGER_DEADLINE_MS_MAX && call.received.length < responses.length;
    return isTooLate ? this.#differencesOf(exchange, 2 * deadlineMs) : found;
  }

  #send(call: ClientCall, exchange: Exchange, request: Json): void {
    if (typeof request['base64'] === 'string') call.pushBytes(Buffer.from(request['base64'], 'base64'));
    else call.push(this.#likeness.translated(requestOf(request) as Json));
  }

  /** Calls within this one whose turn has come. */
  async #within({ name }: Exchange, received: number): Promise<void> {
    for (const [count, names] of WITHIN[name] ?? []) {
      if (count > received || this.#played.has(names[0]!)) continue;
      for (const inner of names) await this.#play(this.#byName.get(inner)!);
    }
  }

  async #judged(exchange: Exchange, call: ClientCall, isHalfClosedNow: boolean): Promise<string[]> {
    const { name } = exchange;
    const found: string[] = [];
    if (exchange.responses_total !== undefined)
      await this.#world.until(() => call.received.length >= exchange.responses_total! || call.ending !== null);
    if (exchange.cancelled_by_client === true) {
      await this.#world.quiet();
      const wasOpen = call.ending === null;
      if (isHalfClosedNow) {
        call.halfClose();
        await this.#world.quiet();
      }
      if (call.ending !== null)
        found.push(`ends with ${shownEnding(call.ending)}${wasOpen ? ' once half-closed' : ''}`);
      call.cancel();
    } else {
      await this.#world.until(() => call.ending !== null);
      found.push(...this.#endingOf(exchange, call));
    }
    if (call.ending === null) await this.#world.until(() => call.ending !== null);
    const { ending } = call;
    const isAbsent =
      ending !== null &&
      ('httpStatus' in ending ? ending.httpStatus === 404 : ending.message === 'Method is unimplemented.');
    if (isAbsent && exchange.code !== 12) this.#absent.add(pathOf(exchange));
    const received = sampled(exchange, call.received);
    const count = call.received.filter((message, i) => isCounted(name, message, i)).length;
    if (exchange.responses_total !== undefined && count !== exchange.responses_total)
      found.push(`${count} messages instead of ${exchange.responses_total}`);
    if (received.length !== exchange.responses.length)
      found.push(`${kinds(received)} instead of ${kinds(exchange.responses)}`);
    else
      for (const [i, recorded] of exchange.responses.entries())
        found.push(
          ...this.#likeness.compare(withoutDetail(recorded), received[i], `[${i}]`),
          ...detailOf(recorded, received[i]!, i),
        );
    return found;
  }

  #endingOf({ code, details, ...exchange }: Exchange, { ending }: ClientCall): string[] {
    if (ending === null) return ['never ends'];
    const [recorded, ours] = [`${code} ${details}`, shownEnding(ending)];
    // The words for a deadline are the client's.
    const found =
      recorded === ours || (exchange.client_deadline_ms !== undefined && 'status' in ending && ending.status === code)
        ? []
        : [`ends with ${ours} instead of ${recorded}`];
    const trailers =
      'httpStatus' in ending
        ? {}
        : Object.fromEntries(Object.entries(ending.trailers).filter(([, value]) => value.length > 0));
    const theirs = trailersOf(exchange as Exchange);
    for (const name of new Set([...Object.keys(theirs), ...Object.keys(trailers)]))
      if (trailers[name] !== theirs[name])
        found.push(
          `trailer ${name}: ${name === 'scavenge-id' ? 'one' : String(trailers[name])} instead of ${theirs[name]}`,
        );
    return found;
  }
}

/** Whether a message comes in every replay. */
function isCounted(name: string, message: Json, index: number): boolean {
  // One that falls behind and catches up says so each time.
  return name !== 'sub: slow consumer while live' || index < 2 || message['caught_up'] === undefined;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function shownEnding(ending: Ending): string {
  return 'httpStatus' in ending
    ? `${ending.httpStatus === 404 ? 12 : 2} Received HTTP status code ${ending.httpStatus}`
    : `${ending.status} ${ending.message}`;
}

function kinds(messages: readonly Json[]): string {
  const all = messages.map(
    (message) =>
      Object.keys(message)
        .filter((key) => !key.startsWith('$'))
        .join('+') || '{}',
  );
  return `${messages.length} (${all.slice(0, 6).join(', ')}${all.length > 6 ? ', …' : ''})`;
}

function withoutDetail(recorded: Json): Json {
  return Object.fromEntries(Object.entries(recorded).filter(([key]) => key !== '$decoded_detail'));
}

/** The recorder has decoded the details of errors of batches: so must ours be. */
function detailOf(recorded: Json, ours: Json, index: number): string[] {
  const detail = recorded['$decoded_detail'] as Json | undefined;
  const url = recorded['error']?.details?.type_url as string | undefined;
  if (detail === undefined || url === undefined || ours['error'] === undefined) return [];
  const expected = Buffer.from(toBytes(typeOf(url.slice(url.indexOf('/') + 1)), detail)).toString('base64');
  return expected === (recorded['error'].details.value ?? '') ? [] : [`[${index}]: the recording contradicts itself`];
}
