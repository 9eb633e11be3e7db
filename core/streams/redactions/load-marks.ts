import { HIT } from '../../base/step.ts';
import { SkuaError } from '../../base/errors.ts';
import { PageBytes } from '../../base/page-bytes.ts';
import { TOMBSTONE } from '../../log/format/records.ts';
import { type NewEvent, PAGE_EVENTS_MAX } from '../api.ts';
import { decodeMark, MARK_TYPE, MARKS_STREAM } from '../format/marks.ts';
import { isMetastream, originalOf } from '../format/names.ts';
import { KnownStretches } from '../format/retention.ts';
import { FloorSearch, runSearch, StreamKey } from '../lookup/lookup.ts';
import { readPage } from '../read-stream.ts';
import { pageLimits, type StoreContext } from '../store-context.ts';
import { MARKS_MAX } from './redactions.ts';

/**
 * Reads the marks of the log, those behind the ones that an earlier call has read. Neither metadata of the stream nor a
 * tombstone hide any: the store writes none, and what another program wrote must not show what was redacted.
 */
export async function loadMarks(context: StoreContext): Promise<void> {
  const { lookup } = context;
  const key = new StreamKey(MARKS_STREAM, lookup.index.hasher);
  const last = new FloorSearch(key, TOMBSTONE - 1);
  if ((await runSearch(last, lookup)) !== HIT) return;
  const source = { key, lastNumber: last.entry.version, metadata: {}, expired: new KnownStretches() };
  while (lookup.redactions.loadedTo <= source.lastNumber) {
    const bytes = new PageBytes(pageLimits(context, {}));
    const from = lookup.redactions.loadedTo;
    const page = await readPage(context, source, { direction: 'forward', from, count: PAGE_EVENTS_MAX }, bytes);
    for (const { data, preparePosition } of page.events) {
      const mark = decodeMark(data);
      if (mark !== null) lookup.redactions.add(mark, preparePosition);
    }
    bytes.settle();
    lookup.redactions.loadedTo = page.nextEventNumber;
  }
}

/**
 * Why events must not be appended where marks are, or where metadata would say how long they stay; null for nothing.
 * Errors: `invalid_mark`, `redactions_full`, `access_denied`.
 */
export function checkMarks(stream: string, events: readonly NewEvent[], count: number): SkuaError | null {
  if (stream !== MARKS_STREAM)
    return isMetastream(stream) && originalOf(stream) === MARKS_STREAM ? marksStay(stream) : null;
  if (count + events.length > MARKS_MAX)
    return new SkuaError(
      'redactions_full',
      `There are ${count} redactions, and there can be at most ${MARKS_MAX}, since each is remembered for ever: delete streams, or truncate them, where whole ranges are to go.`,
      { count, limit: MARKS_MAX },
    );
  for (const { type, isJson, data } of events)
    if (type !== MARK_TYPE || !isJson || decodeMark(data) === null)
      return new SkuaError(
        'invalid_mark',
        `Only marks of redaction are appended to ${MARKS_STREAM}: use POST /admin/redact, or skua redact.`,
        { stream },
      );
  return null;
}

/** What is redacted stays so: nothing removes a mark. */
export function marksStay(stream: string): SkuaError {
  return new SkuaError(
    'access_denied',
    `${MARKS_STREAM} holds what was redacted, and is neither deleted nor truncated: leave ${stream} as it is.`,
    { stream },
  );
}
