/** Documents of appends on a condition, in the shape that the test suite of dcb.events speaks: types alone. */

export interface DcbQueryItem {
  readonly types?: readonly string[];
  readonly tags?: readonly string[];
}

/** Without items: all events. */
export interface DcbQuery {
  readonly items?: readonly DcbQueryItem[];
}

export interface DcbNewEvent {
  readonly type: string;
  readonly tags?: readonly string[];
  /** A text is kept as it is; any other value as its JSON. */
  readonly data?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly id?: string;
  /** Default: `dcb`. */
  readonly stream?: string;
}

export interface DcbAppendBody {
  readonly events: DcbNewEvent | readonly DcbNewEvent[];
  readonly condition?: { readonly failIfEventsMatch: DcbQuery; readonly after?: number };
}

/** What POST `/dcb/append` answers, also where the condition fails. */
export interface DcbAppended {
  readonly durationInMicroseconds: number;
  readonly appendConditionFailed: boolean;
  /** Of the last event that was written; absent where the condition failed. */
  readonly position?: number;
  /** It had been written before, with the same ids. */
  readonly isRepeat?: boolean;
  /** Where the condition failed: the oldest event that matches. */
  readonly matched?: { readonly stream: string; readonly number: number; readonly position: number };
}

export interface DcbEvent {
  readonly type: string;
  readonly tags: readonly string[];
  /** The text of the data. */
  readonly data: string;
  readonly position: number;
  readonly stream: string;
  readonly number: number;
  readonly id: string;
  /** Its content was taken away: `data` is empty. It counts nevertheless. */
  readonly isRedacted?: true;
}
