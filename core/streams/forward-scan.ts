import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import { COMMIT, type CommitRecord, decodeCommit, PREPARE } from '../log/format/records.ts';
import { AllScan, type AllScanPage, CUT, type OpenTransaction, TAKEN, TAKEN_LAST } from './all-scan.ts';
import type { AllPosition } from './api.ts';
import type { Lookup } from './lookup/lookup.ts';

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
    const { candidates } = this;
    if (candidates !== null) {
      const found = this.nextCandidate(candidates, this.position, true);
      if (isMiss(found)) return found;
      this.#jumpTo(found === HIT ? Math.min(candidates.at, reader.end) : reader.end);
    }
    const outcome = reader.readForward(this.position, frame, this.readFor);
    if (isMiss(outcome) && candidates !== null) this.prefetch(candidates, true);
    // Behind the last record of a completed chunk the log goes on with the next one, where it ends now: a reader that
    // waits behind this page waits for what comes there.
    if (outcome === END) this.position = Math.max(this.position, reader.end);
    if (outcome !== HIT) return outcome;
    const isFirst = frame.position === this.#from.commit;
    if (frame.type === COMMIT) this.#open(decodeCommit(frame), frame.next, isFirst);
    else {
      if (frame.type === PREPARE && !(isFirst && this.#isAfter)) {
        const taken = this.takeImplicit();
        if (taken === CUT) return HIT;
        if (taken !== TAKEN) return taken;
      }
      this.position = frame.next;
      this.#saw(frame.position, frame.position);
    }
    return HIT;
  }

  #jumpTo(position: number): void {
    if (position <= this.position) return;
    this.jump(position - this.position);
    this.position = position;
  }

  #open(commit: CommitRecord, next: number, isFirst: boolean): void {
    this.inner = commit.transactionPosition;
    this.transaction = { commit, next };
    this.isOpening = true;
    if (!isFirst) return;
    const { prepare } = this.#from;
    if (prepare < commit.position) this.inner = Math.max(prepare, this.inner);
    // A position at or behind the commit record is none of an event of this transaction, but one between records.
    else if (this.#isAfter) this.#close(commit, next);
  }

  #close(commit: CommitRecord, next: number): void {
    this.transaction = null;
    this.isOpening = false;
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
    if (isMiss(taken)) return taken;
    this.isOpening = false;
    this.inner = frame.next;
    this.#saw(commit.position, frame.position);
    if (taken === TAKEN_LAST) this.#close(commit, next);
    return HIT;
  }
}
