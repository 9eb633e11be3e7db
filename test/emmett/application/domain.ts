import { IllegalStateError } from 'emmett-current';
import type { Command, Decider, Event } from 'emmett-current';

/** The copies of a library's books: who has one, and who waits for it. Nothing here knows where events are kept. */

export type CopyEvent =
  | Event<'CopyAcquired', { readonly title: string }>
  | Event<'CopyLent', { readonly reader: string; readonly due: string }>
  | Event<'CopyReserved', { readonly reader: string }>
  | Event<'CopyReturned', { readonly reader: string; readonly isLate: boolean }>;

export type CopyCommand =
  | Command<'AcquireCopy', { readonly title: string }>
  | Command<'LendCopy', { readonly reader: string; readonly due: string }>
  | Command<'ReserveCopy', { readonly reader: string }>
  | Command<'ReturnCopy', { readonly on: string }>;

export interface Copy {
  /** Null until it was acquired. */
  readonly title: string | null;
  readonly loan: { readonly reader: string; readonly due: string } | null;
  /** Readers who wait, the next one first. */
  readonly waiting: readonly string[];
  readonly loans: number;
}

export function initialState(): Copy {
  return { title: null, loan: null, waiting: [], loans: 0 };
}

export function evolve(copy: Copy, { type, data }: CopyEvent): Copy {
  switch (type) {
    case 'CopyAcquired':
      return { ...copy, title: data.title };
    case 'CopyLent':
      return {
        ...copy,
        loan: data,
        waiting: copy.waiting.filter((reader) => reader !== data.reader),
        loans: copy.loans + 1,
      };
    case 'CopyReserved':
      return { ...copy, waiting: [...copy.waiting, data.reader] };
    case 'CopyReturned':
      return { ...copy, loan: null };
  }
}

export function decide({ type, data }: CopyCommand, { title, loan, waiting }: Copy): CopyEvent | CopyEvent[] {
  if (type === 'AcquireCopy') {
    if (title !== null) throw new IllegalStateError(`This copy is there already: ${title}.`);
    return { type: 'CopyAcquired', data };
  }
  if (title === null) throw new IllegalStateError('There is no such copy.');
  switch (type) {
    case 'LendCopy':
      if (loan !== null) throw new IllegalStateError(`${loan.reader} has it until ${loan.due}.`);
      if (waiting.length > 0 && waiting[0] !== data.reader) throw new IllegalStateError(`${waiting[0]} is next.`);
      return { type: 'CopyLent', data };
    case 'ReserveCopy':
      // Whoever asks twice waits once.
      return loan?.reader === data.reader || waiting.includes(data.reader) ? [] : { type: 'CopyReserved', data };
    case 'ReturnCopy':
      if (loan === null) throw new IllegalStateError('Nobody has it.');
      return { type: 'CopyReturned', data: { reader: loan.reader, isLate: data.on > loan.due } };
  }
}

export const decider: Decider<Copy, CopyCommand, CopyEvent> = { decide, evolve, initialState };
