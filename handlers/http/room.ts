import type { ByteShare } from '../../core/base/byte-budget.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { App, Call, Handler, ReplyBody } from './context.ts';

/**
 * What a reply that lists things takes before it is made, in bytes: as much as a small share of the budget may have.
 */
const LISTING_BYTES = 262_144;
/** Longer bodies are looked at: whether there is room for what they have become. */
const COUNTED_LENGTH = 65_536;

/**
 * A handler whose reply may be longer than some kB, and says how long only once it is made: it waits until there is
 * room for one, and what is longer than that is refused once it is there where it finds no more. So all that are under
 * way are counted, and one at most is not. Errors: `too_busy`.
 */
export function inRoom(handler: Handler): Handler {
  return async (call, app) => {
    await app.server.replyShareOf?.(call.request).grow(LISTING_BYTES);
    const reply = await handler(call, app);
    if (reply.body !== null) counted(call, app, reply.body);
    return reply;
  };
}

/**
 * A body that holds its own bytes instead of what it was made of. Throws `too_busy` where it has become much longer
 * than that, and there is no room for it.
 */
export function counted<B extends ReplyBody>(call: Call, app: App, body: B): B {
  if (body instanceof ReadableStream || body.length <= COUNTED_LENGTH) return body;
  const share = app.server.replyShareOf?.(call.request);
  hold(share, body.length, share?.heldBytes ?? 0);
  return body;
}

/** A body that is longer than its source by no more than this part is not refused for want of room. */
const USUAL_GROWTH = 1 / 8;

/**
 * Lets a share hold as many bytes as a body has become that was made of `source` bytes, where it held fewer. Throws
 * `too_busy` where that is much more, and there is no room for it.
 */
export function hold(share: ByteShare | undefined, length: number, source: number): void {
  if (share === undefined || length <= share.heldBytes) return;
  if (length <= source * (1 + USUAL_GROWTH)) share.resize(length);
  else if (!share.tryGrow(length - share.heldBytes)) {
    throw new SkuaError(
      'too_busy',
      'The replies in progress use all the memory available to them. Try again in a moment, or ask for less at once.',
    );
  }
}
