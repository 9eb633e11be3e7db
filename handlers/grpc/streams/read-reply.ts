import type { ByteShare } from '../../../core/base/byte-budget.ts';
import type { StoredEvent } from '../../../core/streams/api.ts';
import { checkReader, withoutForbidden } from '../../streams/access.ts';
import { GrpcError, STATUS } from '../call.ts';
import type { GrpcCall, GrpcEnding } from '../call.ts';
import { eventBlock } from '../events/event-block.ts';
import type { EventForm } from '../events/event-block.ts';

/**
 * Events that are read at once, and the bytes at which such a page ends: what is sent in one block, and what one call
 * holds at a time.
 */
export const PAGE_EVENTS = 512;
export const PAGE_BYTES = 131_072;

/**
 * What goes out for one call of `Read`: blocks of messages, each only when the client has taken enough of the last one.
 */
export class Reply {
  readonly form: EventForm;
  readonly #call: GrpcCall;
  /** Whose access list is asked; null where the list of each event's stream is, as it is read. */
  readonly #stream: string | null;

  constructor(call: GrpcCall, stream: string | null, form: EventForm) {
    this.#call = call;
    this.#stream = stream;
    this.form = form;
  }

  /** How much a page may hold, and on whose account: it holds that until the next one is read. */
  get pageOptions(): { readonly bytesMax: number; readonly share: ByteShare | undefined } {
    const { app, call } = this.#call;
    return {
      bytesMax: Math.min(PAGE_BYTES, app.options.readPageBytesMax),
      share: app.server.replyShareOf?.(call.request),
    };
  }

  /** The events as messages. They are let go. */
  async block(events: StoredEvent[]): Promise<Uint8Array> {
    if (this.form.resolvesLinks) await withoutForbidden(this.#call.call, this.#call.app, events);
    const { transport } = this.#call;
    const block = eventBlock(events, this.form, null, (bytes) => transport.memory(bytes));
    events.length = 0;
    return block;
  }

  /** Resolves when more may be sent. */
  async send(block: Uint8Array): Promise<void> {
    const taken = this.#call.transport.send(block);
    if (taken !== null) await taken;
  }

  /**
   * Between two pages: the client is still there, and may still read. Behind one with nothing to send others have a
   * turn, for nothing was waited for.
   */
  async goOn(hasSent = true): Promise<void> {
    if (!hasSent) await this.#call.app.world.clock.yield();
    this.checkClient();
    if (this.#stream !== null) await checkReader(this.#call.call, this.#call.app, this.#stream);
  }

  /** Throws once the client waits for no more. */
  checkClient(): void {
    const { signal } = this.#call;
    if (!signal.aborted) return;
    const ending = signal.reason as Partial<GrpcEnding> | undefined;
    throw typeof ending?.status === 'number'
      ? new GrpcError(ending.status, ending.message ?? '', ending.trailers)
      : new GrpcError(STATUS.cancelled, 'The call is over.');
  }
}

/** One block of several. */
export function joined(blocks: readonly Uint8Array[]): Uint8Array {
  if (blocks.length === 1) return blocks[0]!;
  const out = new Uint8Array(blocks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const block of blocks) {
    out.set(block, at);
    at += block.length;
  }
  return out;
}
