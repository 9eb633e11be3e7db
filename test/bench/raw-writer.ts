import { createHash } from 'node:crypto';
import { closeSync, fdatasync, fdatasyncSync, fsyncSync, openSync, write, writeSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { EVENT_DATA, EVENT_TYPES } from './events.ts';
import { median } from './figure.ts';
import { encodePrepare, prepareFrameBytes, viewOf } from '../../core/log/format/records.ts';

const writeLater = promisify(write);
const syncLater = promisify(fdatasync);

const text = new TextEncoder();
const STREAM = text.encode('bench-client-00');
const TYPES = EVENT_TYPES.map((type) => text.encode(type));
const EMPTY = new Uint8Array(0);

/** Bytes of so many records. */
function recordsBytes(count: number): number {
  let bytes = 0;
  for (let i = 0; i < count; i++) bytes += prepareFrameBytes(STREAM.length, TYPES[i & 7]!.length, EVENT_DATA.length, 0);
  return bytes;
}

/** Encodes `count` records of one stream. */
function encodeRecords(out: Uint8Array, count: number): void {
  const id = new Uint8Array(16);
  const view = viewOf(out);
  let position = 0;
  for (let i = 0; i < count; i++) {
    id.fill(i + 1);
    position = encodePrepare(
      out,
      position,
      {
        position,
        flags: 0x0127,
        transactionPosition: position,
        transactionOffset: 0,
        expectedVersion: i - 1,
        stream: STREAM,
        eventId: id,
        correlationId: id,
        timestampMs: 1_700_000_000_000,
        timestampTicks: 0,
        eventType: TYPES[i & 7]!,
        data: EVENT_DATA,
        metadata: EMPTY,
      },
      view,
    );
  }
}

/** `count` encoded records of one stream, ready to be written. */
export function encodedRecords(count: number): Buffer {
  const out = Buffer.alloc(recordsBytes(count));
  encodeRecords(out, count);
  return out;
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
    return ((groups * this.#records) / (performance.now() - begin)) * 1000;
  }

  /**
   * Milliseconds that half of the groups take at most: with calls that block or with calls that do not, whichever is
   * less.
   */
  async p50Ms(ms: number): Promise<number> {
    const taken = { blocking: [] as number[], free: [] as number[] };
    let begin = performance.now();
    const note = (into: number[]): void => {
      const end = performance.now();
      into.push(end - begin);
      begin = end;
    };
    for (const until = begin + ms / 2; performance.now() < until; note(taken.blocking)) {
      writeSync(this.#fd, this.#group, 0, this.#group.length, this.#next());
      fdatasyncSync(this.#fd);
    }
    for (const until = begin + ms / 2; performance.now() < until; note(taken.free)) {
      await writeLater(this.#fd, this.#group, 0, this.#group.length, this.#next());
      await syncLater(this.#fd);
    }
    return Math.min(median(taken.blocking), median(taken.free));
  }

  /**
   * What no log in this format can be without, however it is made: the records are encoded, their chunk's MD5 goes on,
   * they are written and synced, by calls that block, which cost less than handing them to another thread.
   */
  encoding(ms: number): { readonly records: number; readonly cpuMs: number } {
    const before = process.cpuUsage();
    const begin = performance.now();
    const md5 = createHash('md5');
    let groups = 0;
    for (; performance.now() - begin < ms; groups++) {
      encodeRecords(this.#group, this.#records);
      md5.update(this.#group);
      writeSync(this.#fd, this.#group, 0, this.#group.length, this.#next());
      fdatasyncSync(this.#fd);
    }
    const { user, system } = process.cpuUsage(before);
    return { records: groups * this.#records, cpuMs: (user + system) / 1_000 };
  }

  /** Records a second with calls that leave the thread free. */
  async free(ms: number): Promise<number> {
    const begin = performance.now();
    let groups = 0;
    for (; performance.now() - begin < ms; groups++) {
      await writeLater(this.#fd, this.#group, 0, this.#group.length, this.#next());
      await syncLater(this.#fd);
    }
    return ((groups * this.#records) / (performance.now() - begin)) * 1000;
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
