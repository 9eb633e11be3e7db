import { FLAG_JSON, FLAG_REDACTED, parsePrepare, PREPARE, PrepareFields, RecordFrame, recordTimestampAt, streamOf, timestampMsAt, timestampTicksAt } from '../log/records.ts';
import type { CommitLog } from '../ports/commit-log.ts';
import type { EventIndex } from './deps.ts';
import { eachRecord } from './group-records.ts';
import { StreamKey } from './lookup.ts';
import { isMetastream, metastreamOf, originalOf } from './names.ts';
import type { RecentIds } from './recent-ids.ts';
import type { RecordTime } from './record-time.ts';
import type { StreamStates } from './stream-states.ts';
import type { Waiters } from './waiters.ts';

/**
 * Takes in the records that another writer of the same log has committed, once they are indexed: what a
 * group does when it is published, but from bytes.
 */
export class Follower {
  readonly #index: EventIndex;
  readonly #states: StreamStates;
  readonly #recent: RecentIds;
  readonly #times: RecordTime;
  readonly #waiters: Waiters;
  readonly #log: CommitLog;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();

  constructor(index: EventIndex, states: StreamStates, recent: RecentIds, times: RecordTime, waiters: Waiters, log: CommitLog) {
    this.#index = index;
    this.#states = states;
    this.#recent = recent;
    this.#times = times;
    this.#waiters = waiters;
    this.#log = log;
  }

  /** Framed records that start at the position `start` of the log. */
  take(records: Uint8Array, start: number): void {
    eachRecord(records, start, this.#frame, (frame) => this.#takeOne(frame));
    if (records.length > 0) {
      const at = recordTimestampAt(this.#frame, this.#fields);
      this.#times.note(timestampMsAt(records, at), timestampTicksAt(records, at));
    }
    this.#log.publish();
    this.#waiters.wakeLog();
  }

  #takeOne(frame: RecordFrame): void {
    if (frame.type !== PREPARE) return;
    const f = this.#fields;
    parsePrepare(frame, f);
    if (!f.isCommitted || !f.isEvent) return;
    const name = streamOf(frame, f);
    const isMeta = isMetastream(name);
    const owner = isMeta ? originalOf(name) : name;
    this.#recent.add(frame.bytes, f.eventIdAt, new StreamKey(name, this.#index.hasher).salt, frame.position, 0);
    const state = this.#states.get(owner);
    if (state !== undefined) {
      const isShown = (f.flags & FLAG_REDACTED) === 0;
      const data = frame.bytes.subarray(f.dataAt, f.dataAt + (isShown ? f.dataLength : 0));
      state.committed = isMeta ? state.committed.withMetadata(f.eventNumber, data, (f.flags & FLAG_JSON) !== 0, f.version) : state.committed.withLast(f.eventNumber);
    }
    this.#states.written(owner);
    this.#waiters.wakeStream(name);
    // What is written to one of the two may end or hide the other.
    this.#waiters.wakeStream(isMeta ? owner : metastreamOf(name));
  }
}
