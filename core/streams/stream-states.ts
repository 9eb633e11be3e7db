import { Hash64, type StreamHasher } from '../base/stream-hash.ts';
import { isMiss, type Miss, type Outcome } from '../base/step.ts';
import { TOMBSTONE } from '../log/format/records.ts';
import type { Lookup } from './lookup/lookup.ts';
import { isMetastream, metastreamOf } from './format/names.ts';
import { StateLoad, StreamState } from './stream-state.ts';

/** Below this many the cache would lose states while they are still being waited for. */
const STATES_MIN = 1_024;
/** States that are kept as objects; of the others that need no more the last event number is kept alone. */
const WHOLE_MAX = 2_048;

interface Loading {
  readonly load: StateLoad;
  readonly promise: Promise<StreamState>;
}

/** A state, or the last event number of a stream that has no metadata. */
type Packed = StreamState | number;

/**
 * The states of the streams used last, by stream name (a metastream's is part of its stream's).
 *
 * Generations stand in for an exact order of use: a state that is used moves to the whole ones; when these are too
 * many they are packed into the young generation, and when that is full the old one is dropped. So a hit costs few
 * lookups, and the states of many streams that are written once are no objects for the garbage collector. A name is in
 * one generation at a time.
 */
export class StreamStates {
  readonly #lookup: Lookup;
  readonly #hasher: StreamHasher;
  readonly #metaHash = new Hash64();
  readonly #wholeMax: number;
  readonly #half: number;
  /** Number of whole states at which they are packed. */
  #packAt: number;
  #whole = new Map<string, StreamState>();
  #young = new Map<string, Packed>();
  #old = new Map<string, Packed>();
  readonly #loading = new Map<string, Loading>();
  /** Changes of metadata that were committed, whatever streams they are of; more where some may have been missed. */
  metadataChanges = 0;
  /** Of `load`, since the start. */
  hits = 0;
  misses = 0;

  constructor(lookup: Lookup, hasher: StreamHasher, statesMax: number) {
    const max = Math.max(statesMax, STATES_MIN);
    this.#lookup = lookup;
    this.#hasher = hasher;
    this.#wholeMax = Math.min(WHOLE_MAX, max >> 1);
    this.#packAt = this.#wholeMax;
    this.#half = Math.ceil((max - this.#wholeMax) / 2);
  }

  get size(): number {
    return this.#whole.size + this.#young.size + this.#old.size;
  }

  get(name: string): StreamState | undefined {
    return this.#whole.get(name) ?? this.#unpack(name);
  }

  #unpack(name: string): StreamState | undefined {
    const generation = this.#young.has(name) ? this.#young : this.#old;
    const packed = generation.get(name);
    if (packed === undefined) return undefined;
    generation.delete(name);
    const state = typeof packed === 'number' ? StreamState.plain(name, this.#hasher, packed) : packed;
    this.#put(name, state);
    return state;
  }

  /** The state of the stream; at once where nothing has to be read from disk. `name` is no metastream. */
  load(name: string): StreamState | Promise<StreamState> {
    const known = this.get(name);
    if (known !== undefined) {
      this.hits++;
      return known;
    }
    this.misses++;
    const running = this.#loading.get(name);
    if (running !== undefined) return running.promise;
    const state = new StreamState(name, this.#hasher);
    if (this.#isNew(state)) return this.#keep(name, state);
    const load = new StateLoad(state);
    const first = load.step(this.#lookup);
    if (!isMiss(first)) return this.#keep(name, load.state);
    const promise = this.#finish(name, load, first);
    this.#loading.set(name, { load, promise });
    return promise;
  }

  /** The existence filter knows neither the stream nor its metastream, as it is with most that are asked for first. */
  #isNew(state: StreamState): boolean {
    const { index } = this.#lookup;
    if (index.mightContain(state.key.hi, state.key.lo)) return false;
    const hash = this.#metaHash;
    this.#hasher.hash(metastreamOf(state.key.name), hash);
    return !index.mightContain(hash.hi, hash.lo);
  }

  async #finish(name: string, load: StateLoad, first: Miss): Promise<StreamState> {
    try {
      // No writer may write to the stream between the last step and what follows from it.
      for (let outcome: Outcome = first; isMiss(outcome); outcome = load.step(this.#lookup)) await outcome;
      return this.get(name) ?? this.#keep(name, load.state);
    } finally {
      this.#loading.delete(name);
    }
  }

  /** The stream was written to: what is being read about it is out of date. */
  written(name: string): void {
    if (this.#loading.size > 0) this.#loading.get(name)?.load.restart();
  }

  /** Forgets all streams. What is being read is read again. */
  clear(): void {
    this.metadataChanges++;
    this.#whole.clear();
    this.#young.clear();
    this.#old.clear();
    for (const { load } of this.#loading.values()) load.restart();
  }

  /** Forgets the hard-deleted streams. What is being read is read again. */
  forgetTombstones(): void {
    for (const [name, state] of this.#whole)
      if (state.committed.isTombstoned && state.draft === null) this.#whole.delete(name);
    for (const generation of [this.#young, this.#old]) {
      for (const [name, packed] of generation) {
        if (typeof packed === 'number' ? packed === TOMBSTONE : packed.committed.isTombstoned) generation.delete(name);
      }
    }
    for (const { load } of this.#loading.values()) load.restart();
  }

  #keep(name: string, state: StreamState): StreamState {
    // The state of a metastream as a stream of its own (asked for by readers of `$$$$x`) would not follow its writes.
    if (!isMetastream(name)) this.#put(name, state);
    return state;
  }

  #put(name: string, state: StreamState): void {
    if (this.#whole.size >= this.#packAt) this.#pack();
    this.#whole.set(name, state);
  }

  #pack(): void {
    const whole = this.#whole;
    this.#whole = new Map();
    for (const [name, state] of whole) {
      // What the group in flight decided is known nowhere else.
      if (state.draft !== null) this.#whole.set(name, state);
      else this.#remember(name, state.isPlain ? state.committed.lastNumber : state);
    }
    // A large group may hold more of them than that.
    this.#packAt = Math.max(this.#wholeMax, 2 * this.#whole.size);
  }

  #remember(name: string, packed: Packed): void {
    if (this.#young.size >= this.#half) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(name, packed);
  }
}
