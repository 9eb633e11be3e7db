import { equalBytes } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { guidFromText, guidToText } from '../../base/guid.ts';
import { HIT, untilHit } from '../../base/step.ts';
import type { LogReader } from '../../log/api.ts';
import { isRedactable } from '../../log/format/redaction.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf } from '../../log/format/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Storage } from '../../ports/storage.ts';
import { ANY, type MarkColumns, type RedactionView } from '../../streams/api.ts';
import { MARKS_STREAM, type Mark } from '../../streams/format/marks.ts';
import { MARKS_FILE, readMarksTable } from '../../streams/format/marks-table.ts';
import { markEvent } from '../../streams/redact/redact.ts';
import { ALL_MARKS, namesIn } from '../../streams/format/mark-columns.ts';
import { Redactions } from '../../streams/redactions/redactions.ts';
import type { EventStoreInternals } from '../../streams/streams.ts';

/**
 * What a restore leaves beside the log: marks of redaction that newer backups have, and the restored log has not. They
 * count from the opening on, and the first one that writes appends them (core/store/README.md).
 */

const ID_BYTES = 16;
/** Marks that are appended by one request, which has to fit into a chunk. */
const MARKS_AT_ONCE = 64;
/** Marks after which others have their turn. */
const PAUSE_MARKS = 1_024;
const RESTORED_BY = 'restore';
const RESTORED_REASON = 'It was redacted in a newer backup, or in the file of redactions that the restore was given.';

/** A mark of an event that is there. */
export type RestoredMark = Omit<Mark, 'by' | 'reason'>;

interface FindRestoredParts {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly clock: Pick<Clock, 'yield'>;
  readonly reader: LogReader;
  /** The marks that the log has. */
  readonly known: RedactionView;
}

/**
 * Those of the table for which the log has an event, with this id at this position, and no mark; ascending. Null where
 * there is no table. Throws `log_corrupt` and `format_too_new` for one that can't be read.
 */
export async function findRestored(parts: FindRestoredParts): Promise<readonly RestoredMark[] | null> {
  const { storage, digests, reader, known, clock } = parts;
  const table = await readMarksTable(storage, MARKS_FILE, digests);
  if (table === null) return null;
  const wanted = Redactions.of(table).columns(...ALL_MARKS);
  const { positions, ids } = wanted;
  const named = namesIn(wanted);
  const found: RestoredMark[] = [];
  const frame = new RecordFrame();
  const fields = new PrepareFields();
  for (const [i, position] of positions.entries()) {
    if ((i + 1) % PAUSE_MARKS === 0) await clock.yield();
    // One record begins there.
    if (found.at(-1)?.position === position) continue;
    const id = guidToText(ids, i * ID_BYTES);
    const names = named.get(i) ?? [];
    if (isInLog(known, { position, id, keys: names }) || !(await hasRecord(reader, position, frame))) continue;
    parsePrepare(frame, fields);
    if (equalBytes(frame.bytes, fields.eventIdAt, ids, i * ID_BYTES, ID_BYTES) && isRedactable(frame, fields))
      found.push({ stream: streamOf(frame, fields), number: fields.eventNumber, id, position, keys: names });
  }
  return found;
}

/** Whether the log has the mark, with all that it names: one that waits only hides its event. */
export function isInLog(
  known: RedactionView,
  { position, id, keys }: Pick<RestoredMark, 'position' | 'id' | 'keys'>,
): boolean {
  if (!known.has(position, id)) return false;
  const there = known.columns(position, position + 1, Number.MAX_SAFE_INTEGER);
  const index = [...there.positions.keys()].find((i) => guidToText(there.ids, i * ID_BYTES) === id);
  if (index === undefined) return false;
  const has = namesIn(there).get(index) ?? [];
  return keys.every((name) => has.includes(name));
}

/** In a log with another history none may begin there. */
async function hasRecord(reader: LogReader, position: number, frame: RecordFrame): Promise<boolean> {
  try {
    return (await untilHit(() => reader.readAt(position, frame, 'sparse'))) === HIT && frame.type === PREPARE;
  } catch (error) {
    if (isSkuaError(error, 'log_corrupt')) return false;
    throw error;
  }
}

/** For a table, in which a mark that is in no log counts from its beginning. */
export function restoredColumns(marks: readonly RestoredMark[]): MarkColumns {
  const ids = new Uint8Array(marks.length * ID_BYTES);
  for (const [i, { id }] of marks.entries()) guidFromText(id, ids, i * ID_BYTES);
  return {
    positions: Float64Array.from(marks, ({ position }) => position),
    markedAt: new Float64Array(marks.length),
    ids,
    keys: marks.flatMap(({ keys }, i) => keys.map((name) => [i, name, 0] as const)),
  };
}

/** The marks of the log, and those that wait beside it. */
export function allMarks(known: RedactionView, restored: MarkColumns): MarkColumns {
  const ofLog = known.columns(...ALL_MARKS);
  if (restored.positions.length === 0) return ofLog;
  const marks = Redactions.of(ofLog);
  marks.addAll(restored);
  return marks.columns(...ALL_MARKS);
}

/** Hides the events before the first read; scavenges leave them alone until the marks are in the log. */
export function hideRestored(store: EventStoreInternals, restored: MarkColumns): void {
  store.addMarks({
    ...restored,
    markedAt: restored.markedAt.map(() => -1),
    keys: restored.keys.map(([i, name]) => [i, name, -1]),
  });
}

/**
 * Writes the marks to the log, where the next opening finds them, and only then removes the table. What others have
 * written meanwhile is not written again. False where some are on their way into this log, and the table stays.
 */
export async function appendRestored(
  store: Pick<EventStoreInternals, 'appendInternal' | 'redactions'>,
  { storage, ids }: { readonly storage: Storage; readonly ids: Ids },
  marks: readonly RestoredMark[],
): Promise<boolean> {
  for (let at = 0; at < marks.length; at += MARKS_AT_ONCE) {
    const events = marks
      .slice(at, at + MARKS_AT_ONCE)
      .filter((mark) => !isInLog(store.redactions, mark))
      .map((mark) => markEvent(ids, { ...mark, by: RESTORED_BY, reason: RESTORED_REASON }));
    if (events.length > 0) await store.appendInternal(MARKS_STREAM, ANY, events);
  }
  const isDone = marks.every((mark) => isInLog(store.redactions, mark));
  if (isDone) await storage.remove(MARKS_FILE);
  return isDone;
}
