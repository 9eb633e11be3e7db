import type { TableReport } from '../index/table-scavenge.ts';
import type { ScavengeResult } from './api.ts';
import { CHUNK_TYPE, COMPLETED_TYPE, historyStreamOf, type HistoryWriter, MERGE_TYPE, STARTED_TYPE, TABLE_TYPE } from './history-writer.ts';
import { timeSpanText } from './time-span.ts';

/** Events of one run that may wait to be written; more are dropped with an error in the log. */
const PENDING_MAX = 10_000;

export interface MergeReport {
  readonly startNumber: number;
  readonly endNumber: number;
  readonly elapsedMs: number;
  readonly spaceSaved: number;
  /** Null when the chunks were merged, else why not. */
  readonly error: string | null;
}

/**
 * The events of one run; scavenge.md section 10.2. They are written one after the other in the background: the run never
 * waits, and a loss does not fail it.
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

  tableDone(report: TableReport): void {
    this.spaceSaved += report.spaceSaved;
    this.#write(TABLE_TYPE, {
      scavengeId: this.#scavengeId,
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
    // A run can fail before it has begun, as with a damaged scavenge database. Its stream gets its metadata nevertheless.
    if (!this.#isStarted) this.started();
    const members = completedMembers(this.#scavengeId, this.#writer.parts.nodeEndpoint, { result, error, elapsedMs, spaceSaved: this.spaceSaved, maxChunk: this.#maxChunk });
    this.#later(() => this.#writeLinked(COMPLETED_TYPE, members));
  }

  /** Resolves when all that was told so far is written, or lost. */
  async drained(): Promise<void> {
    await this.#running;
  }

  #write(type: string, members: Readonly<Record<string, unknown>>): void {
    this.#later(async () => { await this.#writer.writeEvent(this.#stream, type, members); });
  }

  async #writeLinked(type: string, members: Readonly<Record<string, unknown>>): Promise<void> {
    const number = await this.#writer.writeEvent(this.#stream, type, members);
    if (number !== null) await this.#writer.writeLink(this.#scavengeId, number);
  }

  #later(write: () => Promise<void>): void {
    if (this.#pending.length >= PENDING_MAX) {
      this.#writer.parts.log.error('SCAVENGING: an event of the history was dropped, as too many wait to be written.', { limit: PENDING_MAX });
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
}

export function completedMembers(scavengeId: string, nodeEndpoint: string, totals: RunTotals): Readonly<Record<string, unknown>> {
  return {
    scavengeId,
    nodeEndpoint,
    result: totals.result,
    error: totals.error,
    timeTaken: timeSpanText(totals.elapsedMs),
    spaceSaved: totals.spaceSaved,
    maxChunkScavenged: totals.maxChunk,
  };
}
