import type { DcbQuery } from './dcb.ts';

/** Documents of POST `/streams`, which writes events as they are, to one stream or several: types alone. */

/** An event to be written; of `data` and `dataBase64` one at most, and so of the metadata. */
export interface WholeNewEvent {
  readonly type: string;
  /** Left out: a new one, and then the same request is written again where it is repeated. */
  readonly id?: string;
  /** Any JSON value; it is kept as its text. */
  readonly data?: unknown;
  /** Bytes that are no JSON. */
  readonly dataBase64?: string;
  readonly metadata?: unknown;
  readonly metadataBase64?: string;
}

export interface StreamAppendBody {
  readonly stream: string;
  /** Default `any`. */
  readonly expected?: 'any' | 'none' | 'exists' | number;
  readonly events: readonly WholeNewEvent[];
}

export interface AppendsBody {
  readonly appends: readonly StreamAppendBody[];
  readonly condition?: { readonly failIfEventsMatch: DcbQuery; readonly after?: number };
}

export interface AppendedStream {
  readonly stream: string;
  /** Number of its last event that was written. */
  readonly version: number;
  /** Of that event. */
  readonly position: number;
}

/** What POST `/streams` answers. */
export interface AppendedDocument {
  readonly streams: readonly AppendedStream[];
  /** Of the last event of all. */
  readonly position: number;
  /** All of it had been written before, with the same ids. */
  readonly isRepeat: boolean;
}

/** What GET `/streams/{stream}/info` answers. */
export interface StreamInfoDocument {
  readonly stream: string;
  readonly state: 'none' | 'live' | 'deleted' | 'tombstoned';
  /** Number of its last event; null for one that has none, or is tombstoned. */
  readonly version: number | null;
}
