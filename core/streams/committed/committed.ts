import { i32 } from '../../base/bytes.ts';
import { brokenInvariant, SkuaError } from '../../base/errors.ts';
import type { AttributeFollower, AttributeSetting, ReadAhead } from '../../attributes/api.ts';
import { decodeSetting, SETTING_STREAM } from '../../attributes/format/setting.ts';
import { EventColumns } from '../../index/intake/intake.ts';
import {
  decodeEpoch,
  type EpochRecord,
  FLAG_JSON,
  FLAG_TRANSACTION_END,
  FRAME_BYTES,
  FRAME_SOUND,
  isRecordLength,
  PREPARE,
  PrepareFields,
  RecordFrame,
  recordTimestampAt,
  streamOf,
  SYSTEM,
  takeFrame,
  timestampMsAt,
  timestampTicksAt,
  TOMBSTONE,
} from '../../log/format/records.ts';
import type { LogReader } from '../../log/api.ts';
import type { CommitLog } from '../../ports/commit-log.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import { type EventIndex, StreamKey } from '../lookup/lookup.ts';
import { decodeMark, MARKS_STREAM, type Mark } from '../format/marks.ts';
import { isMetastream, metastreamOf, originalOf, POINTS_STREAM } from '../format/names.ts';
import type { RecentIds } from '../recent-ids.ts';
import type { RecordTime } from '../record-time.ts';
import type { Redactions } from '../redactions/redactions.ts';
import { shownData } from '../format/retention.ts';
import type { StreamStates } from '../stream-states.ts';
import type { Waiters } from '../subscriptions.ts';

/**
 * Durable records of the log, one behind the other, as what follows from them. A group of this store has noted it while
 * it was written; `ReadRecords` has read it from bytes.
 */
export interface CommittedRecords {
  /** Where they begin and end in the log. */
  readonly start: number;
  readonly end: number;
  readonly events: EventColumns;
  /** Position of the last prepare, also of one that is no event; -1 without any. */
  readonly lastPosition: number;
  /** Time of the last record; -Infinity without any. */
  readonly lastMs: number;
  readonly lastTicks: number;
  /** Time of the last scavenge point among them; -Infinity without any. */
  readonly pointMs: number;
  /** The last epoch record among them; null without any. */
  readonly epoch: EpochRecord | null;
  /** The marks of redaction among them. */
  readonly marks: readonly CommittedMark[];
  /** The last setting of attribute indexes among them; null without any. */
  readonly setting: AttributeSetting | null;
  /** What has been read of their attributes; null where nothing has. */
  readonly ahead: ReadAhead | null;
  /** The framed records themselves, valid until the call that shows them ends. */
  bytes(): Uint8Array;
  /** Brings the states that are known up to the records. */
  changeStates(states: StreamStates): void;
  rememberIds(recent: RecentIds): void;
  /** Wakes the readers that wait for the streams. */
  wake(waiters: Waiters): void;
}

export interface CommittedMark {
  readonly mark: Mark;
  /** Of its record. */
  readonly position: number;
}

/** The mark that an event of the stream of marks is; null where it is none. */
export function committedMark(data: Uint8Array, position: number): CommittedMark | null {
  const mark = decodeMark(data);
  return mark === null ? null : { mark, position };
}

/** All that has to know of a committed record. */
export interface CommittedParts {
  readonly index: EventIndex;
  readonly states: StreamStates;
  readonly recent: RecentIds;
  readonly times: RecordTime;
  readonly log: Pick<CommitLog, 'end' | 'publish'>;
  /** What readers see. */
  readonly reader: Pick<LogReader, 'end'>;
  readonly waiters: Waiters;
  readonly redactions: Redactions;
  readonly attributes: AttributeFollower;
  /** Called with every epoch, before readers see it; must not throw. */
  readonly onEpoch: ((epoch: EpochRecord) => void) | undefined;
}

/**
 * What a committed record does, from whichever writer it comes: everything that answers questions about streams learns
 * of it, then readers see it, then readers that wait for it are woken. In one step, so that no reader sees a part of
 * it. Throws `writer_stopped`, with nothing changed, where the records do not lie between the end that readers see and
 * the log's.
 */
export function applyCommitted(records: CommittedRecords, parts: CommittedParts): void {
  const { start, end } = records;
  if (start < parts.reader.end || end > parts.log.end) {
    throw brokenInvariant(
      `Records from ${start} to ${end} of the log are to be shown, where readers see it up to ${parts.reader.end}, and it ends at ${parts.log.end}`,
      { start, end },
    );
  }
  applyToIndex(records, parts.index);
  if (end > start) parts.attributes.takeIn(records.bytes(), start, end, records.ahead);
  if (records.setting !== null) parts.attributes.follow(records.setting);
  records.changeStates(parts.states);
  records.rememberIds(parts.recent);
  if (records.lastMs > -Infinity) parts.times.note(records.lastMs, records.lastTicks);
  if (records.pointMs > -Infinity) parts.times.notePoint(records.pointMs);
  if (records.epoch !== null) parts.onEpoch?.(records.epoch);
  for (const { mark, position } of records.marks) parts.redactions.add(mark, position);
  parts.log.publish();
  records.wake(parts.waiters);
  parts.waiters.wakeLog();
}

/** The part that also is done for an index that is made anew from the same records. */
export function applyToIndex(records: CommittedRecords, index: EventIndex): void {
  records.events.applyTo(index);
  if (records.lastPosition >= 0) index.noteExistenceCheckpoint(records.lastPosition);
}

/** An event of a metastream that was read. */
interface ReadMetadata {
  readonly data: Uint8Array;
  readonly isJson: boolean;
  readonly recordVersion: number;
}

/**
 * Committed records as bytes give them: those of another writer of the same log, or of a commit that is taken in again.
 * One object is used for one commit after the other.
 */
export class ReadRecords implements CommittedRecords {
  readonly ahead = null;
  start = 0;
  end = 0;
  readonly events = new EventColumns();
  lastPosition = -1;
  lastMs = -Infinity;
  lastTicks = 0;
  pointMs = -Infinity;
  epoch: EpochRecord | null = null;
  readonly marks: CommittedMark[] = [];
  setting: AttributeSetting | null = null;
  readonly #hasher: StreamHasher;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  #records: Uint8Array = new Uint8Array(0);
  /** One for each event: its stream, and where its id lies in the records. */
  readonly #keys: StreamKey[] = [];
  readonly #idsAt: number[] = [];
  /** By the number of the event among these. */
  readonly #metadata = new Map<number, ReadMetadata>();

  constructor(hasher: StreamHasher) {
    this.#hasher = hasher;
  }

  /** Reads framed records, the first of which starts at the position `start` of the log. Throws `log_corrupt`. */
  read(records: Uint8Array, start: number): this {
    this.events.clear();
    this.#keys.length = 0;
    this.#idsAt.length = 0;
    this.#metadata.clear();
    this.#records = records;
    this.start = start;
    this.end = start + records.length;
    this.lastPosition = -1;
    this.lastMs = -Infinity;
    this.pointMs = -Infinity;
    this.epoch = null;
    this.marks.length = 0;
    this.setting = null;
    eachRecord(records, start, this.#frame, (frame) => this.#take(frame));
    return this;
  }

  #take(frame: RecordFrame): void {
    const f = this.#fields;
    const timestampAt = recordTimestampAt(frame, f);
    this.lastMs = timestampMsAt(frame.bytes, timestampAt);
    this.lastTicks = timestampTicksAt(frame.bytes, timestampAt);
    if (frame.type === SYSTEM) this.epoch = decodeEpoch(frame);
    if (frame.type !== PREPARE) return;
    this.lastPosition = frame.position;
    if (!f.isCommitted || !f.isEvent) return;
    const name = streamOf(frame, f);
    const last = this.#keys.at(-1);
    const key = last?.name === name ? last : new StreamKey(name, this.#hasher);
    if (isMetastream(name)) {
      this.#metadata.set(this.events.count, {
        data: shownData(frame, f),
        isJson: (f.flags & FLAG_JSON) !== 0,
        recordVersion: f.version,
      });
    }
    if (name === MARKS_STREAM) {
      const mark = committedMark(shownData(frame, f), frame.position);
      if (mark !== null) this.marks.push(mark);
    }

    if (name === POINTS_STREAM) this.pointMs = this.lastMs;
    if (name === SETTING_STREAM) this.setting = decodeSetting(shownData(frame, f)) ?? this.setting;
    this.events.note(key, f.eventNumber, frame.position, (f.flags & FLAG_TRANSACTION_END) !== 0);
    this.#keys.push(key);
    this.#idsAt.push(f.eventIdAt);
  }

  bytes(): Uint8Array {
    return this.#records;
  }

  changeStates(states: StreamStates): void {
    for (let i = 0; i < this.events.count; i++) {
      const { name } = this.#keys[i]!;
      const number = this.events.number(i);
      const metadata = this.#metadata.get(i);
      const owner = metadata === undefined ? name : originalOf(name);
      const state = states.get(owner);
      if (state !== undefined) {
        state.committed =
          metadata === undefined
            ? state.committed.withLast(number)
            : state.committed.withMetadata(number, metadata.data, metadata.isJson, metadata.recordVersion);
      }
      states.written(owner);
      if (metadata !== undefined) states.metadataChanges++;
    }
  }

  rememberIds(recent: RecentIds): void {
    for (let i = 0; i < this.events.count; i++)
      recent.add(this.#records, this.#idsAt[i]!, this.#keys[i]!.salt, this.events.position(i), 0);
  }

  wake(waiters: Waiters): void {
    for (let i = 0; i < this.events.count; i++) {
      const { name } = this.#keys[i]!;
      waiters.wakeStream(name);
      // What is written to one of the two may end or hide the other.
      if (this.#metadata.has(i)) waiters.wakeStream(originalOf(name));
      else if (this.events.number(i) === TOMBSTONE) waiters.wakeStream(metastreamOf(name));
    }
  }
}

/**
 * Shows the framed records of a commit one after the other in `frame`; the first starts at the position `start` of the
 * log. Throws `log_corrupt`.
 */
export function eachRecord(
  records: Uint8Array,
  start: number,
  frame: RecordFrame,
  visit: (frame: RecordFrame) => void,
): void {
  for (let at = 0; at < records.length;) {
    const length = at + FRAME_BYTES <= records.length ? i32(records, at) : -1;
    if (
      !isRecordLength(length) ||
      at + length + FRAME_BYTES > records.length ||
      takeFrame(frame, records, at, length, start + at) !== FRAME_SOUND
    ) {
      throw new SkuaError(
        'log_corrupt',
        `A commit holds no valid record at position ${start + at} of the log (offset ${at} of its records). Restore the commit object from a version or a backup of the bucket.`,
        { position: start + at, offset: at },
      );
    }
    visit(frame);
    at += length + FRAME_BYTES;
  }
}
