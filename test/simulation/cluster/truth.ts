import {
  decodeEpoch,
  decodePrepare,
  FLAG_STREAM_DELETE,
  PREPARE,
  RecordFrame,
  SYSTEM,
  TOMBSTONE,
} from '../../../core/log/format/records.ts';
import { type Commit, decodeCommitObject } from '../../../core/shared-log/format/commit-object.ts';
import { commitNumberOf } from '../../../core/shared-log/format/object-keys.ts';
import { eachRecord } from '../../../core/streams/committed/committed.ts';
import { decodeText } from '../../../core/base/text.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { doomedBy, emptiedBy, type Point } from '../../scavenge/model.ts';
import { ticksOf } from '../../scavenge/raw-log.ts';
import type { RawPrepare, RawRecord } from '../../scavenge/raw-log.ts';

export const CHUNK_BYTES = 65_536;
/** As `ForwardPatienceMs`. */
export const PATIENCE_MS = 10_000;
/** Streams that keep all their events, and streams with limits, deletions and tombstones. */
export const KEPT: readonly string[] = ['a', 'b', 'c'];
export const LIMITED: readonly string[] = ['d', 'e', 'f'];

export interface TrueRecord extends RawRecord {
  readonly commit: number;
  /** Empty for what is no event. */
  readonly id: string;
  readonly prepare: TruePrepare | null;
}
/**
 * A write that waited for longer, and was then begun, broke what is promised; a standstill shorter than is noticed
 * counts for nothing.
 */
const LATEST_MS = PATIENCE_MS + 3_000;
interface TruePrepare extends RawPrepare {
  readonly number: number;
  readonly tags: readonly string[];
}

export interface TrueEpoch {
  readonly number: number;
  readonly position: number;
  readonly leader: string;
  readonly commit: number;
}

/** What a committed record says against the rules, as text. */
export type Complaint = (text: string) => void;

/**
 * The log as the bucket has it: every first object at a number, and nothing else. It reads the bytes itself and asks
 * nobody.
 */
export class TrueLog {
  readonly commits: Commit[] = [];
  /** When each was created. */
  readonly #times: number[] = [];
  /**
   * An id counts as known for good; else only few of the last events are looked through for one, and a repeat that
   * comes late is written again.
   */
  remembersAll = true;
  readonly records: TrueRecord[] = [];
  readonly byPosition = new Map<number, TrueRecord>();
  readonly byId = new Map<string, TrueRecord>();
  readonly streams = new Map<string, TrueRecord[]>();
  /** Where the first mark of redaction of a record lies, by the position of that. */
  readonly marks = new Map<number, number>();
  readonly epochs: TrueEpoch[] = [];
  /** Commits of requests that carry no event ids, by what they were named by their senders. */
  readonly tokens = new Map<string, number>();
  readonly #points = new Map<number, ReadonlySet<number>>();
  #doomed = new Set<number>();
  #emptied = new Set<number>();

  /** Number of the last commit; 0 for none. */
  get last(): number {
    return this.commits.length;
  }
  get end(): number {
    return this.commits.at(-1)?.end ?? 0;
  }
  /** The newest epoch number, -1 for none. */
  get epoch(): number {
    return this.epochs.at(-1)?.number ?? -1;
  }

  /** Takes in an object that was created in the bucket. False where it is no commit, or none that counts. */
  created(key: string, bytes: Uint8Array, now: number, complain: Complaint): boolean {
    const number = commitNumberOf(key);
    if (number === null || number <= this.last) return false;
    if (number !== this.last + 1) complain(`commit ${number} was created though the last one is ${this.last}`);
    this.#times[number - 1] = now;
    this.#add(decodeCommitObject(key, number, bytes.slice(), nodeDigests).commit, complain);
    return true;
  }

  #add(commit: Commit, complain: Complaint): void {
    if (commit.start < this.end)
      complain(`commit ${commit.number} starts at ${commit.start}, before the end ${this.end} of the one before it`);
    this.commits.push(commit);
    const frame = new RecordFrame();
    eachRecord(commit.records, commit.start, frame, () => {
      if (frame.type === SYSTEM) this.#addEpoch(frame, commit.number, complain);
      const record = recordOf(frame, commit.number);
      this.records.push(record);
      this.byPosition.set(record.position, record);
      if (record.prepare !== null) this.#addEvent(record, record.prepare, complain);
    });
  }

  #addEpoch(frame: RecordFrame, commit: number, complain: Complaint): void {
    const said = JSON.parse(decodeText(decodeEpoch(frame).json)) as {
      epochNumber?: number;
      prevEpochPosition?: number;
      leaderInstanceId?: string;
    };
    const { epochNumber = 0, prevEpochPosition = 0, leaderInstanceId = '' } = said;
    const last = this.epochs.at(-1);
    if (epochNumber !== (last?.number ?? -1) + 1) complain(`epoch ${epochNumber} follows epoch ${last?.number ?? -1}`);
    if (prevEpochPosition !== (last?.position ?? -1))
      complain(
        `epoch ${epochNumber} names ${prevEpochPosition} as the place of the one before it, which is at ${last?.position ?? -1}`,
      );
    this.epochs.push({ number: epochNumber, position: frame.position, leader: leaderInstanceId, commit });
  }

  #addEvent(record: TrueRecord, { stream, number, data }: TruePrepare, complain: Complaint): void {
    let events = this.streams.get(stream);
    if (events === undefined) this.streams.set(stream, (events = []));
    if (stream === '$redactions') this.#addMark(record.position, data);
    const last = events.at(-1)?.prepare?.number ?? -1;
    if (last === TOMBSTONE) complain(`event ${number} of ${stream} follows its tombstone`);
    else if (number !== TOMBSTONE && number !== last + 1)
      complain(`event ${number} of ${stream} follows event ${last}`);
    events.push(record);
    // Where events may be gone nobody can know all ids.
    const { epoch, token, arrivedMs } = stampOf(data);
    // It was decided behind the commit before this one.
    const isLate = arrivedMs !== null && (this.#times[record.commit - 2] ?? 0) > arrivedMs + LATEST_MS;
    const isTwice = this.byId.has(record.id) && KEPT.includes(stream);
    if (isTwice && (isLate || this.remembersAll))
      complain(`the event ${record.id} is in the log twice${isLate ? `, by a request of ${arrivedMs} ms` : ''}`);
    else if (isLate)
      complain(
        `a request that arrived at ${arrivedMs} ms was applied behind what was committed at ${this.#times[record.commit - 2]} ms, as event ${number} of ${stream}`,
      );
    this.byId.set(record.id, record);
    // With the first commit of an epoch it does no harm: everybody sees both at once.
    if (epoch !== null && epoch !== this.epoch && this.epochs.at(-1)?.commit !== record.commit)
      complain(
        `a request that was forwarded in epoch ${epoch} was applied in epoch ${this.epoch}, as event ${number} of ${stream}`,
      );
    if (token === null) return;
    if (this.tokens.has(token)) complain(`the request ${token} was applied twice`);
    this.tokens.set(token, record.commit);
  }

  #addMark(markedAt: number, data: string): void {
    const { position, id } = JSON.parse(data) as { position: number; id: string };
    if (this.byPosition.get(position)?.id === id && !this.marks.has(position)) this.marks.set(position, markedAt);
  }

  /** Whether a scavenge may have redacted the record: a point lies behind its mark. */
  isRedactedBy(position: number): boolean {
    const markedAt = this.marks.get(position);
    return (
      markedAt !== undefined && (this.streams.get('$scavengePoints') ?? []).some((point) => point.position > markedAt)
    );
  }

  /**
   * Whether the stream has the event there. It may have it elsewhere, too: when one member has scavenged the first, a
   * repeat is new to it, and the member that still has the first knows it again.
   */
  holds(stream: string, number: number, id: string): boolean {
    return this.streams.get(stream)?.some((record) => record.id === id && record.prepare!.number === number) === true;
  }

  /** The bucket has been put back to this commit. */
  cutTo(number: number): void {
    const commits = this.commits.slice(0, number);
    for (const all of [this.commits, this.records, this.epochs]) all.length = 0;
    for (const map of [this.byPosition, this.byId, this.streams, this.marks, this.tokens, this.#points]) map.clear();
    this.#doomed = new Set();
    this.#emptied = new Set();
    for (const commit of commits) this.#add(commit, () => {});
  }

  /** Positions of what some scavenge may have removed: doomed by any point that is in the log. */
  doomed(): ReadonlySet<number> {
    for (const { position, prepare } of this.streams.get('$scavengePoints') ?? []) {
      if (this.#points.has(position) || prepare!.type !== '$scavengePoint') continue;
      const { number, ticks, data } = prepare!;
      const point: Point = {
        position,
        number,
        ticks,
        threshold: (JSON.parse(data) as { threshold?: number }).threshold ?? 0,
      };
      const doomed = new Set(doomedBy(this.records, point).keys());
      this.#points.set(position, doomed);
      for (const at of doomed) this.#doomed.add(at);
      for (const at of emptiedBy(this.records, point)) this.#emptied.add(at);
    }
    return this.#doomed;
  }

  /** Positions of last events of deleted streams that some scavenge may have emptied, and readers then pass over. */
  emptied(): ReadonlySet<number> {
    this.doomed();
    return this.#emptied;
  }
}

function recordOf(frame: RecordFrame, commit: number): TrueRecord {
  const { position, bytes, at, length } = frame;
  const raw = {
    position,
    chunk: Math.floor(position / CHUNK_BYTES),
    bytes: Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1'),
    commit,
  };
  if (frame.type !== PREPARE) return { ...raw, id: '', prepare: null };
  const prepare = decodePrepare(frame);
  return {
    ...raw,
    id: prepare.eventId,
    prepare: {
      stream: prepare.stream,
      number: prepare.expectedVersion + 1,
      tags: tagsOf(prepare.metadata),
      isTombstone: (prepare.flags & FLAG_STREAM_DELETE) !== 0,
      type: prepare.eventType,
      isJson: (prepare.flags & 0x100) !== 0,
      data: Buffer.from(prepare.data).toString('utf8'),
      ticks: ticksOf(prepare.timestampMs, prepare.timestampTicks),
      dataBytes: prepare.data.length,
      metadataBytes: prepare.metadata.length,
      isEmptied: false,
    },
  };
}

function tagsOf(metadata: Uint8Array): readonly string[] {
  const { $tags = [] } = metadata.length === 0 ? {} : (JSON.parse(decodeText(metadata)) as { $tags?: string[] });
  return $tags;
}

/**
 * What the sender of a request wrote into its events: the epoch in which it was forwarded, a name where it has no event
 * ids, and when it came to a member.
 */
export function stamp(epoch: number | null, token: string | null, arrivedMs: number | null): string {
  return `<${epoch ?? ''}|${token ?? ''}|${arrivedMs ?? ''}>`;
}

function stampOf(data: string): {
  readonly epoch: number | null;
  readonly token: string | null;
  readonly arrivedMs: number | null;
} {
  const end = data[0] === '<' ? data.indexOf('>') : -1;
  if (end < 0) return { epoch: null, token: null, arrivedMs: null };
  const [epoch = '', token = '', arrived = ''] = data.slice(1, end).split('|');
  return {
    epoch: epoch === '' ? null : Number(epoch),
    token: token === '' ? null : token,
    arrivedMs: arrived === '' ? null : Number(arrived),
  };
}
