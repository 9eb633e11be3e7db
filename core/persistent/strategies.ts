import { JsonScanner } from '../base/json-scanner.ts';
import { Hash64 } from '../base/stream-hash.ts';
import type { StreamHasher } from '../base/stream-hash.ts';
import { parseLink } from '../streams/format/links.ts';
import { LINK_TYPE } from '../streams/format/names.ts';
import type { StoredEvent } from '../streams/api.ts';
import { decodeText } from '../base/text.ts';
import type { Consumer } from './consumer.ts';
import type { Message } from './message.ts';

/** Decides which consumer of a group gets a message. */
export interface Strategy {
  add(consumer: Consumer): void;
  remove(consumer: Consumer): void;
  /** A consumer with room for the message, which holds its event; null for none now. */
  choose(message: Message): Consumer | null;
  /** The consumer chosen has got the message, which is no longer with it once it is answered. */
  assigned(message: Message): void;
  answered(message: Message): void;
  /** A message for which there is no room says nothing about the next one. */
  readonly isPinned: boolean;
}

export function createStrategy(name: string, hasher: StreamHasher): Strategy {
  switch (name) {
    case 'DispatchToSingle':
      return new InTurn(false);
    case 'Pinned':
      return new Pinned(streamOfEvent, hasher);
    case 'PinnedByCorrelation':
      return new Pinned(correlationOf, hasher);
    // A name that this version does not know, kept by another one: sharing out loses nothing.
    default:
      return new InTurn(true);
  }
}

/** Consumers in a ring. RoundRobin moves on with each message, DispatchToSingle where a consumer has no room. */
class InTurn implements Strategy {
  readonly isPinned = false;
  readonly #movesOn: boolean;
  readonly #consumers: Consumer[] = [];
  #at = 0;

  constructor(movesOn: boolean) {
    this.#movesOn = movesOn;
  }

  add(consumer: Consumer): void {
    this.#consumers.push(consumer);
  }

  remove(consumer: Consumer): void {
    const at = this.#consumers.indexOf(consumer);
    if (at < 0) return;
    this.#consumers.splice(at, 1);
    if (at < this.#at) this.#at--;
    if (this.#at >= this.#consumers.length) this.#at = 0;
  }

  choose(): Consumer | null {
    const consumers = this.#consumers;
    for (let tries = consumers.length; tries > 0; tries--) {
      const consumer = consumers[this.#at]!;
      const hasRoom = consumer.hasRoom;
      if (this.#movesOn || !hasRoom) this.#at = (this.#at + 1) % consumers.length;
      if (hasRoom) return consumer;
    }
    return null;
  }

  assigned(): void {}
  answered(): void {}
}

/** Buckets of hashes; what they are hashes of goes to one consumer as long as that is there. */
const BUCKETS = 1_024;

/**
 * Messages with the same text go to the same consumer: so they are worked off in order. A consumer that comes takes
 * over its share of the buckets, each when nothing of it is under way any more; until then its messages wait, since
 * none may overtake another.
 */
class Pinned implements Strategy {
  readonly isPinned = true;
  readonly #textOf: (event: StoredEvent) => string;
  readonly #hasher: StreamHasher;
  readonly #hash = new Hash64();
  readonly #consumers: Consumer[] = [];
  /**
   * Which consumer has a bucket, and which one is to have it. All are made with the first consumer: most groups wait
   * for one.
   */
  #owners: (Consumer | null)[] = [];
  #heirs: (Consumer | null)[] = [];
  #inFlight = new Uint32Array(0);

  constructor(textOf: (event: StoredEvent) => string, hasher: StreamHasher) {
    this.#textOf = textOf;
    this.#hasher = hasher;
  }

  add(consumer: Consumer): void {
    if (this.#owners.length === 0) {
      this.#owners = Array.from({ length: BUCKETS }, () => null);
      this.#heirs = Array.from({ length: BUCKETS }, () => null);
      this.#inFlight = new Uint32Array(BUCKETS);
    }
    this.#consumers.push(consumer);
    const share = Math.floor(BUCKETS / this.#consumers.length);
    for (let bucket = 0; bucket < BUCKETS && consumer.buckets < share; bucket++) {
      const heir = this.#heirs[bucket]!;
      if (heir === null || heir.buckets > share) this.#leave(bucket, consumer);
    }
  }

  remove(consumer: Consumer): void {
    const at = this.#consumers.indexOf(consumer);
    if (at < 0) return;
    this.#consumers.splice(at, 1);
    let next = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      if (this.#heirs[bucket] === consumer)
        this.#leave(bucket, this.#consumers.length === 0 ? null : this.#consumers[next++ % this.#consumers.length]!);
    }
  }

  /** The bucket is to be another one's. */
  #leave(bucket: number, heir: Consumer | null): void {
    const before = this.#heirs[bucket]!;
    if (before !== null) before.buckets--;
    if (heir !== null) heir.buckets++;
    this.#heirs[bucket] = heir;
    if (this.#inFlight[bucket] === 0) this.#owners[bucket] = heir;
  }

  choose(message: Message): Consumer | null {
    if (this.#consumers.length === 0) return null;
    if (message.bucket < 0) {
      this.#hasher.hash(this.#textOf(message.event!), this.#hash);
      message.bucket = (this.#hash.hi >>> 0) % BUCKETS;
    }
    const owner = this.#owners[message.bucket]!;
    return owner !== null && owner === this.#heirs[message.bucket] && owner.hasRoom ? owner : null;
  }

  assigned({ bucket }: Message): void {
    this.#inFlight[bucket]!++;
  }

  answered({ bucket }: Message): void {
    if (bucket >= 0 && --this.#inFlight[bucket]! === 0) this.#owners[bucket] = this.#heirs[bucket]!;
  }
}

/** The event's stream; of a link that was not resolved, the stream to which it points. */
function streamOfEvent(event: StoredEvent): string {
  const link = event.type === LINK_TYPE ? parseLink(event.data) : null;
  return link === null ? event.stream : link.stream;
}

const CORRELATION_KEY = '$correlationId';
const OPENING_BRACE = 123;
const QUOTE = 34;
const COLON = 58;
const COMMA = 44;
/** Metadata that is longer is not looked through: its messages are pinned by their stream. */
const METADATA_BYTES_MAX = 65_536;

/** `$correlationId` of the event's metadata, where that is a JSON object that has it; else as `streamOfEvent`. */
function correlationOf(event: StoredEvent): string {
  return (
    (event.metadata.length > 0 && event.metadata.length <= METADATA_BYTES_MAX ? correlationIn(event.metadata) : null) ??
    streamOfEvent(event)
  );
}

export function correlationIn(metadata: Uint8Array): string | null {
  try {
    const scanner = new JsonScanner(decodeText(metadata));
    if (!scanner.take(OPENING_BRACE)) return null;
    while (scanner.peek() === QUOTE) {
      const key = scanner.string();
      scanner.expect(COLON);
      if (key === CORRELATION_KEY) return scanner.peek() === QUOTE ? scanner.string() : null;
      const { at } = scanner;
      scanner.peek();
      scanner.skipValue();
      if (scanner.at === at || !scanner.take(COMMA)) return null;
    }
    return null;
  } catch {
    return null;
  }
}
