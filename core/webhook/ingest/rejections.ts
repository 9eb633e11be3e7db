import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import { ANY } from '../../streams/api.ts';
import type { EventStore, NewEvent } from '../../streams/api.ts';
import { encodeText } from '../../base/text.ts';
import { timestampText } from '../../base/time.ts';
import { uuidText } from './delivery.ts';
import { changeMetadata } from './delivery-notes.ts';
import { background } from '../../base/background.ts';

/**
 * Why calls of a connector were refused, in `$webhook-<id>-rejections`: of calls at most ten a minute, the rest counted
 * in the next one; of accepted events that were lost, every one. No values of headers, and no secrets.
 */

const REJECTION_TYPE = '$webhook-rejection';
/** `$maxCount` of the stream, unless a user has set another one. */
const REJECTIONS_KEPT = 1_000;
export const REJECTIONS_A_MINUTE = 10;
const MINUTE_MS = 60_000;
/** Appends of refused calls that may be under way: a store that hangs must not fill the memory. */
const UNDER_WAY_MAX = 2 * REJECTIONS_A_MINUTE;
const EVENTS_A_WRITE = 256;
export const HEADER_NAMES_MAX = 100;
const HEADER_NAME_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 500;
const TURN = Promise.resolve();
const LOGGED_IDS_MAX = 20;
const NO_BYTES = new Uint8Array(0);

interface Rejection {
  /** What the caller was answered. */
  readonly status: number;
  readonly reason: string;
  readonly headerNames: Iterable<string>;
  /** Null where none is known. */
  readonly deliveryId: string | null;
}

/** An accepted delivery whose event was not written, and why by a code. */
interface Loss extends Rejection {
  readonly code: string;
}

interface RejectionsParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly stream: string;
}

export class Rejections {
  readonly #parts: RejectionsParts;
  readonly #underWay = new Set<Promise<void>>();
  readonly #losses: Loss[] = [];
  #minuteFromMs = Number.NEGATIVE_INFINITY;
  #inMinute = 0;
  #suppressed = 0;
  #isPrepared = false;

  constructor(parts: RejectionsParts) {
    this.#parts = parts;
  }

  /** Notes a refused call in the background, or only counts it. True when it is noted. */
  note(rejection: () => Rejection): boolean {
    const now = this.#parts.clock.monotonicMs();
    if (now - this.#minuteFromMs >= MINUTE_MS) {
      this.#minuteFromMs = now;
      this.#inMinute = 0;
    }
    if (this.#inMinute >= REJECTIONS_A_MINUTE || this.#underWay.size >= UNDER_WAY_MAX) {
      this.#suppressed++;
      return false;
    }
    this.#inMinute++;
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    const noted = rejection();
    this.#later(this.#write([this.#eventOf(noted, suppressed)], [noted]));
    return true;
  }

  /** Notes an accepted delivery whose event is lost, in the background. */
  lost(loss: Loss): void {
    this.#losses.push(loss);
    if (this.#losses.length === 1) this.#later(this.#writeLosses());
  }

  /** Losses of the same turn are written together. */
  async #writeLosses(): Promise<void> {
    await TURN;
    while (this.#losses.length > 0) {
      const losses = this.#losses.slice(0, EVENTS_A_WRITE);
      this.#parts.log.warn('the events of webhook calls were not written: the stream of rejections says why', {
        rejections: this.#parts.stream,
        count: losses.length,
        codes: [...new Set(losses.map(({ code }) => code))],
      });
      await this.#write(
        losses.map((each) => this.#eventOf(each, 0)),
        losses,
      );
      this.#losses.splice(0, losses.length);
    }
  }

  /** Resolves when everything noted so far is written, or failed. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #later(written: Promise<void>): void {
    this.#underWay.add(written);
    background(written.finally(() => this.#underWay.delete(written)));
  }

  async #write(events: readonly NewEvent[], rejections: readonly Rejection[]): Promise<void> {
    const { store, ids, log, stream } = this.#parts;
    try {
      if (!this.#isPrepared) {
        await changeMetadata(store, ids, stream, (metadata) =>
          metadata.maxCount === undefined ? { ...metadata, maxCount: REJECTIONS_KEPT } : null,
        );
        this.#isPrepared = true;
      }
      await store.append(stream, ANY, events);
    } catch (error) {
      log.error('refused or lost webhook calls could not be recorded', {
        stream,
        count: events.length,
        error: String(error),
        deliveryIds: rejections
          .map(({ deliveryId }) => deliveryId)
          .filter((id) => id !== null)
          .slice(0, LOGGED_IDS_MAX),
      });
    }
  }

  #eventOf({ status, reason, headerNames, deliveryId }: Rejection, suppressed: number): NewEvent {
    const { clock, ids } = this.#parts;
    const headers: string[] = [];
    for (const name of headerNames)
      if (headers.length < HEADER_NAMES_MAX) headers.push(name.slice(0, HEADER_NAME_LENGTH_MAX));
    const data = JSON.stringify({
      time: timestampText(Math.floor(clock.nowMs()), 0),
      status,
      reason: reason.slice(0, REASON_LENGTH_MAX).toWellFormed(),
      headers,
      ...(deliveryId !== null && { deliveryId }),
      ...(suppressed > 0 && { suppressed }),
    });
    return {
      id: uuidText(ids.uuidBytes()),
      type: REJECTION_TYPE,
      isJson: true,
      data: encodeText(data),
      metadata: NO_BYTES,
    };
  }
}

/** Values shorter than this are too common to be taken out of a text. */
const VALUE_LENGTH_MIN = 6;
/** Where a text was cut. */
const CUT = '…';

/**
 * A reason, which may quote what a script threw, without the values of headers and secrets, also as JSON writes them.
 */
export function withoutValues(reason: string, values: Iterable<string>): string {
  const hidden = [...values]
    .flatMap((value) => [value, JSON.stringify(value).slice(1, -1)])
    .filter((value) => value.length >= VALUE_LENGTH_MIN);
  // Longest first: what is left of a value behind a shorter one in it would stay.
  hidden.sort((a, b) => b.length - a.length);
  const cutAt = reason.lastIndexOf(CUT);
  let text = cutAt < 0 ? reason : withoutBeginning(reason.slice(0, cutAt), hidden) + reason.slice(cutAt);
  for (const value of hidden) text = text.replaceAll(value, CUT);
  return text;
}

/** A long reason was cut, perhaps in the middle of a value: the text less the longest beginning of one at its end. */
function withoutBeginning(text: string, values: readonly string[]): string {
  let longest = 0;
  for (const value of values) {
    let length = Math.min(value.length - 1, text.length);
    while (length > longest && !text.endsWith(value.slice(0, length))) length--;
    if (length >= VALUE_LENGTH_MIN) longest = Math.max(longest, length);
  }
  return text.slice(0, text.length - longest);
}
