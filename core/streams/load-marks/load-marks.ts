import { SkuaError } from '../../base/errors.ts';
import { HIT, untilHit } from '../../base/step.ts';
import type { Clock } from '../../ports/clock.ts';
import { TOMBSTONE } from '../../log/format/records.ts';
import type { NewEvent } from '../api.ts';
import { type CommittedMark, committedMark } from '../committed/committed.ts';
import { decodeMark, MARK_TYPE, MARKS_STREAM } from '../format/marks.ts';
import { isMetastream, originalOf } from '../format/names.ts';
import { shownData } from '../format/retention.ts';
import { CeilingSearch, FloorSearch, type Lookup, runSearch, StreamKey } from '../lookup/lookup.ts';
import { MARKS_MAX, type Redactions } from '../redactions/redactions.ts';

/** Marks after which others have their turn. */
const PAUSE_MARKS = 1_024;

/**
 * Adds the marks of the log to `into`, those behind the ones that an earlier call has read. Neither metadata of the
 * stream nor a tombstone hide any: the store writes none, and what another program wrote must not show what was
 * redacted.
 */
export async function loadMarks(lookup: Lookup, into: Redactions, clock: Pick<Clock, 'yield'>): Promise<void> {
  const key = new StreamKey(MARKS_STREAM, lookup.index.hasher);
  const last = new FloorSearch(key, TOMBSTONE - 1);
  if ((await runSearch(last, lookup)) !== HIT) return;
  const { version } = last.entry;
  while (into.loadedTo <= version) {
    const next = new CeilingSearch(key, into.loadedTo, version);
    const read: { mark: CommittedMark | null } = { mark: null };
    const outcome = await untilHit(() => {
      const step = next.step(lookup);
      // The frame is valid only until another step is taken.
      if (step === HIT) read.mark = committedMark(shownData(lookup.frame, lookup.fields), lookup.frame.position);
      return step;
    });
    if (outcome !== HIT) return;
    if (read.mark !== null) into.add(read.mark.mark, read.mark.position);
    into.loadedTo = next.entry.version + 1;
    if (into.loadedTo % PAUSE_MARKS !== 0) continue;
    into.putInOrder();
    await clock.yield();
  }
}

/**
 * Why events must not be appended where marks are, or where metadata would say how long they stay; null for nothing.
 * Errors: `invalid_mark`, `access_denied`.
 */
export function checkMarks(stream: string, events: readonly NewEvent[]): SkuaError | null {
  if (stream !== MARKS_STREAM)
    return isMetastream(stream) && originalOf(stream) === MARKS_STREAM ? marksStay(stream) : null;
  for (const { type, isJson, data } of events)
    if (type !== MARK_TYPE || !isJson || decodeMark(data) === null)
      return new SkuaError(
        'invalid_mark',
        `Only marks of redaction are appended to ${MARKS_STREAM}: use POST /admin/redact, or skua redact.`,
        { stream },
      );
  return null;
}

/**
 * `redactions_full` where the stream of marks ends at `last`, with what its writers before this one write, and has no
 * room for `more`; null for all other streams.
 */
export function checkRoomForMarks(stream: string, last: number, more: number): SkuaError | null {
  const count = last + 1;
  if (stream !== MARKS_STREAM || count + more <= MARKS_MAX) return null;
  return new SkuaError(
    'redactions_full',
    `There are ${count} redactions, and there can be at most ${MARKS_MAX}, since each is remembered for ever: delete streams, or truncate them, where whole ranges are to go.`,
    { count, limit: MARKS_MAX },
  );
}

/** What is redacted stays so: nothing removes a mark. */
export function marksStay(stream: string): SkuaError {
  return new SkuaError(
    'access_denied',
    `${MARKS_STREAM} holds what was redacted, and is neither deleted nor truncated: leave ${stream} as it is.`,
    { stream },
  );
}
