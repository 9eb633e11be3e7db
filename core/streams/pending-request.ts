import type { AppendResult, NewEvent } from './api.ts';

/** What all requests to write have: a place in the queue and, once decided, an outcome. */
export abstract class PendingRequest {
  /** The stream whose state decides; a metastream's is part of its original's. */
  readonly owner: string;
  /** Bytes of its framed records, as far as they are known; of a request without events, the room that it takes in the queue. */
  readonly bytes: number;
  /** The chunk must end behind this write. */
  readonly endsChunk: boolean;
  error: unknown = null;
  first = -1;
  last = -1;
  position = -1;
  isRepeat = false;
  /** The state by which it is decided is one of after its arrival, whoever else writes to the log. */
  isConfirmed = false;
  resolve!: (result: AppendResult) => void;
  reject!: (error: unknown) => void;

  constructor(owner: string, bytes: number, endsChunk: boolean) {
    this.owner = owner;
    this.bytes = bytes;
    this.endsChunk = endsChunk;
  }

  /** Forgets what was decided: it is to be decided anew. */
  reset(): void {
    this.error = null;
    this.first = -1;
    this.last = -1;
    this.position = -1;
    this.isRepeat = false;
  }

  /** Answers the caller. */
  settle(): void {
    if (this.error !== null) this.reject(this.error);
    else this.resolve({ firstEventNumber: this.first, lastEventNumber: this.last, position: this.position, isRepeat: this.isRepeat });
  }
}

/** What is known of the events of a request. */
export interface CheckedEvents {
  readonly events: readonly NewEvent[];
  /** On-disk ids of the events, 16 bytes each, from `idsAt` on. */
  readonly ids: Uint8Array;
  readonly idsAt: number;
  /** Framed bytes of the records, without what a returning stream adds. */
  readonly bytes: number;
}
