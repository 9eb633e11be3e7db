import { closeSync, fdatasync, fdatasyncSync, fsyncSync, openSync, write, writeSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { EVENT_DATA, EVENT_TYPES } from './events.ts';
import { encodePrepare, prepareFrameBytes } from '../../core/log/records.ts';

const writeLater = promisify(write);
const syncLater = promisify(fdatasync);

/** `count` encoded records of one stream, ready to be written. */
export function encodedRecords(count: number): Buffer {
  const text = new TextEncoder();
  const stream = text.encode('bench-client-00');
  const empty = new Uint8Array(0);
  const parts: Buffer[] = [];
  let position = 0;
  for (let i = 0; i < count; i++) {
    const eventType = text.encode(EVENT_TYPES[i & 7]!);
    const out = Buffer.alloc(prepareFrameBytes(stream.length, eventType.length, EVENT_DATA.length, 0));
    const id = new Uint8Array(16).fill(i + 1);
    encodePrepare(out, 0, { position, flags: 0x0127, transactionPosition: position, transactionOffset: 0, expectedVersion: i - 1, stream, eventId: id, correlationId: id, timestampMs: 1_700_000_000_000, timestampTicks: 0, eventType, data: EVENT_DATA, metadata: empty });
    parts.push(out);
    position += out.length;
  }
  return Buffer.concat(parts);
}

/**
 * The limit of durable appends: a loop of one positional write of records that are already encoded and one fdatasync,
 * into a file that was filled with zeros and synced before. It starts again at the beginning when the file is full.
 */
export class RawWriter {
  readonly #fd: number;
  readonly #fileBytes: number;
  readonly #group: Buffer;
  readonly #records: number;
  #at = 0;

  constructor(path: string, fileBytes: number, records: number) {
    this.#group = encodedRecords(records);
    this.#records = records;
    this.#fileBytes = fileBytes;
    this.#fd = openSync(path, 'w');
    const zeros = Buffer.alloc(1_048_576);
    for (let at = 0; at < fileBytes; at += zeros.length) writeSync(this.#fd, zeros, 0, zeros.length, at);
    fsyncSync(this.#fd);
  }

  #next(): number {
    if (this.#at + this.#group.length > this.#fileBytes) this.#at = 0;
    const at = this.#at;
    this.#at += this.#group.length;
    return at;
  }

  /** Records a second with calls that block. */
  blocking(ms: number): number {
    const begin = performance.now();
    let groups = 0;
    for (; performance.now() - begin < ms; groups++) {
      writeSync(this.#fd, this.#group, 0, this.#group.length, this.#next());
      fdatasyncSync(this.#fd);
    }
    return groups * this.#records / (performance.now() - begin) * 1000;
  }

  /** Records a second with calls that leave the thread free. */
  async free(ms: number): Promise<number> {
    const begin = performance.now();
    let groups = 0;
    for (; performance.now() - begin < ms; groups++) {
      await writeLater(this.#fd, this.#group, 0, this.#group.length, this.#next());
      await syncLater(this.#fd);
    }
    return groups * this.#records / (performance.now() - begin) * 1000;
  }

  /** Tries both, and gives the faster one with a sentence about the choice. */
  async faster(ms: number): Promise<{ run: (ms: number) => number | Promise<number>; note: string }> {
    this.blocking(ms);
    const blocking = this.blocking(ms);
    const free = await this.free(ms);
    const note = `limit with calls that block ${Math.round(blocking)}/s, with calls that do not ${Math.round(free)}/s; the faster one is the limit`;
    return { run: blocking >= free ? (windowMs) => this.blocking(windowMs) : (windowMs) => this.free(windowMs), note };
  }

  close(): void {
    closeSync(this.#fd);
  }
}
