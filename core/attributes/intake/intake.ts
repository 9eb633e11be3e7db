import { i32, viewAt } from '../../base/bytes.ts';
import { Hash64 } from '../../base/stream-hash.ts';
import type { LogReader } from '../../log/api.ts';
import {
  COMMIT,
  FRAME_BYTES,
  FRAME_SOUND,
  isRecordLength,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
  SYSTEM,
  takeFrame,
} from '../../log/format/records.ts';
import { visitTransaction } from '../../index/transactions/transactions.ts';
import type { AttributeSink, AttributeSinks } from '../api.ts';
import { categoryLength, hashKey, hashKeyUtf8 } from '../format/attribute-keys.ts';
import { attributesIn } from '../format/attribute-texts.ts';

/**
 * Committed records as the entries of attribute indexes: the one way into them. Records come in the order of the log;
 * records that commit nothing are passed over. An entry may come twice.
 */
export class AttributeIntake {
  /** Where entries go; may be set anew between two records. */
  sinks: AttributeSinks;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  readonly #hash = new Hash64();
  /** Of the record that commits what is being looked at. */
  #position = 0;

  constructor(sinks: AttributeSinks) {
    this.sinks = sinks;
  }

  /**
   * Takes framed records, the first of which stands at the position `start` of the log: those from one offset to
   * another. Answers with the offset that it has come to: all of them are taken, or those before a record that ends an
   * explicit transaction, whose events lie anywhere in the log; that one is for `visit`. `onEpoch` gets the position of
   * each epoch record.
   */
  take(
    records: Uint8Array,
    start: number,
    from = 0,
    to = records.length,
    onEpoch?: (position: number) => void,
  ): number {
    const frame = this.#frame;
    let at = from;
    while (at < to) {
      const length = at + FRAME_BYTES <= to ? i32(records, at) : -1;
      if (
        !isRecordLength(length) ||
        at + length + FRAME_BYTES > to ||
        takeFrame(frame, records, at, length, start + at) !== FRAME_SOUND
      )
        return at;
      const type = records[at + 4];
      if (type === PREPARE) this.#prepare(frame);
      else if (type === COMMIT) return at;
      else if (type === SYSTEM) onEpoch?.(frame.position);
      at += length + FRAME_BYTES;
    }
    return at;
  }

  /** Takes one record of the log that `reader` reads. The promise is of one that ends an explicit transaction. */
  visit(frame: RecordFrame, reader: LogReader): void | Promise<void> {
    const type = frame.bytes[frame.at];
    if (type === PREPARE) this.#prepare(frame);
    else if (type === COMMIT) return this.#commit(frame, reader);
  }

  #prepare(frame: RecordFrame): void {
    const f = this.#fields;
    parsePrepare(frame, f);
    if (!f.isCommitted || !f.isEvent) return;
    this.#position = frame.position;
    this.#event(frame.bytes, f);
    this.#end(frame.position);
  }

  async #commit(frame: RecordFrame, reader: LogReader): Promise<void> {
    const { position } = frame;
    await visitTransaction(reader, frame, ({ bytes }, fields) => {
      this.#position = position;
      if (fields.isEvent) this.#event(bytes, fields);
    });
    this.#end(position);
  }

  #event(bytes: Uint8Array, f: PrepareFields): void {
    const { names, correlations, tags } = this.sinks;
    const hash = this.#hash;
    const position = this.#position;
    if (names !== null) {
      const length = categoryLength(bytes, f.streamAt, f.streamLength);
      if (length > 0) {
        hashKeyUtf8('ce', bytes, f.streamAt, length, hash);
        names.add(hash.hi, hash.lo, position);
      }
      hashKeyUtf8('et', bytes, f.typeAt, f.typeLength, hash);
      names.add(hash.hi, hash.lo, position);
    }
    if ((correlations !== null || tags !== null) && f.metadataLength > 0)
      this.#metadata(viewAt(bytes, f.metadataAt, f.metadataLength));
  }

  /** What queries read of metadata, and by the same rules. */
  #metadata(metadata: Uint8Array): void {
    const { correlation, tags } = attributesIn(metadata);
    if (correlation !== null) this.#addText('bc', correlation, this.sinks.correlations);
    for (const tag of tags) this.#addText('tag', tag, this.sinks.tags);
  }

  #addText(kind: 'bc' | 'tag', text: string, sink: AttributeSink | null): void {
    if (sink === null) return;
    hashKey(kind, text, this.#hash);
    sink.add(this.#hash.hi, this.#hash.lo, this.#position);
  }

  #end(position: number): void {
    const { names, correlations, tags } = this.sinks;
    names?.end(position);
    correlations?.end(position);
    tags?.end(position);
  }
}
