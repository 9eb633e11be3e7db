import { closeSync, fstatSync, openSync, readFileSync, readSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { guidToText } from '../../core/base/guid.ts';

/** The plain event that both sides build. */
export interface PlainEvent {
  readonly position: number;
  readonly number: number;
  readonly stream: string;
  readonly type: string;
  readonly id: string;
  readonly data: Uint8Array;
}

const BLOCK_BYTES = 1_048_576;
const CHUNK_HEADER_BYTES = 128;

interface RawChunk {
  readonly fd: number;
  readonly start: number;
  readonly end: number;
}

let touched = 0;

/** Reads every field, down to a byte of the data and characters of the texts, so that nothing can stay undone. */
export function touch(event: PlainEvent): void {
  const { stream, type, id, data } = event;
  touched =
    (touched +
      event.position +
      event.number +
      stream.length +
      stream.charCodeAt(stream.length - 1) +
      type.length +
      type.charCodeAt(0) +
      id.charCodeAt(35) +
      data.length +
      data[data.length - 1]!) %
    1_000_003;
}

/**
 * The limit of reading: a loop written by hand for exactly this log (un-scavenged chunks, implicit transactions), which
 * knows where the records are. It reads blocks of 1 MiB with calls that block into one buffer, and trusts every byte.
 */
export class RawScan {
  readonly #chunks: RawChunk[];
  /** Bytes of a chunk of this log. */
  readonly chunkBytes: number;
  readonly #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);

  constructor(folder: string) {
    const names = readdirSync(folder)
      .filter((name) => /^chunk-\d{6}\.\d{6}$/.test(name))
      .toSorted();
    const end = Number(readFileSync(join(folder, 'writer.chk')).readBigInt64LE(0));
    const fds = names.map((name) => openSync(join(folder, name), 'r'));
    const header = Buffer.alloc(CHUNK_HEADER_BYTES);
    readSync(fds[0]!, header, 0, CHUNK_HEADER_BYTES, 0);
    const chunkBytes = header.readInt32LE(2);
    this.chunkBytes = chunkBytes;
    this.#chunks = fds.map((fd, i) => ({
      fd,
      start: i * chunkBytes,
      end: i === fds.length - 1 ? end : i * chunkBytes + dataBytes(join(folder, names[i]!)),
    }));
  }

  /** Builds and touches every event between two positions, both between records; gives their count. */
  range(from: number, to: number): number {
    let events = 0;
    for (const chunk of this.#chunks) {
      let at = Math.max(from, chunk.start);
      const end = Math.min(to, chunk.end);
      while (at < end) {
        const wanted = Math.min(BLOCK_BYTES, end - at);
        readSync(chunk.fd, this.#block, 0, wanted, CHUNK_HEADER_BYTES + at - chunk.start);
        let p = 0;
        while (p + 4 <= wanted) {
          const length = this.#block.readInt32LE(p);
          if (p + length + 8 > wanted) break;
          if (this.#record(p + 4, at + p)) events++;
          p += length + 8;
        }
        if (p === 0) throw new Error(`The loop found no whole record at position ${at}.`);
        at += p;
      }
    }
    return events;
  }

  /** Builds and touches the events at the given positions, ascending, reading only blocks that hold some. */
  places(positions: Float64Array): number {
    let blockFrom = 0;
    let blockTo = 0;
    for (const position of positions) {
      const chunk = this.#chunks[Math.floor(position / this.chunkBytes)]!;
      let length = position + 4 <= blockTo ? this.#block.readInt32LE(position - blockFrom) : BLOCK_BYTES;
      if (position + length + 8 > blockTo) {
        blockFrom = position;
        blockTo =
          position +
          readSync(
            chunk.fd,
            this.#block,
            0,
            Math.min(BLOCK_BYTES, chunk.end - position),
            CHUNK_HEADER_BYTES + position - chunk.start,
          );
        length = this.#block.readInt32LE(0);
      }
      this.#record(position - blockFrom + 4, position);
    }
    return positions.length;
  }

  /** Positions of one stream's events, ascending. */
  positionsOf(stream: string): Float64Array {
    const found: number[] = [];
    const visit = (event: PlainEvent): void => {
      if (event.stream === stream) found.push(event.position);
    };
    this.#visit = visit;
    this.range(0, this.end);
    this.#visit = null;
    return Float64Array.from(found);
  }

  #visit: ((event: PlainEvent) => void) | null = null;

  /** Position behind the record at `position`. */
  after(position: number): number {
    const chunk = this.#chunks[Math.floor(position / this.chunkBytes)]!;
    readSync(chunk.fd, this.#block, 0, 4, CHUNK_HEADER_BYTES + position - chunk.start);
    return position + this.#block.readInt32LE(0) + 8;
  }

  get end(): number {
    return this.#chunks.at(-1)!.end;
  }

  /** One record whose payload begins at `at`; false when it is no event. Version 1 prepares only. */
  #record(at: number, position: number): boolean {
    const b = this.#block;
    if (b[at] !== 0 || (b[at + 10]! & 1) === 0) return false;
    const number = b.readInt32LE(at + 28) * 4_294_967_296 + b.readUInt32LE(at + 24) + 1;
    let p = at + 32;
    let length = b[p++]!;
    if (length > 127) length = (length & 127) | (b[p++]! << 7);
    const stream = b.toString('utf8', p, p + length);
    p += length;
    const id = guidToText(b, p);
    p += 40;
    length = b[p++]!;
    if (length > 127) length = (length & 127) | (b[p++]! << 7);
    const type = b.toString('utf8', p, p + length);
    p += length;
    length = b.readInt32LE(p);
    const event = { position, number, stream, type, id, data: b.subarray(p + 4, p + 4 + length) };
    if (this.#visit !== null) this.#visit(event);
    else touch(event);
    return true;
  }

  close(): void {
    for (const chunk of this.#chunks) closeSync(chunk.fd);
  }
}

/** Data bytes of a completed chunk, from its footer. */
function dataBytes(path: string): number {
  const fd = openSync(path, 'r');
  try {
    const footer = Buffer.alloc(128);
    readSync(fd, footer, 0, 128, fstatSync(fd).size - 128);
    return footer.readInt32LE(1);
  } finally {
    closeSync(fd);
  }
}
