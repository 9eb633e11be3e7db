import { END, HIT } from '../../core/base/step.ts';
import type { Miss, Outcome } from '../../core/base/step.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { EntryList, IndexEntry } from '../../core/index/format/entries.ts';
import type { LogReader } from '../../core/log/log-reader.ts';
import type { RecordFrame } from '../../core/log/format/records.ts';
import type { CommitLog } from '../../core/ports/commit-log.ts';
import { Hash64, streamHasher } from '../../core/base/stream-hash.ts';
import type { StreamHasher } from '../../core/base/stream-hash.ts';
import type { EventIndex } from '../../core/streams/lookup/lookup.ts';
import { Random } from '../support/random.ts';

/** Makes steps miss at random, so that every step is also taken again. */
export class Misses {
  readonly #random: Random;
  readonly #chance: number;

  constructor(seed: number, chance: number) {
    this.#random = new Random(seed);
    this.#chance = chance;
  }

  /** Null, or a miss whose bytes come in a later turn. */
  next(): Miss | null {
    return this.#chance > 0 && this.#random.chance(this.#chance)
      ? new Promise((resolve) => {
          setImmediate(resolve);
        })
      : null;
  }
}

/**
 * A log in one growing array. Chunks are only places where a group must not go across. Appends go through its `writer`.
 */
export class MemoryLog implements LogReader {
  /** As readers see it. */
  end = 0;
  #written = 0;
  readonly capacity: number;
  readonly misses: Misses;
  bytes = new Uint8Array(65_536);
  starts: number[] = [];
  #lengths: number[] = [];
  readonly #removed = new Set<number>();
  /** Sizes of the groups appended. */
  readonly groups: number[] = [];
  completed = 0;
  /** Thrown by the next append or completion, once. */
  failNext: SkuaError | null = null;
  /** Awaited before an append becomes durable. */
  beforeAppend: () => Promise<void> = () => Promise.resolve();

  constructor(capacity = 16 * 1024 * 1024, misses = new Misses(1, 0)) {
    this.capacity = capacity;
    this.misses = misses;
  }

  get #remaining(): number {
    return this.capacity - (this.#written % this.capacity);
  }

  get writer(): CommitLog {
    const end = () => this.#written;
    const remaining = () => this.#remaining;
    return {
      get end() {
        return end();
      },
      get remaining() {
        return remaining();
      },
      capacity: this.capacity,
      append: (group) => this.#append(group),
      publish: () => {
        this.end = this.#written;
      },
      completeChunk: () => this.#completeChunk(),
    };
  }

  async #append(group: Uint8Array): Promise<void> {
    if (group.length > this.#remaining) throw new Error('the group crosses a chunk');
    const copy = group.slice();
    await this.beforeAppend();
    this.#throwFailure();
    this.#write(copy);
    this.groups.push(copy.length);
  }

  #throwFailure(): void {
    const failure = this.failNext;
    this.failNext = null;
    if (failure !== null) throw failure;
  }

  /** Appends framed records as they are, for everybody to see. */
  appendRaw(bytes: Uint8Array): void {
    this.#write(bytes);
    this.end = this.#written;
  }

  #write(bytes: Uint8Array): void {
    while (this.#written + bytes.length > this.bytes.length) {
      const larger = new Uint8Array(this.bytes.length * 2);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    this.bytes.set(bytes, this.#written);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 0; at < bytes.length;) {
      const length = view.getInt32(at, true);
      this.starts.push(this.#written + at);
      this.#lengths.push(length);
      if (view.getInt32(at + 4 + length, true) !== length) throw new Error('the lengths of a record differ');
      at += length + 8;
    }
    this.#written += bytes.length;
  }

  async #completeChunk(): Promise<void> {
    await Promise.resolve();
    this.#throwFailure();
    this.completed++;
    this.#written += this.#remaining;
    this.end = this.#written;
  }

  /** Takes a record away, as a scavenge does. */
  remove(position: number): void {
    this.#removed.add(position);
    const i = this.starts.indexOf(position);
    this.starts.splice(i, 1);
    this.#lengths.splice(i, 1);
  }

  /** Number of the first record at or after `position`. */
  #firstFrom(position: number): number {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle]! < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #give(i: number, frame: RecordFrame): Outcome {
    if (i < 0 || i >= this.starts.length || this.starts[i]! >= this.end) return END;
    frame.bytes = this.bytes;
    frame.at = this.starts[i]! + 4;
    frame.length = this.#lengths[i]!;
    frame.position = this.starts[i]!;
    frame.next = frame.position + frame.length + 8;
    return HIT;
  }

  prefetch(): void {}
  prefetchRun(): void {}

  readAt(position: number, frame: RecordFrame): Outcome {
    const miss = this.misses.next();
    if (miss !== null) return miss;
    const i = this.#firstFrom(position);
    return this.starts[i] === position ? this.#give(i, frame) : END;
  }

  readForward(position: number, frame: RecordFrame): Outcome {
    return this.misses.next() ?? this.#give(this.#firstFrom(position), frame);
  }

  readBackward(position: number, frame: RecordFrame): Outcome {
    const miss = this.misses.next();
    if (miss !== null) return miss;
    const i = this.#firstFrom(position) - 1;
    return i >= 0 && this.starts[i]! + this.#lengths[i]! + 8 > position
      ? this.#give(i - 1, frame)
      : this.#give(i, frame);
  }

  isScavengedAt(position: number): boolean {
    return this.#removed.has(position);
  }

  chunkStart(position: number): number {
    return position - (position % this.capacity);
  }

  isBoundary(position: number): Outcome {
    const miss = this.misses.next();
    if (miss !== null) return miss;
    const i = this.#firstFrom(position);
    const isEnd = i > 0 && this.starts[i - 1]! + this.#lengths[i - 1]! + 8 === position;
    return position === 0 ||
      position === this.end ||
      isEnd ||
      this.starts[i] === position ||
      this.#removed.has(position) ||
      position % this.capacity === 0
      ? HIT
      : END;
  }
}

interface Entry {
  readonly version: number;
  readonly position: number;
}

/** An index that keeps a sorted array for each hash, and notes what is asked of it. */
export class NaiveIndex implements EventIndex {
  readonly hasher: StreamHasher;
  readonly misses: Misses;
  readonly #entries = new Map<string, Entry[]>();
  readonly #streams = new Set<string>();
  readonly bulks: number[] = [];
  checkpoint = -1;

  constructor(hasher: StreamHasher = streamHasher, misses = new Misses(1, 0)) {
    this.hasher = hasher;
    this.misses = misses;
  }

  #of(hi: number, lo: number): Entry[] {
    return this.#entries.get(`${hi}/${lo}`) ?? [];
  }

  add(hi: number, lo: number, version: number, position: number): void {
    const key = `${hi}/${lo}`;
    let list = this.#entries.get(key);
    if (list === undefined) this.#entries.set(key, (list = []));
    let at = list.length;
    while (at > 0 && (list[at - 1]!.version - version || list[at - 1]!.position - position) > 0) at--;
    list.splice(at, 0, { version, position });
  }

  /** Adds an event written by hand. */
  addEvent(stream: string, version: number, position: number): void {
    const hash = new Hash64();
    this.hasher.hash(stream, hash);
    this.add(hash.hi, hash.lo, version, position);
    this.addStream(hash.hi, hash.lo);
  }

  endBulk(commitPosition: number): void {
    this.bulks.push(commitPosition);
  }
  ready(): Promise<void> | null {
    return null;
  }

  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    const miss = this.misses.next();
    if (miss !== null) return miss;
    return give(
      this.#of(hi, lo).findLast((e) => (e.version - version || e.position - position) <= 0),
      out,
    );
  }

  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    const miss = this.misses.next();
    if (miss !== null) return miss;
    return give(
      this.#of(hi, lo).find((e) => (e.version - version || e.position - position) >= 0),
      out,
    );
  }

  range(hi: number, lo: number, from: number, to: number, out: EntryList): Outcome {
    const miss = this.misses.next();
    if (miss !== null) return miss;
    out.clear();
    for (const e of this.#of(hi, lo)) if (e.version >= from && e.version <= to) out.push(e.version, e.position);
    return out.length > 0 ? HIT : END;
  }

  mightContain(hi: number, lo: number): boolean {
    return this.#streams.has(`${hi}/${lo}`);
  }
  addStream(hi: number, lo: number): void {
    this.#streams.add(`${hi}/${lo}`);
  }
  noteExistenceCheckpoint(position: number): void {
    this.checkpoint = position;
  }
}

function give(entry: Entry | undefined, out: IndexEntry): Outcome {
  if (entry === undefined) return END;
  out.version = entry.version;
  out.position = entry.position;
  return HIT;
}
