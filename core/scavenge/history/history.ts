import { isSkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { TableReport } from '../../index/api.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import { ANY, type StoredEvent, type StreamMetadata } from '../../streams/api.ts';
import type { EventStoreInternals } from '../../streams/streams.ts';
import { formatMetadata } from '../../streams/format/metadata.ts';
import { LINK_TYPE, METADATA_TYPE, metastreamOf } from '../../streams/format/names.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { parseTimeSpan, timeSpanText, timestampText } from '../../base/time.ts';
import type { ScavengeResult } from '../api.ts';

/** Links to the first and last event of every run. */
export const HISTORY_STREAM = '$scavenges';
export const STARTED_TYPE = '$scavengeStarted';
export const CHUNK_TYPE = '$scavengeChunksCompleted';
export const MERGE_TYPE = '$scavengeMergeCompleted';
export const TABLE_TYPE = '$scavengeIndexCompleted';
export const COMPLETED_TYPE = '$scavengeCompleted';
/** On object storage, after its time: nothing is left of what the run removed. */
export const TRACES_TYPE = '$scavengeTracesRemoved';

/** The stream of one run's events. */
export function historyStreamOf(scavengeId: string): string {
  return `${HISTORY_STREAM}-${scavengeId}`;
}

/** Events of one run that may wait to be written; more are dropped with an error in the log. */
const PENDING_MAX = 10_000;

interface MergeReport {
  readonly startNumber: number;
  readonly endNumber: number;
  readonly elapsedMs: number;
  readonly spaceSaved: number;
  /** Null when the chunks were merged, else why not. */
  readonly error: string | null;
}

/**
 * The events of one run. They are written one after the other in the background: the run never waits, and a loss does
 * not fail it.
 */
export class RunHistory {
  readonly #writer: HistoryWriter;
  readonly #scavengeId: string;
  readonly #stream: string;
  #pending: (() => Promise<void>)[] = [];
  #running: Promise<void> | null = null;
  /** Bytes saved by chunks, merges and tables so far; negative when files grew. */
  spaceSaved = 0;
  #maxChunk = 0;
  #isStarted = false;

  constructor(writer: HistoryWriter, scavengeId: string) {
    this.#writer = writer;
    this.#scavengeId = scavengeId;
    this.#stream = historyStreamOf(scavengeId);
  }

  started(): void {
    const { nodeEndpoint } = this.#writer.parts;
    this.#isStarted = true;
    this.#later(async () => {
      await this.#writer.ready();
      await this.#writer.ensureMetadata(this.#stream);
      await this.#writeLinked(STARTED_TYPE, { scavengeId: this.#scavengeId, nodeEndpoint });
    });
  }

  chunkExecuted(startNumber: number, endNumber: number, elapsedMs: number, spaceSaved: number): void {
    this.spaceSaved += spaceSaved;
    this.#maxChunk = Math.max(this.#maxChunk, endNumber);
    this.#write(CHUNK_TYPE, {
      scavengeId: this.#scavengeId,
      chunkStartNumber: startNumber,
      chunkEndNumber: endNumber,
      timeTaken: timeSpanText(elapsedMs),
      wasScavenged: true,
      spaceSaved,
      nodeEndpoint: this.#writer.parts.nodeEndpoint,
      errorMessage: '',
    });
  }

  merged(report: MergeReport): void {
    this.spaceSaved += report.spaceSaved;
    this.#write(MERGE_TYPE, {
      scavengeId: this.#scavengeId,
      chunkStartNumber: report.startNumber,
      chunkEndNumber: report.endNumber,
      timeTaken: timeSpanText(report.elapsedMs),
      spaceSaved: report.spaceSaved,
      wasMerged: report.error === null,
      nodeEndpoint: this.#writer.parts.nodeEndpoint,
      errorMessage: report.error ?? '',
    });
  }

  /** `attributeIndex`: whose table it is; null for the stream index. */
  tableDone(report: TableReport, attributeIndex: string | null): void {
    this.spaceSaved += report.spaceSaved;
    this.#write(TABLE_TYPE, {
      scavengeId: this.#scavengeId,
      ...(attributeIndex !== null && { attributeIndex }),
      level: report.level,
      index: report.index,
      timeTaken: timeSpanText(report.elapsedMs),
      entriesDeleted: report.entriesDeleted,
      entriesKept: report.entriesKept,
      spaceSaved: report.spaceSaved,
      wasScavenged: report.wasScavenged,
      nodeEndpoint: this.#writer.parts.nodeEndpoint,
      errorMessage: report.error,
    });
  }

  completed(result: ScavengeResult, error: string | null, elapsedMs: number): void {
    // A run can fail before it has begun, as with a damaged scavenge database. Its stream gets its metadata
    // nevertheless.
    if (!this.#isStarted) this.started();
    const members = completedMembers(this.#scavengeId, this.#writer.parts.nodeEndpoint, {
      result,
      error,
      elapsedMs,
      spaceSaved: this.spaceSaved,
      maxChunk: this.#maxChunk,
    });
    this.#later(() => this.#writeLinked(COMPLETED_TYPE, members));
  }

  /** Resolves when all that was told so far is written, or lost. */
  async drained(): Promise<void> {
    await this.#running;
  }

  #write(type: string, members: Readonly<Record<string, unknown>>): void {
    this.#later(async () => {
      await this.#writer.writeEvent(this.#stream, type, members);
    });
  }

  async #writeLinked(type: string, members: Readonly<Record<string, unknown>>): Promise<void> {
    const number = await this.#writer.writeEvent(this.#stream, type, members);
    if (number !== null) await this.#writer.writeLink(this.#scavengeId, number);
  }

  #later(write: () => Promise<void>): void {
    if (this.#pending.length >= PENDING_MAX) {
      this.#writer.parts.log.error(
        'SCAVENGING: an event of the history was dropped because too many are waiting to be written.',
        { limit: PENDING_MAX },
      );
      return;
    }
    this.#pending.push(write);
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      for (const write of batch) await write();
    }
    this.#running = null;
  }
}

/** Sums over a run. */
export interface RunTotals {
  readonly result: ScavengeResult;
  readonly error: string | null;
  readonly elapsedMs: number;
  readonly spaceSaved: number;
  /** Last logical chunk that was executed, 0 for none. */
  readonly maxChunk: number;
  /** On object storage: until then traces of what was removed remain at the latest, in milliseconds since 1970. */
  readonly tracesUntilMs?: number;
}

export function completedMembers(
  scavengeId: string,
  nodeEndpoint: string,
  totals: RunTotals,
): Readonly<Record<string, unknown>> {
  return {
    scavengeId,
    nodeEndpoint,
    result: totals.result,
    error: totals.error,
    timeTaken: timeSpanText(totals.elapsedMs),
    spaceSaved: totals.spaceSaved,
    maxChunkScavenged: totals.maxChunk,
    ...(totals.tracesUntilMs !== undefined && { tracesUntil: timestampText(totals.tracesUntilMs, 0) }),
  };
}

/** A write that fails is repeated at once, this often in all. */
const TRIES_MAX = 5;
/** The group that may read the history; writing and deleting is for the system alone. */
const READER = '$ops';
const SECONDS_PER_DAY = 86_400;
const NO_BYTES = new Uint8Array(0);

interface HistoryParts {
  readonly store: Pick<EventStoreInternals, 'append' | 'readStream' | 'streamInfo'>;
  readonly ids: Ids;
  readonly log: Log;
  /** `host:port` of this node's HTTP interface. */
  readonly nodeEndpoint: string;
  readonly historyMaxAgeDays: number;
  /**
   * The id of the event that a text names, for runs whose parts may be repeated after a crash: the store then takes a
   * repeated event for the one that it has. Default: a random id for each.
   */
  readonly idOf?: (text: string) => string;
}

/** Writes single events of the history. Nothing here rejects: what can't be written is logged, and lost. */
export class HistoryWriter {
  readonly parts: HistoryParts;
  readonly #maxAge: number;
  readonly #metadataJson: Uint8Array;
  #ready: Promise<void> | null = null;

  constructor(parts: HistoryParts) {
    this.parts = parts;
    this.#maxAge = parts.historyMaxAgeDays * SECONDS_PER_DAY;
    this.#metadataJson = encodeText(
      formatMetadata({
        maxAge: this.#maxAge,
        acl: { read: [READER], write: [], delete: [], metadataRead: [], metadataWrite: [] },
      }),
    );
  }

  /** Sees to the metadata of the stream of all runs, once. */
  ready(): Promise<void> {
    this.#ready ??= this.ensureMetadata(HISTORY_STREAM);
    return this.#ready;
  }

  /**
   * Appends an event whose members stand in the order given, indented by two spaces. Returns its number, null when it
   * was lost.
   */
  writeEvent(stream: string, type: string, members: Readonly<Record<string, unknown>>): Promise<number | null> {
    // A run has one end. For the rest, how long it took is all that differs when something is done again.
    const what = type === COMPLETED_TYPE ? '' : JSON.stringify({ ...members, timeTaken: undefined });
    return this.#append(stream, type, true, encodeText(JSON.stringify(members, null, 2)), what);
  }

  /** Links an event of a run from the stream of all runs. */
  async writeLink(scavengeId: string, number: number): Promise<void> {
    const target = `${number}@${historyStreamOf(scavengeId)}`;
    await this.#append(HISTORY_STREAM, LINK_TYPE, false, encodeText(target), target);
  }

  async writeMetadata(stream: string): Promise<void> {
    await this.#append(metastreamOf(stream), METADATA_TYPE, true, this.#metadataJson);
  }

  /** Writes the metadata of a stream unless its age and its readers are right already. */
  async ensureMetadata(stream: string): Promise<void> {
    let metadata: StreamMetadata;
    try {
      metadata = (await this.parts.store.streamInfo(stream)).metadata;
    } catch (error) {
      this.#lost(`the metadata of ${stream}`, error);
      return;
    }
    if (metadata.maxAge !== this.#maxAge || metadata.acl?.read?.includes(READER) !== true)
      await this.writeMetadata(stream);
  }

  /**
   * `what` distinguishes the event from all others of its type in the stream; null where the same may be written twice.
   */
  async #append(
    stream: string,
    type: string,
    isJson: boolean,
    data: Uint8Array,
    what: string | null = null,
  ): Promise<number | null> {
    const { ids, idOf } = this.parts;
    const id =
      what === null || idOf === undefined
        ? guidToText(guidFromUuidBytes(ids.uuidBytes()), 0)
        : idOf(`${stream} ${type} ${what}`);
    for (let tries = 1; ; tries++) {
      try {
        return (await this.parts.store.append(stream, ANY, [{ id, type, isJson, data, metadata: NO_BYTES }]))
          .lastEventNumber;
      } catch (error) {
        if (tries < TRIES_MAX && !isSkuaError(error, 'store_closed') && !isSkuaError(error, 'writer_stopped')) continue;
        this.#lost(`${type} in ${stream}`, error);
        return null;
      }
    }
  }

  #lost(what: string, error: unknown): void {
    this.parts.log.error(`SCAVENGING: ${what} could not be written.`, { error });
  }
}

/** Events of a run that are read at once. */
const RUN_PAGE_EVENTS = 50;

type Members = Readonly<Record<string, unknown>>;

/** Writes the end of a run that is not in its history yet, and the link to it. */
export async function writeEnd(
  writer: HistoryWriter,
  id: string,
  sums: RunSums,
  end: Pick<RunTotals, 'result' | 'error' | 'elapsedMs' | 'tracesUntilMs'>,
): Promise<void> {
  // Its link may have been lost: nothing is missing but that.
  if (sums.completed !== null) return writer.writeLink(id, sums.completed);
  const { spaceSaved, maxChunk } = sums;
  const number = await writer.writeEvent(
    historyStreamOf(id),
    COMPLETED_TYPE,
    completedMembers(id, writer.parts.nodeEndpoint, { spaceSaved, maxChunk, ...end }),
  );
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
export async function* backwards(
  writer: HistoryWriter,
  stream: string,
  count: number,
  signal: AbortSignal,
): AsyncGenerator<StoredEvent, void, undefined> {
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

export function membersOf(event: StoredEvent): Members | null {
  try {
    const value: unknown = JSON.parse(decodeText(event.data));
    return typeof value === 'object' && value !== null ? (value as Members) : null;
  } catch {
    return null;
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
