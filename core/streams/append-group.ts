import type { AttributeSetting, ReadAhead } from '../attributes/api.ts';
import { EntriesAhead } from '../attributes/entries-ahead/entries-ahead.ts';
import { decodeSetting, SETTING_STREAM } from '../attributes/format/setting.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import { putI32 } from '../base/bytes.ts';
import { EventColumns } from '../index/intake/intake.ts';
import { EPOCH_STREAM } from '../log/format/epochs.ts';
import {
  encodeEpoch,
  encodePrepare,
  type EpochRecord,
  FLAG_COMMITTED,
  FLAG_DATA,
  FLAG_JSON,
  FLAG_STREAM_DELETE,
  FLAG_TRANSACTION_BEGIN,
  FLAG_TRANSACTION_END,
  FRAME_BYTES,
  prepareFrameBytes,
  type PrepareInput,
  TOMBSTONE,
  viewOf,
} from '../log/format/records.ts';
import type { Ids } from '../ports/ids.ts';
import { encodeText } from '../base/text.ts';
import { timestampText } from '../base/time.ts';
import type { NewEvent } from './api.ts';
import type { AppendRequest, CheckedEvents, EpochInput, EventTypes } from './append-request.ts';
import { type CommittedMark, committedMark, type CommittedRecords } from './committed/committed.ts';
import type { StreamKey } from './lookup/lookup.ts';
import { MARKS_STREAM } from './format/marks.ts';
import { METADATA_TYPE, POINTS_STREAM, TOMBSTONE_TYPE } from './format/names.ts';
import type { RecentIds } from './recent-ids.ts';
import type { RecordTimestamp } from './record-time.ts';
import type { StreamState, StreamVersion } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';
import type { Waiters } from './subscriptions.ts';

const NO_BYTES = new Uint8Array(0);
const METADATA_TYPE_BYTES = encodeText(METADATA_TYPE);
const TOMBSTONE_TYPE_BYTES = encodeText(TOMBSTONE_TYPE);
/** Type of the events of the epoch stream, which has the same name. */
const EPOCH_TYPE_BYTES = encodeText(EPOCH_STREAM);
/** Bytes of a system record without its data. */
const SYSTEM_BYTES = 32;
const WHOLE = FLAG_TRANSACTION_BEGIN | FLAG_TRANSACTION_END | FLAG_COMMITTED;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * The records of one group commit, written straight into one buffer that is used again and again, and what has to be
 * done once they are durable. What the group decided is held as drafts in the states of its streams.
 */
export class AppendGroup implements CommittedRecords {
  start = 0;
  length = 0;
  /** Its events. */
  readonly events = new EventColumns();
  readonly requests: AppendRequest[] = [];
  /** Its last epoch record. */
  epoch: EpochRecord | null = null;
  readonly marks: CommittedMark[] = [];
  setting: AttributeSetting | null = null;
  /** As `CommittedRecords` has it. */
  pointMs = -Infinity;
  /** What attribute indexes will have of its events, as far as somebody has asked. */
  readonly entries = new EntriesAhead();
  readonly #touched: StreamState[] = [];
  readonly #written: string[] = [];
  readonly #bufferBytes: number;
  readonly #ids: Ids;
  readonly #recent: RecentIds;
  readonly #types: EventTypes;
  #buffer = NO_BYTES;
  #view = viewOf(NO_BYTES);
  /**
   * Requests whose ids are not yet among the recent ones, with stream and first event of each, and whether their first
   * id was looked for in vain.
   */
  readonly #idRequests: CheckedEvents[] = [];
  readonly #idKeys: StreamKey[] = [];
  readonly #idEvents: number[] = [];
  readonly #idUnknown: boolean[] = [];
  #lastPosition = -1;
  #lastEventPosition = -1;
  #writes = 0;
  #ms = 0;
  #ticks = 0;
  /** Of the record written last. */
  #lastTicks = 0;
  #isWithdrawn = false;
  readonly #record: Mutable<PrepareInput> = {
    position: 0,
    flags: 0,
    transactionPosition: 0,
    transactionOffset: 0,
    expectedVersion: 0,
    stream: NO_BYTES,
    eventId: NO_BYTES,
    eventIdAt: 0,
    correlationId: new Uint8Array(16),
    timestampMs: 0,
    timestampTicks: 0,
    eventType: NO_BYTES,
    data: NO_BYTES,
    metadata: NO_BYTES,
  };
  #correlationId: Uint8Array = new Uint8Array(16);

  constructor(ids: Ids, recent: RecentIds, types: EventTypes, bufferBytes: number) {
    this.#ids = ids;
    this.#recent = recent;
    this.#types = types;
    this.#bufferBytes = bufferBytes;
  }

  /** Begins a group at the end of the log. */
  begin(start: number, { ms, ticks }: RecordTimestamp): void {
    this.entries.clear();
    this.start = start;
    this.length = 0;
    this.events.clear();
    this.epoch = null;
    this.marks.length = 0;
    this.setting = null;
    this.pointMs = -Infinity;
    this.requests.length = 0;
    // Nothing was written of what was decided for them, where a group has ended without a commit.
    for (const state of this.#touched) state.draft = null;
    this.#touched.length = 0;
    this.#written.length = 0;
    this.#dropIds();
    this.#lastPosition = -1;
    this.#writes = 0;
    this.#isWithdrawn = false;
    this.#ms = ms;
    this.#ticks = ticks;
    this.#lastTicks = ticks;
    // A buffer that one huge write needed is not kept.
    if (this.#buffer.length > 2 * this.#bufferBytes) this.#use(NO_BYTES);
  }

  get ahead(): ReadAhead | null {
    return this.epoch === null ? this.entries : null;
  }

  /** Position of the next record. */
  get end(): number {
    return this.start + this.length;
  }

  get buffer(): Uint8Array {
    return this.#buffer;
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.length);
  }

  #makeRoom(bytes: number): void {
    const need = this.length + bytes;
    if (need <= this.#buffer.length) return;
    const larger = new Uint8Array(
      Math.max(need, Math.min(this.#bufferBytes, Math.max(this.#buffer.length * 2, 65_536))),
    );
    larger.set(this.#buffer.subarray(0, this.length));
    this.#use(larger);
  }

  #use(buffer: Uint8Array<ArrayBuffer>): void {
    this.#buffer = buffer;
    this.#view = viewOf(buffer);
  }

  /** Notes what the state of a stream will be once the group is durable. */
  draft(state: StreamState, version: StreamVersion): void {
    if (state.draft === null) this.#touched.push(state);
    state.draft = version;
  }

  /** Sets what all records of one write share. One random id serves a group; the writes in it differ in a counter. */
  #beginWrite(key: StreamKey): void {
    if (this.#writes === 0) this.#correlationId = guidFromUuidBytes(this.#ids.uuidBytes());
    putI32(this.#correlationId, 10, this.#writes++);
    const r = this.#record;
    r.correlationId = this.#correlationId;
    r.stream = key.bytes;
    r.transactionPosition = this.end;
    r.transactionOffset = 0;
    r.metadata = NO_BYTES;
    r.timestampMs = this.#ms;
    this.#written.push(key.name);
  }

  #put(): void {
    const r = this.#record;
    r.position = this.end;
    r.timestampTicks = this.#lastTicks = this.#ticks;
    if (this.#ticks < 9_999) this.#ticks++;
    this.#lastPosition = r.position;
    this.length = encodePrepare(this.#buffer, this.length, r, this.#view);
  }

  /**
   * Writes events, as one transaction, behind event `last`; their ids are to be remembered. `isUnknown`: the first id
   * has been looked for in vain, so what is remembered of it is out of date.
   */
  writeEvents(key: StreamKey, last: number, checked: CheckedEvents, isUnknown: boolean): void {
    const { events, ids, idsAt, bytes } = checked;
    this.#makeRoom(bytes);
    this.#beginWrite(key);
    this.#idRequests.push(checked);
    this.#idKeys.push(key);
    this.#idEvents.push(this.events.count);
    this.#idUnknown.push(isUnknown);
    const r = this.#record;
    r.eventId = ids;
    const final = events.length - 1;
    for (let i = 0; i <= final; i++) {
      const event = events[i]!;
      r.eventIdAt = idsAt + i * 16;
      r.flags =
        FLAG_DATA |
        FLAG_COMMITTED |
        (event.isJson ? FLAG_JSON : 0) |
        (i === 0 ? FLAG_TRANSACTION_BEGIN : 0) |
        (i === final ? FLAG_TRANSACTION_END : 0);
      r.transactionOffset = i;
      r.expectedVersion = last + i;
      r.eventType = this.#types.bytes(event.type)!;
      r.data = event.data;
      r.metadata = event.metadata;
      this.#put();
      this.events.note(key, last + i + 1, this.#lastPosition, i === final);
    }
    if (key.name === MARKS_STREAM) this.#noteMarks(events);
    if (key.name === POINTS_STREAM) this.pointMs = this.#ms;
    if (key.name === SETTING_STREAM) for (const { data } of events) this.setting = decodeSetting(data) ?? this.setting;
    this.#lastEventPosition = this.#lastPosition;
  }

  /** The events are those that were written last. */
  #noteMarks(events: readonly NewEvent[]): void {
    const first = this.events.count - events.length;
    for (const [i, { data }] of events.entries()) {
      const mark = committedMark(data, this.events.position(first + i));
      if (mark !== null) this.marks.push(mark);
    }
  }

  /**
   * Puts the ids of the events written so far among the recent ones. That is work for the time in which the disk syncs,
   * unless a request for one of their streams comes into the same group.
   */
  rememberIds(): void {
    for (let k = 0; k < this.#idRequests.length; k++) {
      const { ids, idsAt, events } = this.#idRequests[k]!;
      const first = this.#idEvents[k]!;
      const { salt } = this.#idKeys[k]!;
      const start = this.events.position(first);
      for (let i = 0; i < events.length; i++)
        this.#recent.add(
          ids,
          idsAt + i * 16,
          salt,
          this.events.position(first + i),
          i === 0 && this.#idUnknown[k]! ? start : 0,
        );
    }
    this.#dropIds();
  }

  #dropIds(): void {
    this.#idRequests.length = 0;
    this.#idKeys.length = 0;
    this.#idEvents.length = 0;
    this.#idUnknown.length = 0;
  }

  /** Writes a record that says only that the expected version held. */
  writeEmpty(key: StreamKey, last: number, bytes: number): void {
    this.#writeOne(key, WHOLE, -1, last, NO_BYTES, NO_BYTES, bytes);
  }

  writeTombstone(key: StreamKey, bytes: number): void {
    this.#writeOne(key, WHOLE | FLAG_STREAM_DELETE, 0, TOMBSTONE - 1, TOMBSTONE_TYPE_BYTES, NO_BYTES, bytes);
    this.events.note(key, TOMBSTONE, this.#lastPosition, true);
  }

  /** Writes a `$metadata` event of our own making to a metastream. */
  writeMetadata(key: StreamKey, last: number, json: Uint8Array, bytes: number): void {
    this.#writeJson(key, last, METADATA_TYPE_BYTES, json, bytes);
  }

  #writeJson(key: StreamKey, last: number, type: Uint8Array, json: Uint8Array, bytes: number): void {
    this.#writeOne(key, WHOLE | FLAG_DATA | FLAG_JSON, 0, last, type, json, bytes);
    this.events.note(key, last + 1, this.#lastPosition, true);
  }

  #writeOne(
    key: StreamKey,
    flags: number,
    offset: number,
    expectedVersion: number,
    type: Uint8Array,
    data: Uint8Array,
    bytes: number,
  ): void {
    this.#makeRoom(bytes);
    this.#beginWrite(key);
    const r = this.#record;
    r.flags = flags;
    r.transactionOffset = offset;
    r.expectedVersion = expectedVersion;
    r.eventId = guidFromUuidBytes(this.#ids.uuidBytes());
    r.eventIdAt = 0;
    r.eventType = type;
    r.data = data;
    this.#put();
  }

  /** The JSON of an epoch record that is written next: members in this order, zeros left out. */
  epochJson(epoch: EpochInput): Uint8Array {
    const members: [string, string | number][] = [
      ['epochPosition', this.end],
      ['epochNumber', epoch.epochNumber],
      ['epochId', guidToText(guidFromUuidBytes(this.#ids.uuidBytes()), 0)],
      ['prevEpochPosition', epoch.prevEpochPosition],
      ['timeStamp', timestampText(this.#ms, this.#ticks)],
      ['leaderInstanceId', epoch.leaderInstanceId],
    ];
    const lines = members
      .filter(([, value]) => value !== 0)
      .map(([name, value]) => `  "${name}": ${JSON.stringify(value)}`);
    return encodeText(`{\n${lines.join(',\n')}\n}`);
  }

  /** Writes an epoch record, and the event of the epoch stream `key` that repeats it. */
  writeEpoch(key: StreamKey, last: number, json: Uint8Array): void {
    this.#makeRoom(epochBytes(json));
    this.epoch = { position: this.end, json };
    this.length = encodeEpoch(this.#buffer, this.length, this.end, this.#ms, this.#ticks, json);
    this.#writeJson(key, last, EPOCH_TYPE_BYTES, json, epochEventBytes(json));
  }

  /** Position of the event that a request wrote last. */
  get lastEventPosition(): number {
    return this.#lastEventPosition;
  }
  /** Position of the record of a stream that was written last; -1 without any. */
  get lastPosition(): number {
    return this.#lastPosition;
  }
  /** Time of the record written last. */
  get lastMs(): number {
    return this.#ms;
  }
  get lastTicks(): number {
    return this.#lastTicks;
  }

  /** What was decided is committed now. */
  changeStates(states: StreamStates): void {
    let changed = 0;
    for (const state of this.#touched) {
      const isWritten = state.draft !== state.committed;
      if (state.draft!.metadataVersion !== state.committed.metadataVersion) states.metadataChanges++;
      state.committed = state.draft!;
      state.draft = null;
      if (!isWritten) continue;
      this.#touched[changed++] = state;
      states.written(state.key.name);
    }
    this.#touched.length = changed;
  }

  wake(waiters: Waiters): void {
    for (const name of this.#written) waiters.wakeStream(name);
    for (const state of this.#touched) {
      waiters.wakeStream(state.key.name);
      if (state.committed.isTombstoned) waiters.wakeStream(state.metaKey.name);
    }
  }

  /**
   * The group did not become durable: nothing of it ever was. Once is enough, and more would do harm: where another
   * writer's records have moved the log since, their ids stand behind the same position.
   */
  withdraw(): void {
    if (this.#isWithdrawn) return;
    this.#isWithdrawn = true;
    for (const state of this.#touched) state.draft = null;
    this.#recent.withdrawFrom(this.start);
  }
}

/** Framed size of an epoch record and of the event behind it. */
export function epochBytes(json: Uint8Array): number {
  return FRAME_BYTES + SYSTEM_BYTES + json.length + epochEventBytes(json);
}

function epochEventBytes(json: Uint8Array): number {
  return prepareFrameBytes(EPOCH_TYPE_BYTES.length, EPOCH_TYPE_BYTES.length, json.length, 0);
}
