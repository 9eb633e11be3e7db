import type { AllPosition, StoredEvent } from '../streams/api.ts';

/**
 * Places in the source of a group. In a stream `commit` is the number of the event and `prepare` 0, in `$all` they are
 * the positions of the event; of a link, where one was resolved. Kept as text: `5`, `C:13147/P:13147`; `C:13147/P:0`
 * lies before whatever begins there.
 */
export type Position = AllPosition;

/** Before the first event of any source. */
export const BEFORE_ALL: Position = { commit: -1, prepare: -1 };

export function isAfter(commit: number, prepare: number, than: Position): boolean {
  return commit > than.commit || (commit === than.commit && prepare > than.prepare);
}

export function positionOf(event: StoredEvent, isAll: boolean): Position {
  const source = event.link ?? event;
  return isAll ? { commit: source.position, prepare: source.preparePosition } : { commit: source.number, prepare: 0 };
}

export function positionText({ commit, prepare }: Position, isAll: boolean): string {
  return isAll ? `C:${commit}/P:${prepare}` : String(commit);
}

const ALL_TEXT = /^C:(-?\d{1,16})\/P:(-?\d{1,16})$/;
const NUMBER_TEXT = /^-?\d{1,16}$/;

/** Null when the text is no such position. */
export function parsePosition(text: string, isAll: boolean): Position | null {
  const found = isAll ? ALL_TEXT.exec(text) : NUMBER_TEXT.exec(text);
  if (found === null) return null;
  const position = isAll
    ? { commit: Number(found[1]), prepare: Number(found[2]) }
    : { commit: Number(found[0]), prepare: 0 };
  return Number.isSafeInteger(position.commit) &&
    Number.isSafeInteger(position.prepare) &&
    position.commit >= -1 &&
    position.prepare >= -1
    ? position
    : null;
}

/** The start of a group as it is kept. */
export function startText(from: 'start' | 'end' | number | Position, isAll: boolean): string {
  if (from === 'start') return isAll ? 'C:0/P:0' : '0';
  if (from === 'end') return isAll ? 'C:-1/P:-1' : '-1';
  return typeof from === 'number' ? String(from) : positionText(from, isAll);
}

/** Whether a kept start means what is written from then on. */
export function isEndText(text: string): boolean {
  return text === '-1' || text === 'C:-1/P:-1';
}
