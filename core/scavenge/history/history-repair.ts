import { isSkuaError } from '../../base/errors.ts';
import {
  backwards,
  COMPLETED_TYPE,
  HISTORY_STREAM,
  historyStreamOf,
  type HistoryWriter,
  membersOf,
  STARTED_TYPE,
  sumsOf,
  writeEnd,
} from './history.ts';

/** Repairs the history after a start of the node. */

/** Runs of this node that are looked at. */
const IDS_MAX = 1_000;
/** Of them, those whose streams get the metadata that are configured now. */
const METADATA_IDS_MAX = 30;
const INDEX_PAGE_EVENTS = 20;
const RESTARTED_TEXT = 'The node was restarted.';

/**
 * Completes the runs that a stop of the node cut off, and brings the metadata of the history up to the configuration.
 * `own` are the runs of this process, which are not touched; `signal` ends it early. What can't be read or written is
 * logged; nothing rejects.
 */
export async function repairHistory(
  writer: HistoryWriter,
  own: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await writer.ready();
    const seen = await collectRuns(writer, own, signal);
    for (const id of [...seen.ids].slice(0, METADATA_IDS_MAX))
      if (!signal.aborted) await writer.ensureMetadata(historyStreamOf(id));
    for (const id of seen.incomplete) if (!signal.aborted) await completeRun(writer, id, signal);
  } catch (error) {
    if (!signal.aborted && !isSkuaError(error, 'store_closed'))
      writer.parts.log.error('SCAVENGING: the history of earlier scavenges could not be completed.', { error });
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
  if (!signal.aborted)
    await writeEnd(writer, id, sums, { result: 'Interrupted', error: RESTARTED_TEXT, elapsedMs: sums.elapsedMs });
}
