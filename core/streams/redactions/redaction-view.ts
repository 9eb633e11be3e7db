import type { Clock } from '../../ports/clock.ts';
import type { MarkColumns, MarkRange } from '../format/mark-columns.ts';

/** What of an event decides whether a mark is for it, and what a mark hides. */
export interface ReadEvent<E> {
  readonly stream: string;
  readonly number: number;
  readonly id: string;
  readonly metadata: Uint8Array;
  readonly position: number;
  readonly preparePosition: number;
  readonly link: E | null;
}

/** What others may know of the marks. */
export interface RedactionView {
  /** Events that have marks, however many each. */
  readonly count: number;
  /**
   * Grows with whatever is hidden, and depends on nothing else: an answer that was made at another number may show what
   * is hidden now.
   */
  readonly version: number;
  /** Whether the event at this position of the log, with this id (UUID text), has a mark. */
  has(position: number, id: string): boolean;
  /**
   * An event that was read earlier as it reads now: what was marked since is hidden. What holds events for as long as
   * its reader likes passes them through this as it lets them go.
   */
  shown<E extends ReadEvent<E>>(event: E): E;
  /** The marks of records from `from` to before `to` that themselves lie before `before`, for a job. */
  columns(...range: MarkRange): MarkColumns;
  /** The same, where there may be a million: others have their turns meanwhile. */
  columnsInTurns(range: MarkRange, clock: Pick<Clock, 'yield'>): Promise<MarkColumns>;
}
