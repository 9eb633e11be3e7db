import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import { COMMIT, type CommitRecord, decodeCommit, PREPARE } from '../log/format/records.ts';
import { AllScan, type AllScanPage, CUT, type OpenTransaction, TAKEN } from './all-scan.ts';
import type { AllPosition } from './api.ts';
import type { Lookup } from './lookup/lookup.ts';

/** As forward-scan.ts, backward: the events of a transaction come at its commit record, last one first. */
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
    return this.transaction === null || this.isOpening
      ? { commit: this.position, prepare: this.position }
      : { commit: this.transaction.commit.position, prepare: this.inner };
  }

  protected readRecord(): Outcome {
    const { frame, reader } = this.lookup;
    if (!this.#isChecked) return this.#check();
    const { candidates, position } = this;
    /** Where a record is known to lie, or to have lain, if there is none between; -1: nothing is known. */
    let at = -1;
    if (candidates !== null) {
      const found = this.nextCandidate(candidates, position - 1, false);
      if (isMiss(found)) return found;
      if (found === END) {
        this.#jumpTo(0);
        return END;
      }
      if (candidates.at < position - 1) at = candidates.at;
    }
    const outcome = at < 0 ? reader.readBackward(position, frame) : reader.readForward(at, frame, this.readFor);
    if (isMiss(outcome) && candidates !== null) this.prefetch(candidates, false);
    if (isMiss(outcome)) return outcome;
    if (at >= 0 && (outcome === END || frame.position !== at)) {
      this.#jumpTo(at);
      return HIT;
    }
    if (outcome === END) return END;
    if (at >= 0) this.#jumpTo(frame.next);
    if (frame.type === COMMIT) {
      this.#open({ commit: decodeCommit(frame), next: frame.next }, frame.position);
      return HIT;
    }
    if (frame.type === PREPARE) {
      const taken = this.takeImplicit();
      if (taken === CUT) return HIT;
      if (taken !== TAKEN) return taken;
    }
    this.position = frame.position;
    return HIT;
  }

  #open(transaction: OpenTransaction, inner: number): void {
    this.transaction = transaction;
    this.isOpening = true;
    this.inner = inner;
  }

  #close({ position }: CommitRecord): void {
    this.transaction = null;
    this.isOpening = false;
    this.position = position;
  }

  #jumpTo(position: number): void {
    this.jump(this.position - position);
    this.position = position;
  }

  /** Finds out whether reading begins within a transaction; else a record is read at once. */
  #check(): Outcome {
    const { frame, reader } = this.lookup;
    const outcome = reader.readAt(this.#from.commit, frame);
    if (isMiss(outcome)) return outcome;
    this.#isChecked = true;
    if (outcome === HIT && frame.type === COMMIT) {
      const commit = decodeCommit(frame);
      if (this.#from.prepare > commit.transactionPosition) {
        this.#open({ commit, next: frame.next }, this.#from.prepare);
      }
    }
    return this.transaction === null ? this.readRecord() : HIT;
  }

  protected readInner({ commit }: OpenTransaction): Outcome {
    const { frame, reader } = this.lookup;
    const outcome = reader.readBackward(this.inner, frame);
    if (isMiss(outcome)) return outcome;
    if (outcome === END || frame.position < commit.transactionPosition) {
      this.#close(commit);
      return HIT;
    }
    const taken = this.takeInner(commit);
    if (taken === CUT) return HIT;
    if (isMiss(taken)) return taken;
    this.isOpening = false;
    this.inner = frame.position;
    if (frame.position === commit.transactionPosition) this.#close(commit);
    return HIT;
  }
}
