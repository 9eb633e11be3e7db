import { equalBytes } from '../base/bytes.ts';
import { HIT, isMiss, type Miss, type Outcome } from '../base/step.ts';
import { EPOCH_STREAM } from '../log/format/epochs.ts';
import {
  type CommitRecord,
  FLAG_STREAM_DELETE,
  FLAG_TRANSACTION_END,
  parsePrepare,
  PREPARE,
  streamOf,
  TOMBSTONE,
} from '../log/format/records.ts';
import { encodeText, internText } from '../base/text.ts';
import type { ReadFor } from '../log/api.ts';
import type { AllPosition, StoredEvent } from './api.ts';
import type { Candidates } from './candidates.ts';
import type { CheckpointCount } from './checkpoint-count.ts';
import { type EventJudge, WANTED } from './event-judge.ts';
import type { Lookup } from './lookup/lookup.ts';
import type { PageBytes } from '../base/page-bytes.ts';
import { PAUSE, pageEvent } from './page-scan.ts';
import { isEmptied } from '../log/format/redaction.ts';

const EPOCH_STREAM_BYTES = encodeText(EPOCH_STREAM);

/** Steps of an expression after which others get their turn: at most 25 ms, and mostly much less. */
const MATCHING_STEPS_PER_SLICE = 262_144;

/** An explicit transaction whose events are being delivered at its commit record. */
export interface OpenTransaction {
  readonly commit: CommitRecord;
  /** Position after the commit record. */
  readonly next: number;
}

/** What a page of `$all` is to hold. */
export interface AllScanPage {
  readonly count: number;
  /** Null: all events are wanted. */
  readonly judge: EventJudge | null;
  /** Where those that a query asks for can lie; null where nothing is known of that. */
  readonly candidates: Candidates | null;
  readonly bytes: PageBytes;
  /** Called with each event that is looked at. */
  readonly checkpoints?: CheckpointCount | undefined;
}

/** What became of a record, or was to be done first. CUT: the page ends before it. */
export const TAKEN = 0;
export const TAKEN_LAST = 1;
export const CUT = 3;
type Taken = typeof TAKEN | typeof CUT | Miss;

/** A candidate further away than this is read alone: copying the block in which it lies costs more. */
const SPARSE_BYTES = 16_384;
/** A record read alone takes as much of a slice as this many others. */
const SPARSE_COST = 4;
/** Candidates that are loaded at once when one had to be waited for. */
const PREFETCHED_RECORDS = 16;
/** Those that lie no further apart are loaded as one run where reads are requests. */
const RUN_GAP_BYTES = 131_072;

/** What the two directions have in common: forward-scan.ts and backward-scan.ts. */
export abstract class AllScan {
  readonly events: StoredEvent[] = [];
  /** Log records looked at, and entries of attribute indexes. */
  examined = 0;
  protected readonly lookup: Lookup;
  protected transaction: OpenTransaction | null = null;
  /** Where the next record of the log is read: at or after it forward, before it backward. */
  protected position: number;
  /** The same within the transaction. */
  protected inner = 0;
  /** The transaction has been found, and nothing of it was looked at. */
  protected isOpening = false;
  /** What the next record is read for. */
  protected readFor: ReadFor = 'run';
  protected readonly candidates: Candidates | null;
  readonly #count: number;
  readonly #judge: EventJudge | null;
  readonly #bytes: PageBytes;
  readonly #checkpoints: CheckpointCount | undefined;
  readonly #start: number;
  /** Bytes of the log that no record was looked for in. */
  #jumped = 0;
  /** The one that is looked at; it may be asked for again. */
  #candidate = -1;
  /** The last step has to be taken again. */
  #hasMissed = false;
  /** What a slice has been used for, in records that lie together. */
  #spent = 0;

  constructor(lookup: Lookup, position: number, { count, judge, candidates, bytes, checkpoints }: AllScanPage) {
    this.lookup = lookup;
    this.position = position;
    this.candidates = candidates;
    this.#start = position;
    this.#count = count;
    this.#judge = judge;
    this.#bytes = bytes;
    this.#checkpoints = checkpoints;
  }

  get isFull(): boolean {
    return this.events.length >= this.#count || this.#bytes.isFull || this.#bytes.lacksRoom;
  }
  /** How far the scan has come, in bytes of the log, without what it jumped over. */
  get passedBytes(): number {
    return Math.abs(this.position - this.#start) - this.#jumped;
  }
  /** Steps that the expression of the filter has taken at most. */
  get matchingSteps(): number {
    return this.#judge?.matchingSteps ?? 0;
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
    const stop = this.#spent + slice;
    const stopExamined = this.examined + slice;
    const stopMatching = this.matchingSteps + MATCHING_STEPS_PER_SLICE;
    while (!this.isFull) {
      const isOver =
        this.#spent >= stop ||
        this.examined >= stopExamined ||
        this.matchingSteps >= stopMatching ||
        this.passedBytes > bytesMax;
      // A page that ended before what it has begun to look at would lead on to itself.
      if (isOver && !this.isOpening && !this.#hasMissed) return PAUSE;
      const outcome = this.transaction === null ? this.readRecord() : this.readInner(this.transaction);
      this.#hasMissed = isMiss(outcome);
      this.#spent += this.readFor === 'sparse' ? SPARSE_COST : 1;
      if (outcome !== HIT) return outcome;
      this.examined++;
    }
    return HIT;
  }

  /** Where the record lies that is to be read next, where candidates are known: HIT with `candidates.at`. */
  protected nextCandidate(candidates: Candidates, from: number, isForward: boolean): Outcome {
    const before = candidates.examined;
    const outcome = candidates.find(from, isForward);
    this.examined += candidates.examined - before;
    if (outcome === HIT && candidates.at !== this.#candidate) {
      this.readFor = Math.abs(candidates.at - from) > SPARSE_BYTES ? 'sparse' : 'run';
      this.#candidate = candidates.at;
    }
    return outcome;
  }

  /** No record was looked for in so many bytes. */
  protected jump(bytes: number): void {
    this.#jumped += bytes;
  }

  /** A read that had to wait for a candidate should not wait for each of the next ones in turn. */
  protected prefetch(candidates: Candidates, isForward: boolean): void {
    const { reader } = this.lookup;
    // Most candidates are events of the page, so that it will want no more.
    const wanted = Math.min(PREFETCHED_RECORDS, this.#count - this.events.length - 1);
    const ahead = candidates.ahead(candidates.at, isForward, wanted);
    if (!isForward) ahead.reverse();
    for (let from = 0, i = 1; i <= ahead.length; i++) {
      if (i < ahead.length && ahead[i]! - ahead[i - 1]! <= RUN_GAP_BYTES) continue;
      reader.prefetchRun(ahead[from]!, ahead[i - 1]!);
      from = i;
    }
    for (const position of ahead) reader.prefetch(position);
  }

  /** Where the next page starts. */
  abstract next(): AllPosition;
  /** Reads one record of the log. */
  protected abstract readRecord(): Outcome;
  /** Reads one record on behalf of the transaction. */
  protected abstract readInner(transaction: OpenTransaction): Outcome;

  /** Takes the event of the self-committed prepare in the frame, if it is one. */
  protected takeImplicit(): Taken {
    const { frame, fields } = this.lookup;
    parsePrepare(frame, fields);
    return fields.isCommitted && fields.isEvent ? this.#push(fields.eventNumber, frame.position) : TAKEN;
  }

  /**
   * Takes the prepare in the frame if it is an event of the transaction. TAKEN_LAST when the transaction has no later
   * records.
   */
  protected takeInner(commit: CommitRecord): Taken | typeof TAKEN_LAST {
    const { frame, fields: f } = this.lookup;
    if (frame.type !== PREPARE) return TAKEN;
    parsePrepare(frame, f);
    if (f.transactionPosition !== commit.transactionPosition || f.isCommitted) return TAKEN;
    if (f.isEvent) {
      const number = (f.flags & FLAG_STREAM_DELETE) !== 0 ? TOMBSTONE : commit.firstEventNumber + f.transactionOffset;
      const taken = this.#push(number, commit.position);
      if (taken !== TAKEN) return taken;
    }
    return (f.flags & FLAG_TRANSACTION_END) !== 0 ? TAKEN_LAST : TAKEN;
  }

  #push(number: number, commitPosition: number): Taken {
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
    const judge = this.#judge;
    if (judge !== null) {
      if (!judge.fits(this.lookup, stream, internText(frame.bytes, f.typeAt, f.typeLength)))
        return this.#leaves(commitPosition);
      const verdict = judge.sees(this.lookup, stream, number);
      if (verdict !== WANTED) return isMiss(verdict) ? verdict : this.#leaves(commitPosition);
    }
    if (!this.#bytes.take(f.dataLength + f.metadataLength, f.streamLength)) return CUT;
    judge?.forget();
    this.events.push(pageEvent(this.lookup, stream, number, commitPosition, this.#bytes));
    this.#checkpoints?.saw(commitPosition, frame.position, true, this.events.length);
    return TAKEN;
  }

  #leaves(commitPosition: number): typeof TAKEN {
    this.#judge?.forget();
    this.#checkpoints?.saw(commitPosition, this.lookup.frame.position, false, this.events.length);
    return TAKEN;
  }
}
