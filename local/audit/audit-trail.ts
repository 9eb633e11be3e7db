import * as path from 'node:path';
import { auditLine, ownEntry } from '../../core/ports/audit.ts';
import type { AuditAction, AuditEntry, AuditLog } from '../../core/ports/audit.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Ids } from '../../core/ports/ids.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { AuditStream } from '../../core/security/audit-stream/audit-stream.ts';
import type { EventStore } from '../../core/streams/api.ts';
import type { AuditView } from '../../handlers/documents/node.ts';
import { LogFamily } from '../log/log-files.ts';
import type { LogFileSettings } from '../log/log-files.ts';

/** Bytes of entries that wait for a slow disk; what comes beyond is lost. */
export const AUDIT_WAITING_BYTES_MAX = 4_194_304;
/** Only the user whom the node runs as may read which user did what. */
const FILE_MODE = 0o600;
/** Losses are logged at most this often. */
const TELL_MS = 60_000;

interface AuditTrailOptions {
  /** File that the names of the files are made from, and how they follow each other; null for none. */
  readonly file: ({ readonly name: string } & Omit<LogFileSettings, 'folder'>) | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

type Sink = 'file' | 'stream';

/**
 * The audit of a node: a file, a stream, or both. What can't be kept is counted, logged, shown in health, and told by
 * the audit itself.
 */
export class AuditTrail implements AuditLog {
  readonly #options: AuditTrailOptions;
  readonly #file: LogFamily | null;
  #stream: AuditStream | null = null;
  readonly #failing = new Set<Sink>();
  readonly #lost: Record<Sink, number> = { file: 0, stream: 0 };
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor(options: AuditTrailOptions) {
    this.#options = options;
    const { file, clock } = options;
    const ending = file === null ? '' : path.extname(file.name);
    this.#file =
      file === null
        ? null
        : new LogFamily({
            ...file,
            folder: path.dirname(path.resolve(file.name)),
            name: path.basename(file.name, ending),
            ending,
            mode: FILE_MODE,
            waitingBytesMax: AUDIT_WAITING_BYTES_MAX,
            nowMs: () => clock.nowMs(),
            lostLine: (entries) => `${auditLine(ownEntry('audit.lost', { details: { entries } }), clock.nowMs())}\n`,
            onTrouble: (error) => this.#fails('file', error),
            onWorks: () => {},
            onWritten: () => this.#written('file', 1),
            onLost: () => this.#losing('file', 1, null),
          });
  }

  /** From now on entries are also appended to the stream `$audit`. */
  openStream(store: Pick<EventStore, 'append' | 'streamInfo'>, ids: Ids): void {
    this.#stream = new AuditStream({
      store,
      ids,
      clock: this.#options.clock,
      onWritten: (entries) => this.#written('stream', entries),
      onLost: (entries, error) => this.#losing('stream', entries, error),
    });
  }

  record(entry: AuditEntry): void {
    const line = auditLine(entry, this.#options.clock.nowMs());
    this.#file?.write(`${line}\n`);
    this.#stream?.add(entry, line);
  }

  /** Something that no request asked for. */
  own(action: AuditAction, more?: Partial<AuditEntry>): void {
    this.record(ownEntry(action, more));
  }

  get view(): AuditView {
    return { failing: this.#failing.size > 0, entriesLost: this.#lost.file + this.#lost.stream };
  }

  #written(sink: Sink, entries: number): void {
    const { meter, log } = this.#options;
    meter.count('eventstore_audit_entries_total', entries, { sink, result: 'written' });
    if (!this.#failing.delete(sink)) return;
    meter.gauge('eventstore_audit_failing', this.#failing.size > 0 ? 1 : 0);
    log.info('the audit can be written again', { sink, entriesLost: this.#lost[sink] });
  }

  #losing(sink: Sink, entries: number, error: unknown): void {
    this.#lost[sink] += entries;
    this.#options.meter.count('eventstore_audit_entries_total', entries, { sink, result: 'lost' });
    this.#fails(sink, error);
  }

  #fails(sink: Sink, error: unknown): void {
    const { meter, log, clock } = this.#options;
    this.#failing.add(sink);
    meter.gauge('eventstore_audit_failing', 1);
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#toldMs < TELL_MS) return;
    this.#toldMs = nowMs;
    const what = sink === 'file' ? { file: this.#options.file!.name } : { stream: '$audit' };
    log.error('the audit cannot be written: actions are not being recorded', {
      ...what,
      entriesLost: this.#lost[sink],
      ...(error !== null && { error }),
    });
  }

  /** Appends what waits for the stream; to be called before the store is closed. */
  async closeStream(): Promise<void> {
    const stream = this.#stream;
    this.#stream = null;
    await stream?.settled();
  }

  /** Writes what waits for the file, within a few seconds. */
  async close(): Promise<void> {
    await this.closeStream();
    await this.#file?.close();
  }
}
