import { putVarint, varintLength } from '../events/varint.ts';
import { readBatchAppendReqOptions } from '../messages/streams.ts';
import type { BatchAppendReqOptions } from '../messages/streams.ts';
import { atEnd, decode, endOf, endOfElement, PREFIX_BYTES, skip } from '../messages/wire.ts';
import type { Reader, Uuid } from '../messages/wire.ts';
import { putSuccess } from './appended.ts';
import { readProposed, readUuid } from './proposed.ts';
import type { ProposedEvent } from './proposed.ts';

/**
 * A BatchAppendReq: a part of one append. Its events are read when they are first asked for, which is once the caller
 * may write to the stream.
 */
export class BatchChunk {
  correlationId: Uuid | undefined = undefined;
  options: BatchAppendReqOptions | undefined = undefined;
  isFinal = false;
  readonly #bytes: Uint8Array;
  #events: ProposedEvent[] | null = null;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Errors: as `decode`. */
  get events(): ProposedEvent[] {
    return (this.#events ??= decode(this.#bytes, readEvents));
  }
}

/** Tag of the field that holds an event. */
const EVENT = 26;

export function readBatchChunk(reader: Reader, end: number, depth: number): BatchChunk {
  const chunk = new BatchChunk(reader.buf);
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10:
        chunk.correlationId = readUuid(reader, endOf(reader, depth + 1), depth + 1);
        break;
      case 18:
        chunk.options = readBatchAppendReqOptions(reader, endOf(reader, depth + 1), depth + 1);
        break;
      case EVENT:
        reader.pos = endOfElement(reader, depth + 1);
        break;
      case 32:
        chunk.isFinal = reader.bool();
        break;
      default:
        skip(reader, tag, depth);
    }
  }
  atEnd(reader, end);
  return chunk;
}

function readEvents(reader: Reader, end: number, depth: number): ProposedEvent[] {
  const events: ProposedEvent[] = [];
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === EVENT) events.push(readProposed(reader, endOfElement(reader, depth + 1), depth + 1));
    else skip(reader, tag, depth);
  }
  return events;
}

/** Room at first for the answers of one block. */
const ROOM_FIRST = 512;
/** Bytes that an answer has beside its identifier and the name of its stream. */
const ANSWER_BYTES = 96;

/**
 * Successful answers, one behind the other with their prefixes, as a transport sends them: a group commit answers many
 * appends at once, and they travel as one block.
 */
export class AnswerBlock {
  #bytes = new Uint8Array(0);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** What has been written so far, which is the caller's from here on. */
  take(): Uint8Array {
    const block = this.#bytes.subarray(0, this.#length);
    this.#bytes = new Uint8Array(0);
    this.#length = 0;
    return block;
  }

  /** Adds a message that has its prefix already. */
  addFrame(frame: Uint8Array): void {
    this.#makeRoom(frame.length);
    this.#bytes.set(frame, this.#length);
    this.#length += frame.length;
  }

  /** Adds the answer to an append that was written: `revision` is negative for a stream without events. */
  addSuccess(correlationId: Uint8Array, stream: Uint8Array, revision: number, position: number): void {
    this.#makeRoom(ANSWER_BYTES + correlationId.length + stream.length);
    const start = this.#length;
    let at = start + PREFIX_BYTES;
    const b = this.#bytes;
    b[at++] = 10;
    at = putBytes(b, at, correlationId);
    b[at++] = 26;
    at = putSuccess(b, at, revision, position);
    b[at++] = 34;
    // An identifier with an empty name has no field in it.
    if (stream.length === 0) b[at++] = 0;
    else {
      at = putVarint(b, at, 1 + varintLength(stream.length) + stream.length);
      b[at++] = 26;
      at = putBytes(b, at, stream);
    }
    const length = at - start - PREFIX_BYTES;
    b[start] = 0;
    b[start + 1] = length >>> 24;
    b[start + 2] = length >>> 16;
    b[start + 3] = length >>> 8;
    b[start + 4] = length;
    this.#length = at;
  }

  #makeRoom(bytes: number): void {
    const need = this.#length + bytes;
    if (need <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(need, ROOM_FIRST, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

function putBytes(out: Uint8Array, at: number, bytes: Uint8Array): number {
  const start = putVarint(out, at, bytes.length);
  out.set(bytes, start);
  return start + bytes.length;
}
