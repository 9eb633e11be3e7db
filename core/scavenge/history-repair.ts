import { isSkuaError } from '../base/errors.ts';
import type { StoredEvent } from '../streams/api.ts';
import { decodeText } from '../base/text.ts';
import { parseTimeSpan } from '../base/time.ts';
import { CHUNK_TYPE, COMPLETED_TYPE, completedMembers, HISTORY_STREAM, historyStreamOf, type HistoryWriter, MERGE_TYPE, type RunTotals, STARTED_TYPE, TABLE_TYPE } from './history.ts';

/** Repairs the history after a start of the node. */

/** Runs of this node that are looked at. */
const IDS_MAX = 1_000;
/** Of them, those whose streams get the metadata that are configured now. */
const METADATA_IDS_MAX = 30;
const INDEX_PAGE_EVENTS = 20;
const RUN_PAGE_EVENTS = 50;
const RESTARTED_TEXT = 'The node was restarted.';

type Members = Readonly<Record<string, unknown>>;

/**
 * Completes the runs that a stop of the node cut off, and brings the metadata of the history up to the configuration.
 * `own` are the runs of this process, which are not touched; `signal` ends it early. What can't be read or written is
 * logged; nothing rejects.
 */
export async function repairHistory(writer: HistoryWriter, own: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
  try {
    await writer.ready();
    const seen = await collectRuns(writer, own, signal);
    for (const id of [...seen.ids].slice(0, METADATA_IDS_MAX)) if (!signal.aborted) await writer.ensureMetadata(historyStreamOf(id));
    for (const id of seen.incomplete) if (!signal.aborted) await completeRun(writer, id, signal);
  } catch (error) {
    if (!signal.aborted && !isSkuaError(error, 'store_closed')) writer.parts.log.error('SCAVENGING: the history of earlier scavenges could not be completed.', { error });
  }
}

interface Runs {
  /** All ids, newest first. */
  readonly ids: ReadonlySet<string>;
  /** Those that were started and not completed. */
  readonly incomplete: readonly string[];
}

/** Reads the links backwards, so that a run's end is met before its beginning. */
async function collectRuns(writer: HistoryWriter, own: ReadonlySet<string>, signal: AbortSignal): Promise<Runs> {
  const ids = new Set<string>();
  const completed = new Set<string>();
  const incomplete: string[] = [];
  for await (const event of backwards(writer, HISTORY_STREAM, INDEX_PAGE_EVENTS, signal)) {
    const members = membersOf(event);
    if (members === null || members['nodeEndpoint'] !== writer.parts.nodeEndpoint) continue;
    const id = members['scavengeId'];
    if (typeof id !== 'string' || own.has(id)) continue;
    ids.add(id);
    if (event.type === COMPLETED_TYPE) completed.add(id);
    else if (event.type === STARTED_TYPE && !completed.has(id) && !incomplete.includes(id)) incomplete.push(id);
    if (ids.size >= IDS_MAX) break;
  }
  return { ids, incomplete };
}

async function completeRun(writer: HistoryWriter, id: string, signal: AbortSignal): Promise<void> {
  const sums = await sumsOf(writer, id, signal);
  if (!signal.aborted) await tellEnd(writer, id, sums, { result: 'Interrupted', error: RESTARTED_TEXT, elapsedMs: sums.elapsedMs });
}

/** Writes the end of a run that is not in its history yet, and the link to it. */
export async function tellEnd(writer: HistoryWriter, id: string, sums: RunSums, end: Pick<RunTotals, 'result' | 'error' | 'elapsedMs' | 'tracesUntilMs'>): Promise<void> {
  // Its link may have been lost: nothing is missing but that.
  if (sums.completed !== null) return writer.writeLink(id, sums.completed);
  const { spaceSaved, maxChunk } = sums;
  const number = await writer.writeEvent(historyStreamOf(id), COMPLETED_TYPE, completedMembers(id, writer.parts.nodeEndpoint, { spaceSaved, maxChunk, ...end }));
  if (number !== null) await writer.writeLink(id, number);
}

interface RunSums extends Pick<RunTotals, 'elapsedMs' | 'spaceSaved' | 'maxChunk'> {
  /** Number of the event of its end; null when there is none. */
  readonly completed: number | null;
}

/** What the history of a run adds up to. */
export async function sumsOf(writer: HistoryWriter, id: string, signal: AbortSignal): Promise<RunSums> {
  let elapsedMs = 0;
  let spaceSaved = 0;
  let maxChunk = 0;
  for await (const event of backwards(writer, historyStreamOf(id), RUN_PAGE_EVENTS, signal)) {
    if (event.type === COMPLETED_TYPE) return { elapsedMs, spaceSaved, maxChunk, completed: event.number };
    if (event.type !== CHUNK_TYPE && event.type !== MERGE_TYPE && event.type !== TABLE_TYPE) continue;
    const members = membersOf(event);
    if (members === null) continue;
    elapsedMs += parseTimeSpan(String(members['timeTaken'])) ?? 0;
    spaceSaved += numberOf(members['spaceSaved']);
    if (event.type === CHUNK_TYPE) maxChunk = Math.max(maxChunk, numberOf(members['chunkEndNumber']));
  }
  return { elapsedMs, spaceSaved, maxChunk, completed: null };
}

/** The events of a stream, newest first, links resolved; none where there is no stream. */
async function* backwards(writer: HistoryWriter, stream: string, count: number, signal: AbortSignal): AsyncGenerator<StoredEvent, void, undefined> {
  let from: number | 'end' = 'end';
  while (!signal.aborted) {
    let page;
    try {
      page = await writer.parts.store.readStream(stream, { direction: 'backward', from, count, resolveLinks: true });
    } catch (error) {
      if (isSkuaError(error, 'stream_not_found')) return;
      throw error;
    }
    yield* page.events;
    if (page.isEnd) return;
    from = page.nextEventNumber;
  }
}

function membersOf(event: StoredEvent): Members | null {
  try {
    const value: unknown = JSON.parse(decodeText(event.data));
    return typeof value === 'object' && value !== null ? value as Members : null;
  } catch {
    return null;
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
