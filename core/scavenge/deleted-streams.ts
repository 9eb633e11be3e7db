import { EntryList } from '../index/format/entries.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf, TOMBSTONE } from '../log/format/records.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { Hash64, type StreamHasher } from '../base/stream-hash.ts';
import { parseMetadata } from '../streams/format/metadata.ts';
import { metastreamOf } from '../streams/format/names.ts';
import { isEmptied, isWholeEvent } from '../log/format/redaction.ts';
import { shownData } from '../streams/format/retention.ts';
import { encodeText } from '../base/text.ts';
import type { RunSources } from './sources/run-sources.ts';

/** What the last event of a soft-deleted stream is to a scavenge. */
export type LastOfDeleted =
  /** It has its data, and loses them. */
  | 'full'
  /** An earlier run has emptied it. */
  | 'empty'
  /**
   * It was written behind the metadata that deleted the stream: by an append that a crash cut off before its own
   * metadata.
   */
  | 'written-since'
  /** No whole event, as a record of an explicit transaction: it stays as it is. */
  | 'other';

/**
 * Finds out whether the last events of soft-deleted streams still hold data, from the log and the index as the run sees
 * them.
 */
export class DeletedStreams {
  readonly #sources: RunSources;
  readonly #state: Pick<ScavengeState, 'isCollision'>;
  readonly #hasher: StreamHasher;
  readonly #hash = new Hash64();
  readonly #entries = new EntryList();
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();

  constructor(sources: RunSources, state: Pick<ScavengeState, 'isCollision'>, hasher: StreamHasher) {
    this.#sources = sources;
    this.#state = state;
    this.#hasher = hasher;
  }

  /** What the last event, which lies at `position`, is. */
  async last(position: number, number: number): Promise<LastOfDeleted> {
    if (!(await this.#read(position)) || !isWholeEvent(this.#fields) || this.#fields.eventNumber !== number)
      return 'other';
    if (isEmptied(this.#frame, this.#fields)) return 'empty';
    return (await this.#deletedAt(streamOf(this.#frame, this.#fields))) > position ? 'full' : 'written-since';
  }

  /** Position of the metadata in force that delete the stream; -1 where there are none. */
  async #deletedAt(stream: string): Promise<number> {
    const name = metastreamOf(stream);
    this.#hasher.hash(name, this.#hash);
    const key = { hi: this.#hash.hi, lo: this.#hash.lo, name: this.#state.isCollision(name) ? encodeText(name) : null };
    const { index } = this.#sources;
    const last = await index.lastNumber(key);
    if (last < 0) return -1;
    await index.slice(key, last, last, 1, this.#entries);
    const position = this.#entries.length === 0 ? -1 : this.#entries.positions[0]!;
    if (position < 0 || !(await this.#read(position))) return -1;
    return parseMetadata(shownData(this.#frame, this.#fields), true, this.#fields.version).truncateBefore === TOMBSTONE
      ? position
      : -1;
  }

  async #read(position: number): Promise<boolean> {
    if (!(await this.#sources.chunks.record(position, this.#frame)) || this.#frame.type !== PREPARE) return false;
    parsePrepare(this.#frame, this.#fields);
    return true;
  }
}
