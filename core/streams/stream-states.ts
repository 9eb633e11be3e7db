import type { StreamHasher } from '../index/stream-hash.ts';
import { HIT } from '../log/log-reader.ts';
import type { Lookup } from './lookup.ts';
import { isMetastream } from './names.ts';
import { StateLoad, StreamState } from './stream-state.ts';

/** Below this many the cache would lose states while they are still being waited for. */
const STATES_MIN = 1_024;

interface Loading {
  readonly load: StateLoad;
  readonly promise: Promise<StreamState>;
}

/**
 * The states of the streams used last, by stream name (a metastream's is part of its stream's).
 *
 * Two generations stand in for an exact order of use: a state that is used moves to the young one, and when that is
 * full the old one is dropped. So a hit costs one or two lookups and nothing is kept per entry.
 */
export class StreamStates {
  readonly #lookup: Lookup;
  readonly #hasher: StreamHasher;
  readonly #half: number;
  #young = new Map<string, StreamState>();
  #old = new Map<string, StreamState>();
  readonly #loading = new Map<string, Loading>();

  constructor(lookup: Lookup, hasher: StreamHasher, statesMax: number) {
    this.#lookup = lookup;
    this.#hasher = hasher;
    this.#half = Math.ceil(Math.max(statesMax, STATES_MIN) / 2);
  }

  get size(): number { return this.#young.size + this.#old.size; }

  get(name: string): StreamState | undefined {
    const young = this.#young.get(name);
    if (young !== undefined) return young;
    const old = this.#old.get(name);
    if (old !== undefined) this.#put(name, old);
    return old;
  }

  /** The state of the stream; at once where nothing has to be read from disk. `name` is no metastream. */
  load(name: string): StreamState | Promise<StreamState> {
    const known = this.get(name);
    if (known !== undefined) return known;
    const running = this.#loading.get(name);
    if (running !== undefined) return running.promise;
    const load = new StateLoad(new StreamState(name, this.#hasher));
    if (load.step(this.#lookup) === HIT) return this.#keep(name, load.state);
    const promise = this.#finish(name, load);
    this.#loading.set(name, { load, promise });
    return promise;
  }

  async #finish(name: string, load: StateLoad): Promise<StreamState> {
    try {
      do await this.#lookup.fill();
      while (load.step(this.#lookup) !== HIT);
      return this.get(name) ?? this.#keep(name, load.state);
    } finally {
      this.#loading.delete(name);
    }
  }

  /** Called when a group with writes to the stream is durable and indexed: what is being read about it is out of date. */
  committed(state: StreamState): void {
    this.#put(state.key.name, state);
    if (this.#loading.size > 0) this.#loading.get(state.key.name)?.load.restart();
  }

  #keep(name: string, state: StreamState): StreamState {
    // The state of a metastream as a stream of its own (asked for by readers of `$$$$x`) would not follow its writes.
    if (!isMetastream(name)) this.#put(name, state);
    return state;
  }

  #put(name: string, state: StreamState): void {
    if (this.#young.size >= this.#half) {
      const dropped = this.#old;
      this.#old = this.#young;
      this.#young = new Map();
      // What the group in flight decided is known nowhere else.
      for (const [key, value] of dropped) if (value.draft !== null && !this.#old.has(key)) this.#old.set(key, value);
    }
    this.#young.set(name, state);
    if (this.#old.size > 0) this.#old.delete(name);
  }
}
