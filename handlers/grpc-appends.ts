import type { ByteBudget } from '../core/byte-budget.ts';
import type { HeldWrite } from '../core/cluster/api.ts';
import { SkuaError } from '../core/errors.ts';
import { ANY, NO_STREAM, STREAM_EXISTS } from '../core/streams/api.ts';
import type { AppendResult, Authorize, NewEvent } from '../core/streams/api.ts';
import { encodeText } from '../core/text.ts';
import type { Forwarding } from './forward.ts';
import type { App, Call } from './http/context.ts';
import { GrpcError, STATUS } from './grpc/call.ts';
import type { Ending } from './grpc/call.ts';
import { notLeader } from './grpc/errors.ts';
import { readBatchAppendResp, StreamsService, writeBatchAppendReq } from './grpc/messages/streams.ts';
import type { AppendReqProposedMessage, BatchAppendReqOptions, BatchAppendResp } from './grpc/messages/streams.ts';
import { decode, encode } from './grpc/messages/wire.ts';
import { answerOf, MessageBlock, unframed } from './grpc/passed-on.ts';
import { AnsweredElsewhere, isUndecided } from './grpc/streams/batch-errors.ts';
import { isUuid } from './grpc/streams/proposed.ts';
import { background } from '../core/background.ts';

const { path: PATH } = StreamsService.methods.BatchAppend;
/** Appends that go to the leader together, and bytes of theirs; one alone may have more. */
const GROUP_APPENDS_MAX = 1_024;
const GROUP_BYTES_MAX = 1_048_576;
/** Correlation ids between members: what follows is the place in the group, in twelve digits. */
const CORRELATION = '00000000-0000-4000-8000-';

interface Parts {
  readonly call: Call;
  readonly app: App;
  readonly forwarding: Forwarding;
  readonly budget: ByteBudget;
  /** The client wants its appends to be decided by the member that it asks, or to be told of another. */
  readonly isForLeader: boolean;
}

interface Waiting {
  readonly stream: string;
  readonly expected: number;
  readonly events: readonly NewEvent[];
  readonly authorize: Authorize | undefined;
  readonly held: HeldWrite;
  resolve(result: AppendResult): void;
  reject(error: unknown): void;
}

/**
 * The appends of one call, which take their places in the log in the order in which they are made, whoever leads meanwhile: those that wait while a group of them is at
 * the leader go there as the next group. So a call costs the leader one request for many appends, too.
 */
export class AppendsElsewhere {
  readonly #parts: Parts;
  #waiting: Waiting[] = [];
  #isPassing = false;
  /** Those that this member decides. */
  readonly #here = new Set<Promise<unknown>>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  readonly append = (stream: string, expected: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> => {
    const { call, forwarding } = this.#parts;
    if (!this.#isPassing && forwarding.elsewhere === null) return this.#appendHere(stream, expected, events, authorize);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ stream, expected, events, authorize, held: forwarding.held(call), resolve, reject });
      if (this.#isPassing) return;
      this.#isPassing = true;
      // What is appended in the same breath goes with it.
      background(Promise.resolve().then(() => this.#passOn()));
    });
  };

  #appendHere(stream: string, expected: number, events: readonly NewEvent[], authorize: Authorize | undefined): Promise<AppendResult> {
    const appending = this.#parts.app.store.append(stream, expected, events, authorize);
    this.#here.add(appending);
    const done = () => { this.#here.delete(appending); };
    appending.then(done, done);
    return appending;
  }

  async #passOn(): Promise<void> {
    while (this.#waiting.length > 0) {
      await Promise.allSettled(this.#here);
      const group = this.#nextGroup();
      try {
        await this.#decide(group);
      } catch (error) {
        // Those that have been answered are past being told anything else.
        for (const { reject } of group) reject(error);
      }
    }
    this.#isPassing = false;
  }

  #nextGroup(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { events } of this.#waiting) {
      for (const { data, metadata } of events) bytes += data.length + metadata.length;
      if (count > 0 && (bytes > GROUP_BYTES_MAX || count >= GROUP_APPENDS_MAX)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  /** Settles all appends of a group, or throws what those that are not settled fail with. */
  async #decide(group: readonly Waiting[]): Promise<void> {
    const { call, app, forwarding, budget, isForLeader } = this.#parts;
    for (let left = group; left.length > 0;) {
      // Nobody waits for them any more, and they are not on their way.
      if (call.request.signal.aborted) throw new SkuaError('aborted', 'The call is over.');
      left = left.filter(({ held, reject }) => {
        const refusal = held.refusal();
        if (refusal !== null) reject(refusal);
        return refusal === null;
      });
      if (left.length === 0) return;
      const leader = forwarding.elsewhere;
      if (leader === null) {
        await this.#decideHere(left);
        return;
      }
      if (isForLeader) throw notLeader(leader.node);
      const body = bodyOf(left);
      const limit = app.options.bodyBytesMax;
      if (body.length > limit) throw new SkuaError('batch_too_large', `The append exceeds ${limit} bytes with all that belongs to it: send fewer events at once.`, { limit });
      const share = budget.share(null, call.countedAs);
      try {
        if (!share.add(body.length)) await share.room();
        // The first one is the oldest.
        const reply = await forwarding.passOn({ ...call, url: PATH, path: PATH }, true, body, left[0]!.held);
        if (reply === null) {
          await this.#decideHere(left);
          return;
        }
        const { ending, block } = answerOf(reply);
        const open = settle(left, unframed(block));
        if (open.length === 0) return;
        // It does not lead any more, and has decided some of them before: all others go to the next one, with their ids.
        if (open.length === left.length || 'httpStatus' in ending || ending.status !== STATUS.ok) throw errorOf(ending);
        left = open;
      } finally {
        share.close();
      }
    }
  }

  async #decideHere(appends: readonly Waiting[]): Promise<void> {
    const { forwarding } = this.#parts;
    await Promise.allSettled(appends.map(({ stream, expected, events, authorize, held, resolve, reject }) => forwarding.here(held, () => this.#appendHere(stream, expected, events, authorize)).then(resolve, reject)));
  }
}

/** One message for each append, numbered by its place. */
function bodyOf(appends: readonly Waiting[]): Uint8Array {
  const block = new MessageBlock();
  for (const [i, { stream, expected, events }] of appends.entries()) {
    const options: BatchAppendReqOptions = { streamIdentifier: { streamName: encodeText(stream) }, ...expectationOf(expected) };
    block.add(encode({ correlationId: { text: CORRELATION + String(i).padStart(12, '0'), isStructured: false }, options, proposedMessages: events.map(proposed), isFinal: true }, writeBatchAppendReq));
  }
  return block.bytes;
}

function expectationOf(version: number): Partial<BatchAppendReqOptions> {
  switch (version) {
    case ANY: return { any: {} };
    case NO_STREAM: return { noStream: {} };
    case STREAM_EXISTS: return { streamExists: {} };
    default: return { streamPosition: version };
  }
}

/** Ids in the form that takes less room; what is none goes as the text that it is, and is refused there. */
function proposed({ id, type, isJson, data, metadata }: NewEvent): AppendReqProposedMessage {
  return { id: { text: id, isStructured: isUuid(id) }, metadata: new Map([['type', type], ['content-type', isJson ? 'application/json' : 'application/octet-stream']]), customMetadata: metadata, data };
}

/** Answers all appends that the leader has decided; those that it has not are left. */
function settle(appends: readonly Waiting[], messages: Iterable<Uint8Array>): readonly Waiting[] {
  const open = new Set(appends);
  for (const message of messages) {
    const answer = decode(message, readBatchAppendResp);
    const append = appends[Number(answer.correlationId?.text.slice(CORRELATION.length))];
    if (append === undefined || isUndecided(answer.error)) continue;
    open.delete(append);
    tell(append, answer);
  }
  return [...open];
}

function tell({ events, resolve, reject }: Waiting, { success, error }: BatchAppendResp): void {
  if (error !== undefined) {
    reject(new AnsweredElsewhere(error));
    return;
  }
  const last = success?.currentRevision ?? -1;
  resolve({ firstEventNumber: last - events.length + 1, lastEventNumber: last, position: success?.position?.commitPosition ?? 0, isRepeat: false });
}

/** Why the leader has not looked at single appends. */
function errorOf(ending: Ending): Error {
  if ('httpStatus' in ending) return new SkuaError('not_ready', `The member that leads has answered with status ${ending.httpStatus}.`);
  const { status, message, trailers } = ending;
  if (status === STATUS.ok || status === STATUS.aborted) return new SkuaError('commit_outcome_unknown', 'The member that leads has not said what became of the append: look, or send it again, with the same event ids.');
  if (status === STATUS.unauthenticated) return new SkuaError('not_authenticated', message);
  if (status === STATUS.permissionDenied) return new SkuaError('access_denied', message);
  if (status === STATUS.unavailable) return new SkuaError('too_busy', message);
  return new GrpcError(status, message, trailers);
}
