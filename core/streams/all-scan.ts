import { equalBytes } from '../base/bytes.ts';
import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import { EPOCH_STREAM } from '../log/format/epochs.ts';
import {
  COMMIT,
  type CommitRecord,
  decodeCommit,
  FLAG_STREAM_DELETE,
  FLAG_TRANSACTION_END,
  parsePrepare,
  PREPARE,
  streamOf,
  TOMBSTONE,
} from '../log/format/records.ts';
import { encodeText, internText } from '../base/text.ts';
import type { AllFilter, AllPosition, StoredEvent } from './api.ts';
import type { CheckpointCount } from './checkpoint-count.ts';
import type { Lookup } from './lookup/lookup.ts';
import type { PageBytes } from '../base/page-bytes.ts';
import { PAUSE, pageEvent } from './page-scan.ts';
import { isEmptied } from '../log/format/redaction.ts';

const EPOCH_STREAM_BYTES = encodeText(EPOCH_STREAM);

/** Steps of an expression after which others get their turn: at most 25 ms, and mostly much less. */
const MATCHING_STEPS_PER_SLICE = 262_144;

/** An explicit transaction whose events are being delivered at its commit record. */
interface OpenTransaction {
  readonly commit: CommitRecord;
  /** Position after the commit record. */
  readonly next: number;
}

/** What a page of `$all` is to hold. */
export interface AllScanPage {
  readonly count: number;
  readonly filter: AllFilter | undefined;
  readonly bytes: PageBytes;
  /** Called with each event that is looked at. */
  readonly checkpoints?: CheckpointCount | undefined;
}

/** What became of a record of a transaction. */
const TAKEN = 0;
const TAKEN_LAST = 1;
const CUT = 2;

/** What the two directions have in common; see `ForwardScan` and `BackwardScan`. */
export abstract class AllScan {
  readonly events: StoredEvent[] = [];
  /** Log records looked at. */
  examined = 0;
  /** Steps that the expression of the filter has taken at most. */
  matchingSteps = 0;
  protected readonly lookup: Lookup;
  protected transaction: OpenTransaction | null = null;
  /** Where the next record of the log is read: at or after it forward, before it backward. */
  protected position: number;
  /** The same within the transaction. */
  protected inner = 0;
  readonly #count: number;
  readonly #filter: AllFilter | undefined;
  readonly #bytes: PageBytes;
  readonly #checkpoints: CheckpointCount | undefined;
  readonly #start: number;

  constructor(lookup: Lookup, position: number, { count, filter, bytes, checkpoints }: AllScanPage) {
    this.lookup = lookup;
    this.position = position;
    this.#start = position;
    this.#count = count;
    this.#filter = filter;
    this.#bytes = bytes;
    this.#checkpoints = checkpoints;
  }

  get isFull(): boolean {
    return this.events.length >= this.#count || this.#bytes.isFull || this.#bytes.lacksRoom;
  }
  /** How far the scan has come, in bytes of the log. */
  get passedBytes(): number {
    return Math.abs(this.position - this.#start);
  }

  /**
   * HIT when the page is full, END at the end of the log in this direction; at most `slice` records are looked at, and
   * fewer where the filter's expression has much to do, or the scan has passed over more than `bytesMax`.
   */
  step(slice: number, bytesMax: number): Outcome | typeof PAUSE {
    try {
      return this.#step(slice, bytesMax);
    } finally {
      this.lookup.ids.settle();
    }
  }

  #step(slice: number, bytesMax: number): Outcome | typeof PAUSE {
    const stop = this.examined + slice;
    const stopMatching = this.matchingSteps + MATCHING_STEPS_PER_SLICE;
    while (!this.isFull) {
      if (this.examined >= stop || this.matchingSteps >= stopMatching || this.passedBytes > bytesMax) return PAUSE;
      const outcome = this.transaction === null ? this.readRecord() : this.readInner(this.transaction);
      if (outcome !== HIT) return outcome;
      this.examined++;
    }
    return HIT;
  }

  /** Where the next page starts. */
  abstract next(): AllPosition;
  /** Reads one record of the log. */
  protected abstract readRecord(): Outcome;
  /** Reads one record on behalf of the transaction. */
  protected abstract readInner(transaction: OpenTransaction): Outcome;

  /** Takes the event of the self-committed prepare in the frame, if it is one. False: the page ends before it. */
  protected takeImplicit(): boolean {
    const { frame, fields } = this.lookup;
    parsePrepare(frame, fields);
    return !fields.isCommitted || !fields.isEvent || this.#push(fields.eventNumber, frame.position);
  }

  /**
   * Takes the prepare in the frame if it is an event of the transaction. TAKEN_LAST when the transaction has no later
   * records, CUT when the page ends before it.
   */
  protected takeInner(commit: CommitRecord): typeof TAKEN | typeof TAKEN_LAST | typeof CUT {
    const { frame, fields: f } = this.lookup;
    if (frame.type !== PREPARE) return TAKEN;
    parsePrepare(frame, f);
    if (f.transactionPosition !== commit.transactionPosition || f.isCommitted) return TAKEN;
    if (f.isEvent) {
      const number = (f.flags & FLAG_STREAM_DELETE) !== 0 ? TOMBSTONE : commit.firstEventNumber + f.transactionOffset;
      if (!this.#push(number, commit.position)) return CUT;
    }
    return (f.flags & FLAG_TRANSACTION_END) !== 0 ? TAKEN_LAST : TAKEN;
  }

  #push(number: number, commitPosition: number): boolean {
    const { frame, fields: f } = this.lookup;
    // Epochs are the node's own affair.
    if (
      f.streamLength === EPOCH_STREAM_BYTES.length &&
      equalBytes(frame.bytes, f.streamAt, EPOCH_STREAM_BYTES, 0, f.streamLength)
    )
      return this.#leaves(commitPosition);
    // No handler meets what a deleted stream left for its number: an event without its data.
    if (isEmptied(frame, f)) return this.#leaves(commitPosition);
    const stream = streamOf(frame, f);
    if (
      this.#filter !== undefined &&
      !this.#passes(this.#filter, stream, internText(frame.bytes, f.typeAt, f.typeLength))
    )
      return this.#leaves(commitPosition);
    if (!this.#bytes.take(f.dataLength + f.metadataLength, f.streamLength)) return false;
    this.events.push(pageEvent(this.lookup, stream, number, commitPosition, this.#bytes));
    this.#checkpoints?.saw(commitPosition, frame.position, true, this.events.length);
    return true;
  }

  #leaves(commitPosition: number): true {
    this.#checkpoints?.saw(commitPosition, this.lookup.frame.position, false, this.events.length);
    return true;
  }

  #passes(filter: AllFilter, stream: string, type: string): boolean {
    if (filter.regex !== undefined)
      this.matchingSteps += filter.regex.stepsPerCharacter * (filter.on === 'stream' ? stream : type).length;
    return passesFilter(filter, stream, type);
  }
}

/**
 * Events of `$all` in the order of their commits. A self-committed prepare is an event where it stands; the prepares
 * of an explicit transaction are events at its commit record, for which the log is read again from the transaction's
 * start.
 */
export class ForwardScan extends AllScan {
  readonly #from: AllPosition;
  readonly #isAfter: boolean;
  #lastCommit = -1;
  #lastPrepare = -1;

  /** `isAfter`: the event at `from` is not wanted. */
  constructor(lookup: Lookup, from: AllPosition, page: AllScanPage, isAfter: boolean) {
    super(lookup, from.commit, page);
    this.#from = from;
    this.#isAfter = isAfter;
  }

  /** The position of what was looked at last, so that all behind it is still to come; null before the first record. */
  last(): AllPosition | null {
    return this.#lastCommit < 0 ? null : { commit: this.#lastCommit, prepare: this.#lastPrepare };
  }

  #saw(commit: number, prepare: number): void {
    this.#lastCommit = commit;
    this.#lastPrepare = prepare;
  }

  next(): AllPosition {
    return this.transaction === null
      ? { commit: this.position, prepare: 0 }
      : { commit: this.transaction.commit.position, prepare: this.inner };
  }

  protected readRecord(): Outcome {
    const { frame, reader } = this.lookup;
    const outcome = reader.readForward(this.position, frame);
    // Behind the last record of a completed chunk the log goes on with the next one, where it ends now: a reader that
    // waits behind this page waits for what comes there.
    if (outcome === END) this.position = Math.max(this.position, reader.end);
    if (outcome !== HIT) return outcome;
    const isFirst = frame.position === this.#from.commit;
    if (frame.type === COMMIT) this.#open(decodeCommit(frame), frame.next, isFirst);
    else {
      if (frame.type === PREPARE && !(isFirst && this.#isAfter) && !this.takeImplicit()) return HIT;
      this.position = frame.next;
      this.#saw(frame.position, frame.position);
    }
    return HIT;
  }

  #open(commit: CommitRecord, next: number, isFirst: boolean): void {
    this.inner = commit.transactionPosition;
    this.transaction = { commit, next };
    if (!isFirst) return;
    const { prepare } = this.#from;
    if (prepare < commit.position) this.inner = Math.max(prepare, this.inner);
    // A position at or behind the commit record is none of an event of this transaction, but one between records.
    else if (this.#isAfter) this.#close(commit, next);
  }

  #close(commit: CommitRecord, next: number): void {
    this.transaction = null;
    this.position = next;
    this.#saw(commit.position, commit.position);
  }

  protected readInner({ commit, next }: OpenTransaction): Outcome {
    const { frame, reader } = this.lookup;
    const outcome = reader.readForward(this.inner, frame);
    if (isMiss(outcome)) return outcome;
    if (outcome === END || frame.position >= commit.position) {
      this.#close(commit, next);
      return HIT;
    }
    const isSeen = this.#isAfter && commit.position === this.#from.commit && frame.position === this.#from.prepare;
    const taken = isSeen ? TAKEN : this.takeInner(commit);
    if (taken === CUT) return HIT;
    this.inner = frame.next;
    this.#saw(commit.position, frame.position);
    if (taken === TAKEN_LAST) this.#close(commit, next);
    return HIT;
  }
}

/** The same backward: the events of a transaction come at its commit record, last one first. */
export class BackwardScan extends AllScan {
  #isChecked: boolean;
  readonly #from: AllPosition;

  constructor(lookup: Lookup, from: AllPosition, page: AllScanPage) {
    super(lookup, from.commit, page);
    this.#from = from;
    // A lower prepare half may name an event inside the transaction whose commit record starts here.
    this.#isChecked = from.prepare >= from.commit;
  }

  next(): AllPosition {
    return this.transaction === null
      ? { commit: this.position, prepare: this.position }
      : { commit: this.transaction.commit.position, prepare: this.inner };
  }

  protected readRecord(): Outcome {
    const { frame, reader } = this.lookup;
    if (!this.#isChecked) return this.#check();
    const outcome = reader.readBackward(this.position, frame);
    if (outcome !== HIT) return outcome;
    if (frame.type === COMMIT) {
      this.transaction = { commit: decodeCommit(frame), next: frame.next };
      this.inner = frame.position;
    } else if (frame.type === PREPARE && !this.takeImplicit()) return HIT;
    this.position = frame.position;
    return HIT;
  }

  #check(): Outcome {
    const { frame, reader } = this.lookup;
    const outcome = reader.readAt(this.#from.commit, frame);
    if (isMiss(outcome)) return outcome;
    this.#isChecked = true;
    if (outcome === HIT && frame.type === COMMIT) {
      const commit = decodeCommit(frame);
      if (this.#from.prepare > commit.transactionPosition) {
        this.transaction = { commit, next: frame.next };
        this.inner = this.#from.prepare;
      }
    }
    return HIT;
  }

  protected readInner({ commit }: OpenTransaction): Outcome {
    const { frame, reader } = this.lookup;
    const outcome = reader.readBackward(this.inner, frame);
    if (isMiss(outcome)) return outcome;
    if (outcome === END || frame.position < commit.transactionPosition) {
      this.transaction = null;
      return HIT;
    }
    if (this.takeInner(commit) === CUT) return HIT;
    this.inner = frame.position;
    if (frame.position === commit.transactionPosition) this.transaction = null;
    return HIT;
  }
}

/** True when the filter lets an event of this stream and type pass. A regular expression wins over prefixes. */
function passesFilter(filter: AllFilter, stream: string, type: string): boolean {
  if (filter.excludeSystemEvents === true && type.startsWith('$')) return false;
  const text = filter.on === 'stream' ? stream : type;
  if (filter.regex !== undefined) return filter.regex.test(text);
  if (filter.prefixes === undefined) return true;
  for (const prefix of filter.prefixes) if (text.startsWith(prefix)) return true;
  return false;
}
