import type { StreamHasher } from '../base/stream-hash.ts';
import { END, HIT, isMiss, type Miss, type Outcome } from '../base/step.ts';
import { FLAG_JSON, TOMBSTONE } from '../log/format/records.ts';
import type { StreamMetadata } from './api.ts';
import { CeilingSearch, FloorSearch, type Lookup, StreamKey } from './lookup/lookup.ts';
import { METASTREAM_METADATA, NO_METADATA, parseMetadata } from './format/metadata.ts';
import { metastreamOf } from './format/names.ts';
import { KnownStretches, shownData } from './format/retention.ts';

/** A stream together with its metastream, at one moment. Never changed, only replaced. */
export class StreamVersion {
  /** Last event number; -1 without events, TOMBSTONE after a hard delete. */
  readonly lastNumber: number;
  /** Last event number of the metastream, -1 without metadata. */
  readonly metadataVersion: number;
  readonly metadata: StreamMetadata;
  /** The metadata's text while the stream is soft-deleted (it is rewritten when the stream comes back), else null. */
  readonly softDeleteJson: Uint8Array | null;

  constructor(
    lastNumber: number,
    metadataVersion: number,
    metadata: StreamMetadata,
    softDeleteJson: Uint8Array | null,
  ) {
    this.lastNumber = lastNumber;
    this.metadataVersion = metadataVersion;
    this.metadata = metadata;
    this.softDeleteJson = softDeleteJson;
  }

  get isTombstoned(): boolean {
    return this.lastNumber === TOMBSTONE;
  }
  get isSoftDeleted(): boolean {
    return this.softDeleteJson !== null;
  }

  withLast(lastNumber: number): StreamVersion {
    return lastNumber === TOMBSTONE
      ? new StreamVersion(TOMBSTONE, this.metadataVersion, NO_METADATA, null)
      : new StreamVersion(lastNumber, this.metadataVersion, this.metadata, this.softDeleteJson);
  }

  /** After an event with this data was written to the metastream. */
  withMetadata(metadataVersion: number, data: Uint8Array, isJson: boolean, recordVersion = 1): StreamVersion {
    const metadata = parseMetadata(data, isJson, recordVersion);
    // A copy: a view would hold on to the whole block of the cache.
    const json = metadata.truncateBefore === TOMBSTONE ? data.slice() : null;
    return new StreamVersion(this.lastNumber, metadataVersion, metadata, json);
  }
}

const ABSENT = new StreamVersion(-1, -1, NO_METADATA, null);

/** What is known of a stream: what is committed, and what will be once the group in flight is. */
export class StreamState {
  readonly key: StreamKey;
  readonly #hasher: StreamHasher;
  #metaKey: StreamKey | null = null;
  #expired: KnownStretches | null = null;
  committed: StreamVersion = ABSENT;
  draft: StreamVersion | null = null;

  constructor(name: string, hasher: StreamHasher) {
    this.key = new StreamKey(name, hasher);
    this.#hasher = hasher;
  }

  /** The state of a stream that has this last event number and no metadata. */
  static plain(name: string, hasher: StreamHasher, lastNumber: number): StreamState {
    const state = new StreamState(name, hasher);
    if (lastNumber >= 0) state.committed = ABSENT.withLast(lastNumber);
    return state;
  }

  /** Most streams have no metadata, so it is made when it is asked for. */
  get metaKey(): StreamKey {
    return (this.#metaKey ??= new StreamKey(metastreamOf(this.key.name), this.#hasher));
  }

  /** Where readers found nothing but expired events. Made when it is asked for, as most streams have no maximum age. */
  get expired(): KnownStretches {
    return (this.#expired ??= new KnownStretches());
  }

  /** The last event number is all there is to know of what is committed. */
  get isPlain(): boolean {
    return this.committed.metadataVersion < 0 && this.committed.softDeleteJson === null;
  }

  /** State at the end of the log including the group in flight. */
  get latest(): StreamVersion {
    return this.draft ?? this.committed;
  }
}

/** One of the two streams of a state, as its readers see it. */
export class StreamView {
  readonly key: StreamKey;
  readonly lastNumber: number;
  readonly metadata: StreamMetadata;
  readonly isTombstoned: boolean;
  /** The stream can't be read: it has no events, or none that count after a soft delete. */
  readonly isMissing: boolean;
  readonly #state: StreamState;

  constructor(state: StreamState, isMeta: boolean) {
    const version = state.committed;
    this.#state = state;
    this.key = isMeta ? state.metaKey : state.key;
    this.lastNumber = isMeta ? version.metadataVersion : version.lastNumber;
    this.metadata = isMeta ? METASTREAM_METADATA : version.metadata;
    this.isTombstoned = version.isTombstoned;
    this.isMissing = this.lastNumber < 0 || (!isMeta && version.isSoftDeleted);
  }

  /** Of the stream itself: metastreams have no maximum age. */
  get expired(): KnownStretches {
    return this.#state.expired;
  }
}

/** Finds out the state of a stream from index and log, in steps. */
export class StateLoad {
  readonly state: StreamState;
  #last: FloorSearch | null = null;
  #metaLast: FloorSearch | null = null;
  #metaEvent: CeilingSearch | null = null;
  #lastNumber = -1;
  #metadataVersion = -1;

  constructor(state: StreamState) {
    this.state = state;
    this.restart();
  }

  /** Starts over, because the stream was written to in the meantime. */
  restart(): void {
    this.#last = new FloorSearch(this.state.key, TOMBSTONE);
    this.#metaLast = new FloorSearch(this.state.metaKey, TOMBSTONE);
    this.#metaEvent = null;
    this.#lastNumber = -1;
    this.#metadataVersion = -1;
  }

  /** HIT once `state.committed` is right. */
  step(lookup: Lookup): typeof HIT | Miss {
    if (this.#last !== null) {
      const outcome = lastOf(this.#last, this.state.key, lookup);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) this.#lastNumber = this.#last.entry.version;
      this.#last = null;
    }
    if (this.#metaLast !== null) {
      const outcome = lastOf(this.#metaLast, this.state.metaKey, lookup);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) {
        this.#metadataVersion = this.#metaLast.entry.version;
        if (this.#lastNumber !== TOMBSTONE)
          this.#metaEvent = new CeilingSearch(this.state.metaKey, this.#metadataVersion, this.#metadataVersion);
      }
      this.#metaLast = null;
    }
    let version = new StreamVersion(this.#lastNumber, this.#metadataVersion, NO_METADATA, null);
    if (this.#metaEvent !== null) {
      const outcome = this.#metaEvent.step(lookup);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) version = withMetadataOf(version, lookup);
    }
    this.state.committed = version;
    return HIT;
  }
}

/** The last event number, by the existence filter alone where it knows the stream has none. */
function lastOf(search: FloorSearch, key: StreamKey, lookup: Lookup): Outcome {
  return lookup.index.mightContain(key.hi, key.lo) ? search.step(lookup) : END;
}

function withMetadataOf(version: StreamVersion, lookup: Lookup): StreamVersion {
  const f = lookup.fields;
  return version.withMetadata(
    version.metadataVersion,
    shownData(lookup.frame, f),
    (f.flags & FLAG_JSON) !== 0,
    f.version,
  );
}
