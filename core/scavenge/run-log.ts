import type { TableReport } from '../index/api.ts';
import type { Chunk } from '../log/api.ts';
import type { Log } from '../ports/log.ts';
import type { ScavengePoint } from '../ports/scavenge-state.ts';
import { timeSpanText, timestampText } from '../base/time.ts';
import type { ScavengeOptions, ScavengePhase, ScavengeProgress, ScavengeResult } from './api.ts';

/** Known collisions named in the log at a start; the rest is only counted. */
const COLLISIONS_LISTED_MAX = 100;
/** Pauses of the throttle from this length on are logged, in milliseconds. */
const PAUSE_LOGGED_MS = 10_000;

/** The request as a query string. */
export function queryOf(options: ScavengeOptions, threads: number): string {
  const { threshold, throttlePercent, syncOnly = false, startAfresh = false } = options;
  return `startFromChunk=0&threads=${threads}${threshold === undefined ? '' : `&threshold=${threshold}`}${throttlePercent === undefined ? '' : `&throttlePercent=${throttlePercent}`}&syncOnly=${syncOnly ? 'True' : 'False'}${startAfresh ? '&startAfresh=True' : ''}`;
}

/** `SP-<event number>`. */
export function pointName(point: ScavengePoint): string {
  return `SP-${point.eventNumber}`;
}

/** `#<first>-<last> (<file name>)`. */
export function chunkName(chunk: Chunk): string {
  return `#${chunk.startNumber}-${chunk.endNumber} (${chunk.name})`;
}

/** Without decimals and with the digits in groups of three. */
export function weightText(weight: number): string {
  // oxlint-disable-next-line hostile-input/linear-regexp -- A number has at most 22 characters, and it is ours.
  return String(Math.round(weight)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** The log lines of one run. */
export class RunLog {
  readonly #log: Log;
  readonly #scavengeId: string;
  readonly #durations: [ScavengePhase, number][] = [];

  constructor(log: Log, scavengeId: string) {
    this.#log = log;
    this.#scavengeId = scavengeId;
  }

  #info(message: string, fields: Record<string, unknown> = {}): void {
    this.#log.info(`SCAVENGING: ${message}`, { ScavengeId: this.#scavengeId, ...fields });
  }

  #debug(message: string, fields: Record<string, unknown> = {}): void {
    this.#log.debug(`SCAVENGING: ${message}`, { ScavengeId: this.#scavengeId, ...fields });
  }

  requested(query: string): void {
    this.#log.info(`Request scavenging: ${query}`, { ScavengeId: this.#scavengeId });
  }

  stateDamaged(found: readonly string[]): void {
    this.#log.warn(
      `SCAVENGING: The scavenge database is damaged (${found[0]}). It is removed and rebuilt from the log.`,
      { ScavengeId: this.#scavengeId, found },
    );
  }

  learnsDeleted(): void {
    this.#info(
      'Earlier runs kept the data of the last events of deleted streams but forgot the streams. The scavenge database is rebuilt from the log, once.',
    );
  }

  opened(collisions: readonly string[]): void {
    this.#info('Started. The scavenge state is open.', { collisions: collisions.length });
    for (const name of collisions.slice(0, COLLISIONS_LISTED_MAX)) this.#debug(`Known collision: "${name}"`);
  }

  resumed(stage: string, point: ScavengePoint): void {
    this.#info(`Resuming at ${stage} for ${pointName(point)}.`, {
      position: point.position,
      threshold: point.threshold,
    });
    this.#info(
      `${pointName(point)} is of ${timestampText(point.effectiveNowMs, point.effectiveNowTicks ?? 0)}: what was deleted since needs another scavenge.`,
    );
  }

  abandoned(stage: string, point: ScavengePoint): void {
    this.#info(`Abandoned the scavenge to ${pointName(point)}, which was unfinished at ${stage}.`, {
      position: point.position,
    });
  }

  usesPoint(point: ScavengePoint, how: 'existing' | 'created', after: string | null): void {
    this.#info(
      `${after === null ? 'New scavenge' : `New scavenge after ${after}`}: ${how === 'created' ? 'created' : 'using existing'} ${pointName(point)}.`,
      { position: point.position, threshold: point.threshold },
    );
  }

  nothingToDo(): void {
    this.#info('Every existing scavenge point was already reached, and none is to be created: nothing to do.');
  }

  filesVanished(job: string, file: unknown): void {
    this.#info(`${job} starts again with the current files.`, { file });
  }

  leftover(file: string, error: unknown): void {
    this.#log.warn('SCAVENGING: A replaced chunk file could not be removed; the next start tries again.', {
      ScavengeId: this.#scavengeId,
      file,
      error: String(error),
    });
  }

  phaseStarted(phase: ScavengePhase): void {
    this.#info(`Phase started: ${phase}.`);
  }

  phaseCompleted(
    phase: ScavengePhase,
    elapsedMs: number,
    restedMs: number,
    details: Record<string, unknown> = {},
  ): void {
    this.#durations.push([phase, elapsedMs]);
    this.#info(`Phase completed: ${phase} in ${timeSpanText(elapsedMs)}.`, { restedMs, ...details });
  }

  chunkStarted(chunk: Chunk, weight: number, target: string): void {
    this.#info(
      `Started to scavenge physical chunk: "${chunkName(chunk)}" with weight ${weightText(weight)}. ${chunk.startNumber} => ${chunk.endNumber} (${chunk.startPosition} => ${chunk.endPosition})`,
      { physicalWeight: weight, temporaryFile: target },
    );
  }

  chunkDone(
    chunk: Chunk,
    replacement: Chunk,
    elapsedMs: number,
    sums: {
      recordsKept: number;
      recordsDiscarded: number;
      recordsEmptied: number;
      bytesBefore: number;
      bytesAfter: number;
    },
  ): void {
    this.#info(
      `Scavenged physical chunk "${chunkName(chunk)}" into ${replacement.name} in ${timeSpanText(elapsedMs)}.`,
      { ...sums, records: sums.recordsKept + sums.recordsDiscarded },
    );
  }

  chunkSkipped(chunk: Chunk, weight: number, threshold: number): void {
    this.#info(`Skipped physical chunk: "${chunkName(chunk)}" with weight ${weightText(weight)}. `, {
      physicalWeight: weight,
      threshold,
    });
  }

  notTogether(chunks: readonly Chunk[], error: unknown): void {
    this.#log.warn(
      `SCAVENGING: ${chunks.map(chunkName).join(', ')} could not be written into one file; executing them one by one.`,
      { ScavengeId: this.#scavengeId, error },
    );
  }

  merged(chunks: readonly Chunk[], replacement: Chunk, elapsedMs: number, spaceSaved: number): void {
    this.#info(`Merged ${chunks.map(chunkName).join(', ')} into ${replacement.name} in ${timeSpanText(elapsedMs)}.`, {
      spaceSaved,
    });
  }

  mergeFailed(chunks: readonly Chunk[], error: unknown): void {
    this.#log.warn(`SCAVENGING: ${chunks.map(chunkName).join(', ')} could not be merged; they are left unmerged.`, {
      ScavengeId: this.#scavengeId,
      error,
    });
  }

  mergePass(pass: number, merges: number): void {
    this.#debug(`Merge pass ${pass} made ${merges} merged chunks.`);
  }

  /** `attributeIndex`: whose table it is; null for the stream index. */
  table(report: TableReport, attributeIndex: string | null): void {
    this.#info(
      `Index table ${attributeIndex === null ? '' : `${attributeIndex} `}${report.level}-${report.index} ${report.error === '' ? 'done' : `not done: ${report.error}`} in ${timeSpanText(report.elapsedMs)}: ${report.entriesDeleted} entries removed, ${report.entriesKept} remain.`,
      { spaceSaved: report.spaceSaved },
    );
  }

  indexUnwritten(name: string, error: unknown): void {
    this.#log.warn(
      `SCAVENGING: What the attribute index ${name} has in memory could not be written; its entries of removed records stay until a later scavenge.`,
      { ScavengeId: this.#scavengeId, error: String(error) },
    );
  }

  indexGone(name: string, error: unknown): void {
    this.#log.warn(`SCAVENGING: The attribute index ${name} was switched off, or is built anew; it is left alone.`, {
      ScavengeId: this.#scavengeId,
      error: String(error),
    });
  }

  pauseBegins(ms: number): void {
    if (ms >= PAUSE_LOGGED_MS) this.#debug(`Pausing for ${timeSpanText(ms)}.`);
  }

  pauseEnded(ms: number): void {
    if (ms >= PAUSE_LOGGED_MS) this.#debug(`Paused for ${timeSpanText(ms)}.`);
  }

  progress(p: ScavengeProgress): void {
    const percent =
      p.bytesTotal > 0
        ? Math.floor((100 * p.bytesDone) / p.bytesTotal)
        : p.chunksTotal > 0
          ? Math.floor((100 * p.chunksDone) / p.chunksTotal)
          : null;
    this.#info(`${p.phase}${percent === null ? '' : ` ${percent} %`}`, {
      chunksDone: p.chunksDone,
      chunksTotal: p.chunksTotal,
      bytesDone: p.bytesDone,
      bytesTotal: p.bytesTotal,
      bytesReclaimed: p.bytesReclaimed,
      remainingSeconds: p.remainingSeconds,
    });
  }

  ended(result: ScavengeResult, elapsedMs: number, spaceSaved: number, error: unknown): void {
    const total = timeSpanText(elapsedMs);
    if (result === 'Success')
      this.#info(`Scavenge Completed. Total time taken: ${total}. Total space saved: ${spaceSaved}.`);
    else if (result === 'Errored')
      this.#log.error(`SCAVENGING: Scavenge Failed. Total time taken: ${total}.`, {
        ScavengeId: this.#scavengeId,
        error,
      });
    else this.#info(`Scavenge Stopped. Total time taken: ${total}.`);
    for (const [phase, ms] of this.#durations) this.#debug(`${phase} took ${timeSpanText(ms)}.`);
  }
}
