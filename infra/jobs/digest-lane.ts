import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { SkuaError } from '../../core/base/errors.ts';
import type { Digest, Digests } from '../../core/ports/digests.ts';
import { environmentOf } from './worker-environment.ts';
import { background } from '../../core/base/background.ts';

/**
 * A second thread beside that of a job, which digests what the job reads and writes while the job goes on: to prove the
 * source of a rewritten chunk takes as long as to write the new one. Bytes go over in the slots of a ring; both sides
 * wait for one another without an event loop, as digests are synchronous.
 */

const SLOTS = 8;
const SLOT_BYTES = 262_144;
/** Shorter digests are not worth the way, in bytes. */
export const LANE_BYTES_MIN = 8_388_608;
/** How long a thread may take to be there; else the job digests by itself. */
const START_MS_MAX = 2_000;
/** How long the other side may take for a ring full of bytes: beyond that it is gone. */
const ANSWER_MS_MAX = 60_000;
/** The same where requests wait for it. */
const BEHIND_ANSWER_MS_MAX = 1_000;
/** A thread that holds hardly anything, in MiB. */
const HEAP_MIB_MAX = 16;

/**
 * Cells of both sides: how many slots were filled and emptied, and then for each slot what is to be done, for which
 * digest, and how long it is.
 */
const FILLED = 0;
const EMPTIED = 1;
const STATE = 2;
const HEAD = 3;
const SLOT_CELLS = 3;

const READY = 1;

const UPDATE = 1;
const FINISH = 2;
/** Drops every digest that was not finished. */
const CLEAR = 3;

export interface LaneSetup {
  readonly lane: { readonly cells: Int32Array<SharedArrayBuffer>; readonly ring: Uint8Array<SharedArrayBuffer> };
  readonly givesWay: boolean;
}

/** The lane's own thread, which never returns. */
export function serveLane({ lane: { cells, ring } }: LaneSetup): never {
  const hashes = new Map<number, Hash>();
  Atomics.store(cells, STATE, READY);
  Atomics.notify(cells, STATE);
  for (let emptied = 0; ;) {
    Atomics.wait(cells, FILLED, emptied);
    if (Atomics.load(cells, FILLED) === emptied) continue;
    const slot = (emptied >>> 0) % SLOTS;
    const [what, id, length] = cells.subarray(HEAD + slot * SLOT_CELLS) as unknown as [number, number, number];
    const bytes = ring.subarray(slot * SLOT_BYTES, slot * SLOT_BYTES + length);
    if (what === CLEAR) hashes.clear();
    else {
      let hash = hashes.get(id);
      if (hash === undefined) hashes.set(id, (hash = createHash('md5')));
      if (what === UPDATE) hash.update(bytes);
      else {
        ring.set(hash.digest(), slot * SLOT_BYTES);
        hashes.delete(id);
      }
    }
    emptied = (emptied + 1) | 0;
    Atomics.store(cells, EMPTIED, emptied);
    Atomics.notify(cells, EMPTIED);
  }
}

/** The job's side. One digest may be finished while others go on. */
export class DigestLane {
  readonly #workerUrl: URL;
  readonly #givesWay: boolean;
  readonly #startMsMax: number;
  #answerMsMax = ANSWER_MS_MAX;
  readonly #cells = new Int32Array(new SharedArrayBuffer(4 * (HEAD + SLOTS * SLOT_CELLS)));
  readonly #ring = new Uint8Array(new SharedArrayBuffer(SLOTS * SLOT_BYTES));
  #filled = 0;
  #nextId = 0;
  #worker: Worker | null = null;
  #isThere: boolean | null = null;

  /**
   * `workerUrl` is the module whose thread calls `serveLane`; how long that may take to be there is in milliseconds.
   */
  constructor(workerUrl: URL, givesWay: boolean, startMsMax = START_MS_MAX) {
    this.#workerUrl = workerUrl;
    this.#givesWay = givesWay;
    this.#startMsMax = startMsMax;
  }

  /** These digests, of which the long ones are left to the other thread, as far as there is one. */
  over(digests: Digests): Digests {
    return {
      ...digests,
      prepare: (expectedBytes) => {
        if (expectedBytes >= LANE_BYTES_MIN) this.#spawn();
      },
      md5: (expectedBytes = 0) => (expectedBytes >= LANE_BYTES_MIN && this.#start() ? this.#digest() : digests.md5()),
    };
  }

  /**
   * For a thread that must not stand still: an MD5 that wakes the other one for whole slots only, or null as long as
   * that one is not there or no longer.
   */
  behind(): Digest | null {
    this.#answerMsMax = BEHIND_ANSWER_MS_MAX;
    this.#spawn();
    this.#isThere ??= Atomics.load(this.#cells, STATE) === READY || null;
    return this.#isThere === true ? gathered(this.#digest()) : null;
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  /** Digests that were begun are not asked for any more. */
  clear(): void {
    if (this.#isThere === true) this.#send(CLEAR, 0, NOTHING);
    this.#nextId = 0;
  }

  /** Starts the thread, which is not waited for. */
  #spawn(): Worker {
    if (this.#worker !== null) return this.#worker;
    const workerData: LaneSetup = { lane: { cells: this.#cells, ring: this.#ring }, givesWay: this.#givesWay };
    const worker = new Worker(this.#workerUrl, {
      workerData,
      env: environmentOf(this.#workerUrl),
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
    });
    worker.unref();
    // Without the thread the job digests by itself; what becomes of a thread that is there shows when it is waited for.
    worker.on('error', () => {});
    worker.on('exit', () => {
      this.#isThere = false;
    });
    this.#worker = worker;
    return worker;
  }

  #start(): boolean {
    if (this.#isThere !== null) return this.#isThere;
    const worker = this.#spawn();
    Atomics.wait(this.#cells, STATE, 0, this.#startMsMax);
    this.#isThere = Atomics.load(this.#cells, STATE) === READY;
    if (!this.#isThere) background(worker.terminate());
    return this.#isThere;
  }

  #digest(): Digest {
    const id = this.#nextId;
    this.#nextId++;
    return {
      update: (bytes) => {
        for (let at = 0; at < bytes.length; at += SLOT_BYTES)
          this.#send(UPDATE, id, bytes.subarray(at, at + SLOT_BYTES));
      },
      finish: () => {
        const slot = this.#send(FINISH, id, NOTHING);
        this.#wait(0);
        return this.#ring.slice(slot * SLOT_BYTES, slot * SLOT_BYTES + MD5_BYTES);
      },
    };
  }

  /** Fills the next slot, as soon as it is empty; which one that was. */
  #send(what: number, id: number, bytes: Uint8Array): number {
    this.#wait(SLOTS - 1);
    const slot = (this.#filled >>> 0) % SLOTS;
    this.#ring.set(bytes, slot * SLOT_BYTES);
    const head = HEAD + slot * SLOT_CELLS;
    this.#cells[head] = what;
    this.#cells[head + 1] = id;
    this.#cells[head + 2] = bytes.length;
    this.#filled = (this.#filled + 1) | 0;
    Atomics.store(this.#cells, FILLED, this.#filled);
    Atomics.notify(this.#cells, FILLED);
    return slot;
  }

  /** Until at most this many slots are full. */
  #wait(full: number): void {
    for (;;) {
      const emptied = Atomics.load(this.#cells, EMPTIED);
      if (((this.#filled - emptied) | 0) <= full) return;
      if (this.#isThere === false || Atomics.wait(this.#cells, EMPTIED, emptied, this.#answerMsMax) === 'timed-out')
        throw new SkuaError(
          'io_error',
          `The thread that takes checksums has not answered for ${this.#answerMsMax / 1000} s. Run the command again; if it happens again, give the process more memory or processor time.`,
        );
    }
  }
}

/** The digest, which is given whole slots. */
function gathered(digest: Digest): Digest {
  const slot = new Uint8Array(SLOT_BYTES);
  let filled = 0;
  return {
    update: (bytes) => {
      for (let at = 0; at < bytes.length;) {
        const part = bytes.subarray(at, at + SLOT_BYTES - filled);
        slot.set(part, filled);
        at += part.length;
        filled += part.length;
        if (filled < SLOT_BYTES) return;
        digest.update(slot);
        filled = 0;
      }
    },
    finish: () => {
      digest.update(slot.subarray(0, filled));
      return digest.finish();
    },
  };
}

const NOTHING = new Uint8Array(0);
const MD5_BYTES = 16;
