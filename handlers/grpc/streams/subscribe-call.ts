import { isSkuaError } from '../../../core/base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../../core/base/guid.ts';
import type { AllPosition, EventAccess, SubscriptionPage } from '../../../core/streams/api.ts';
import type { GrpcCall } from '../call.ts';
import { writeReadResp } from '../messages/streams.ts';
import type { ReadReqOptionsAllOptions, ReadReqOptionsStreamOptions, ReadResp } from '../messages/streams.ts';
import { frame } from '../messages/wire.ts';
import { positionOf, revisionOf } from './counted-read.ts';
import type { AllWanted } from './counted-read.ts';
import { filterOf } from './filter.ts';
import { unhandled } from './proposed.ts';
import { joined } from './read-reply.ts';
import type { Reply } from './read-reply.ts';

/**
 * Subscriptions. The client sets the pace: nothing is read before it has taken enough of the last page. A client that
 * reads too slowly while live gets what it has missed from the log, and `caught_up` again when it has all.
 */

export async function subscribeToStream(
  name: string,
  options: ReadReqOptionsStreamOptions,
  access: EventAccess | undefined,
  call: GrpcCall,
  reply: Reply,
): Promise<void> {
  const { app, signal } = call;
  const revision = revisionOf(options);
  const after = options.start !== undefined ? -1 : revision;
  const sending = new Sending(call, reply, after === 'end');
  try {
    await sending.all(
      app.store.followStream(name, {
        after,
        resolveLinks: reply.form.resolvesLinks,
        access,
        signal,
        ...reply.pageOptions,
      }),
    );
  } catch (error) {
    if (after !== 'end' || sending.hasBegun || !isSkuaError(error, 'stream_deleted')) throw error;
    // Nothing will ever come, and the recorded node waits for it.
    await sending.page(NOTHING);
    await app.store.waitForStream(name, signal);
    reply.checkClient();
    throw error;
  }
}

export async function subscribeToAll(
  options: ReadReqOptionsAllOptions,
  { filter: filterOptions, access }: AllWanted,
  call: GrpcCall,
  reply: Reply,
): Promise<void> {
  const { app, signal } = call;
  const after = positionOf(options);
  const filter = filterOptions === undefined ? undefined : await filterOf(filterOptions, app);
  if (filter?.checkpoints === null) throw unhandled();
  try {
    const filtered = filter === undefined ? {} : { access, filter: filter.filter, checkpoints: filter.checkpoints };
    await new Sending(call, reply, true).all(
      app.store.followAll({ after, resolveLinks: reply.form.resolvesLinks, signal, ...reply.pageOptions, ...filtered }),
    );
  } catch (error) {
    throw isSkuaError(error, 'invalid_position') ? unhandled() : error;
  }
}

const NOTHING: SubscriptionPage<never> = {
  events: [],
  checkpoints: [],
  isCaughtUp: true,
  after: null,
  isAwaited: false,
};

/** What a subscription says, page by page. */
class Sending {
  hasBegun = false;
  readonly #call: GrpcCall;
  readonly #reply: Reply;
  readonly #tellsOfNothing: boolean;

  /** `tellsOfNothing`: that history has been read is said of a stream too that is not there. */
  constructor(call: GrpcCall, reply: Reply, tellsOfNothing: boolean) {
    this.#call = call;
    this.#reply = reply;
    this.#tellsOfNothing = tellsOfNothing;
  }

  /** Ends with the subscription: never by itself. */
  async all(pages: AsyncIterable<SubscriptionPage<number> | SubscriptionPage<AllPosition>>): Promise<never> {
    for await (const page of pages) {
      // The first page is read as soon as access was checked; others come whenever something is written.
      if (this.hasBegun) await this.#reply.goOn();
      await this.page(page);
    }
    this.#reply.checkClient();
    throw unhandled();
  }

  async page({
    events,
    checkpoints,
    isCaughtUp,
    isAwaited,
  }: SubscriptionPage<number> | SubscriptionPage<AllPosition>): Promise<void> {
    const blocks: Uint8Array[] = [];
    if (!this.hasBegun)
      blocks.push(
        message({
          confirmation: { subscriptionId: guidToText(guidFromUuidBytes(this.#call.app.world.ids.uuidBytes()), 0) },
        }),
      );
    let sent = 0;
    for (const { behind, after } of checkpoints) {
      if (behind > sent) blocks.push(await this.#reply.block(events.slice(sent, behind)));
      sent = behind;
      if (typeof after !== 'number')
        blocks.push(message({ checkpoint: { commitPosition: after.commit, preparePosition: after.prepare } }));
    }
    if (events.length > sent) blocks.push(await this.#reply.block(sent === 0 ? events : events.slice(sent)));
    if (isCaughtUp && (this.hasBegun || this.#tellsOfNothing || !isAwaited)) blocks.push(message({ caughtUp: {} }));
    this.hasBegun = true;
    if (blocks.length > 0) await this.#reply.send(joined(blocks));
  }
}

function message(response: ReadResp): Uint8Array {
  return frame(response, writeReadResp);
}
