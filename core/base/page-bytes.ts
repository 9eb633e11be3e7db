import type { ByteShare } from './byte-budget.ts';
import { SkuaError } from './errors.ts';

/** What an event costs beside its data and metadata: the object, its id, and its place in an answer. */
export const EVENT_OVERHEAD_BYTES = 256;
/**
 * Times that an answer with links names the stream of an event, and bytes that each byte of the name may become in
 * them.
 */
const LINK_TIMES = 3;
const ESCAPED_BYTES = 3;
/** Links of an event of at most so many bytes, as ordinary names have, are no reason to end a page. */
const LINK_BYTES_FREE = 1_024;
/** Pages of at most this many bytes take nothing of a budget: the connection that they go to costs as much. */
const FREE_BYTES = 16_384;

/** How many bytes a page may have, and on whose account. */
export interface PageLimits {
  /** Bytes of the events with which a page ends, behind at least one. */
  readonly bytesMax: number;
  /** Bytes of events that are looked at for a page without payloads, behind at least one. */
  readonly scanBytesMax: number;
  /** Whether events are kept with data and metadata. Links have theirs in any case. */
  readonly hasPayloads: boolean;
  /** Length in bytes of an address without the name of the stream, where the answer has links to each event. */
  readonly addressBytes?: number | undefined;
  /** What the page holds is taken from this share, and is the reader's to give back; null where it is on no account. */
  readonly share: ByteShare | null;
  /** The reading ends when it aborts. */
  readonly signal?: AbortSignal;
}

/**
 * Adds up what the page that is being read holds. An event that it does not take is not kept: either the page ends
 * before it (`isFull`), or the budget has no room (`lacksRoom`): then what was read is dropped, `waitForRoom` resolves
 * when there is room for a whole page, and the page is read again. So a page that waits holds nothing.
 */
export class PageBytes {
  readonly limits: PageLimits;
  isFull = false;
  /**
   * Bytes of data and metadata of the events that were read, of links those of their own, also where the page is
   * without them.
   */
  read = 0;
  #bytes = 0;
  #scanned = 0;
  /** Bytes that need no further look at the budget. */
  #allowed: number;
  #lacking = 0;

  constructor(limits: PageLimits) {
    this.limits = limits;
    this.#allowed = limits.share === null ? Infinity : FREE_BYTES;
    limits.share?.release();
  }

  /** The page has ended because of the budget, and must be read again. */
  get lacksRoom(): boolean {
    return this.#lacking > 0;
  }

  /** The page holds more than it may, since it had to take its first event. */
  get isOver(): boolean {
    return this.#bytes > this.limits.bytesMax;
  }

  /**
   * Whether the page takes one more event with so many bytes of data and metadata, of a stream whose name has so many.
   */
  take(payloadBytes: number, nameBytes: number): boolean {
    const { bytesMax, scanBytesMax, hasPayloads } = this.limits;
    const next = this.#bytes + EVENT_OVERHEAD_BYTES + this.#linkBytes(nameBytes) + (hasPayloads ? payloadBytes : 0);
    const scanned = this.#scanned + payloadBytes;
    if ((next > bytesMax || scanned > scanBytesMax) && this.#bytes > 0) {
      this.isFull = true;
      return false;
    }
    if (next > this.#allowed && !this.#extend(next)) return false;
    this.#bytes = next;
    this.#scanned = scanned;
    return true;
  }

  /** Counts bytes that are kept of an event beside what `take` has counted. */
  note(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Takes the target in the place of a link that the page has taken. `isFirst`: the page may not end before it. */
  exchange(payloadBytes: number, nameBytes: number, isFirst: boolean): boolean {
    const next = this.#bytes + this.#linkBytes(nameBytes) + (this.limits.hasPayloads ? payloadBytes : 0);
    if (next > this.limits.bytesMax && !isFirst) {
      this.isFull = true;
      return false;
    }
    if (next > this.#allowed && !this.#extend(next)) return false;
    this.#bytes = next;
    return true;
  }

  /** Begins anew, with nothing taken. */
  restart(): void {
    this.isFull = false;
    this.read = 0;
    this.#bytes = 0;
    this.#scanned = 0;
  }

  /** Resolves when there is room for a whole page. Errors: `too_busy`, `aborted`. */
  async waitForRoom(): Promise<void> {
    const { share } = this.limits;
    const wanted = this.#lacking;
    this.#lacking = 0;
    this.restart();
    this.checkReader();
    share!.release();
    await share!.grow(wanted);
    this.#allowed = wanted;
  }

  /** The page is complete: what was taken in advance and not needed goes back. */
  settle(): void {
    if (this.#allowed > FREE_BYTES && this.limits.share !== null) this.limits.share.resize(this.#bytes);
  }

  /** Throws `aborted` once the reader is gone. */
  checkReader(): void {
    const { share, signal } = this.limits;
    if (share?.isClosed === true || signal?.aborted === true)
      throw new SkuaError('aborted', 'The client disconnected while its page was being read.');
  }

  #linkBytes(nameBytes: number): number {
    const { addressBytes } = this.limits;
    return addressBytes === undefined
      ? 0
      : Math.max(0, LINK_TIMES * (addressBytes + ESCAPED_BYTES * nameBytes) - LINK_BYTES_FREE);
  }

  #extend(next: number): boolean {
    const share = this.limits.share!;
    const wanted = next <= share.smallBytes ? share.smallBytes : Math.max(next, this.limits.bytesMax);
    if (share.tryGrow(wanted - share.heldBytes)) {
      this.#allowed = wanted;
      return true;
    }
    this.#lacking = wanted;
    return false;
  }
}
