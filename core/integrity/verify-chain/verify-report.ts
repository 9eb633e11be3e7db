import type { SkuaError } from '../../base/errors.ts';

/** What the verifier reports. */

/** What is wrong. */
export interface ProofFinding {
  readonly kind: 'finding';
  readonly code:
    /** A record is there with other content. */
    | 'changed'
    /** A record is gone, and no receipt lists it. */
    | 'removed'
    /** A record is there that was not, or that a scavenge removed. */
    | 'added'
    /** A record lies where records of its position do not. */
    | 'moved'
    /** A file can't be read as records any further. */
    | 'unreadable'
    /** Receipts that no anchor covers list records as removed or changed; only where such receipts are not let pass. */
    | 'uncovered'
    /** The hash over all records below the position differs from that of the anchor. */
    | 'chain'
    /** The receipts are not those that the anchor covers. */
    | 'receipts'
    /** The log ends before the anchor. */
    | 'cut';
  readonly file: string | null;
  /** In the log. */
  readonly position: number | null;
  readonly message: string;
  /** Records of which one or more were changed, where more can't be told. The likely ones come first; not all. */
  readonly records?: readonly Suspect[];
  /** How many these are with those that `records` leaves out. */
  readonly recordsTotal?: number;
  /** How many of `records` are likely: their bytes alone explain the difference, or they can't be read. */
  readonly likely?: number;
}

/** A record that may have been changed, as it lies in the file now. */
export interface Suspect {
  readonly position: number;
  /** Null for a record that is of no stream, or can't be read. */
  readonly stream: string | null;
  /** Null for what has no event number of its own. */
  readonly number: number | null;
  readonly isReadable: boolean;
}

/** What is no harm to any record, but to be known. */
export interface ProofNote {
  readonly kind: 'note';
  readonly file: string | null;
  readonly message: string;
}

export interface ProofProgress {
  readonly kind: 'progress';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

export type ChainReport = ProofFinding | ProofNote | ProofProgress;

export function finding(
  code: ProofFinding['code'],
  file: string | null,
  position: number | null,
  message: string,
): ProofFinding {
  return { kind: 'finding', code, file, position, message };
}

export function unreadable(name: string, error: SkuaError): ProofFinding {
  return finding('unreadable', name, null, `${name} can't be read: ${error.message}`);
}
