import { readdirSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import * as path from 'node:path';
import { createStream } from 'rotating-file-stream';
import type { RotatingFileStream } from 'rotating-file-stream';
import { makeFolderNow } from '../../infra/fs/make-folder.ts';
import { removeFile } from '../../infra/fs/file-removal.ts';
import type { LogEvent } from '../../infra/runtime/log-line.ts';
import { jsonLine } from '../../infra/runtime/log-line.ts';

type LogInterval = 'Minute' | 'Hour' | 'Day' | 'Month' | 'Year' | 'Infinite';

export interface LogFileSettings {
  /** Folder of this node's files: `<Log>/<NodeIp>-<NodePort>-cluster-node`. */
  readonly folder: string;
  /** A file that has reached this is continued in another. */
  readonly sizeBytes: number;
  readonly interval: LogInterval;
  /** Files of each family that are kept, the present one among them. */
  readonly retention: number;
}

/** Lines that wait for a slow disk; beyond that lines are dropped. */
const WAITING_BYTES_MAX = 8_388_608;
/** A disk that failed is tried again after this long. */
const RETRY_MS = 60_000;
/** What is left to write gets this long when the process ends. */
const CLOSE_MS = 3_000;

/** Digits of the period in a file's name, of `yyyyMMddHHmm`. */
const PERIOD_DIGITS: Readonly<Record<LogInterval, number>> = {
  Minute: 12,
  Hour: 10,
  Day: 8,
  Month: 6,
  Year: 4,
  Infinite: 0,
};
/**
 * When the stream asks for a name again. It knows no years: asked every month, it gets the same name until the year is
 * over.
 */
const ROTATION: Readonly<Record<LogInterval, string>> = {
  Minute: '1m',
  Hour: '1h',
  Day: '1d',
  Month: '1M',
  Year: '1M',
  Infinite: '1200M',
};

/** The folder of a node's log files. */
export function logFolder(log: string, nodeIp: string, nodePort: number): string {
  return path.join(log, `${nodeIp.replaceAll(':', '_')}-${nodePort}-cluster-node`);
}

/**
 * Name of a file: the family, the period in local time without separators, and from the second file of a period on its
 * number.
 */
export function logFileName(
  family: string,
  interval: LogInterval,
  atMs: number,
  index: number,
  ending = '.json',
): string {
  const at = new Date(atMs);
  const digits = [at.getFullYear(), at.getMonth() + 1, at.getDate(), at.getHours(), at.getMinutes()]
    .map((part) => String(part).padStart(2, '0'))
    .join('');
  return `${family}${digits.slice(0, PERIOD_DIGITS[interval])}${index <= 1 ? '' : `_${String(index - 1).padStart(3, '0')}`}${ending}`;
}

/** What follows the family in the name of a file. */
const PERIOD_AND_INDEX = /^(|\d{4}|\d{6}|\d{8}|\d{10}|\d{12})(?:_(\d{3,}))?$/;

/** What a file's name says, or null when it is none of the family's. */
function partsOf(
  family: string,
  name: string,
  ending: string,
): { readonly name: string; readonly period: string; readonly index: number } | null {
  if (!name.startsWith(family) || !name.endsWith(ending) || name.length < family.length + ending.length) return null;
  const match = PERIOD_AND_INDEX.exec(name.slice(family.length, name.length - ending.length));
  return match === null ? null : { name, period: match[1]!, index: Number(match[2] ?? 0) + 1 };
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The three families of log files. None is created before its first line, and none ever stops the node. */
export class LogFiles {
  readonly #all: LogFamily;
  readonly #errors: LogFamily;
  readonly #stats: LogFamily;

  /** `onTrouble` is called for a disk that fails, once until it works again. */
  constructor(settings: LogFileSettings, onTrouble: (file: string, error: unknown) => void, nowMs: () => number) {
    let isTroubled = false;
    const family = (name: string) =>
      new LogFamily({
        ...settings,
        name,
        ending: '.json',
        nowMs,
        waitingBytesMax: WAITING_BYTES_MAX,
        lostLine: (lines) =>
          jsonLine({
            atMs: nowMs(),
            level: 'warn',
            message: 'lines were dropped: the disk of the log files failed or is too slow',
            fields: { lines },
          }),
        onTrouble: (error) => {
          if (!isTroubled) onTrouble(path.join(settings.folder, name), error);
          isTroubled = true;
        },
        onWorks: () => {
          isTroubled = false;
        },
      });
    this.#all = family('log');
    this.#errors = family('log-err');
    this.#stats = family('log-stats');
  }

  write(event: LogEvent, line: string): void {
    this.#all.write(line);
    if (event.level === 'error' || event.fields['error'] instanceof Error) this.#errors.write(line);
  }

  writeStats(event: LogEvent): void {
    this.#stats.write(jsonLine(event));
  }

  /** Writes what waits, as far as that is possible within a few seconds. */
  async close(): Promise<void> {
    await Promise.all([this.#all.close(), this.#errors.close(), this.#stats.close()]);
  }
}

export interface LogFamilyOptions extends LogFileSettings {
  /** What the names of the files begin and end with. */
  readonly name: string;
  readonly ending: string;
  /** Permissions of new files; 0666 less the mask of the process without it. */
  readonly mode?: number;
  /** Lines that wait for a slow disk; beyond that lines are lost. */
  readonly waitingBytesMax: number;
  /** The line, with its break, that says how many lines before it were lost. */
  readonly lostLine: (lines: number) => string;
  /** Told of each failure of the disk, and of each file that could be opened. */
  readonly onTrouble: (error: unknown) => void;
  readonly onWorks: () => void;
  /** Told of each line that a file has taken, and of each that is lost. */
  readonly onWritten?: () => void;
  readonly onLost?: () => void;
  readonly nowMs: () => number;
}

/** Files of one kind, one behind the other. */
export class LogFamily {
  readonly #options: LogFamilyOptions;
  #stream: RotatingFileStream | null = null;
  #failedMs = Number.NEGATIVE_INFINITY;
  #lost = 0;
  /** Of the newest file of the period: the stream goes on there. */
  #firstIndex = 1;
  #removing: Promise<void> = Promise.resolve();

  constructor(options: LogFamilyOptions) {
    this.#options = options;
  }

  /** A line with its break. Never throws, and is not waited for. */
  write(line: string): void {
    const { nowMs, waitingBytesMax, lostLine } = this.#options;
    if (this.#stream === null && nowMs() - this.#failedMs < RETRY_MS) return this.#lose();
    try {
      const stream = (this.#stream ??= this.#open());
      if (stream.writableLength > waitingBytesMax) return this.#lose();
      if (this.#lost > 0) stream.write(lostLine(this.#lost));
      this.#lost = 0;
      stream.write(line, this.#written);
    } catch (error) {
      this.#lose();
      this.#failed(error);
    }
  }

  readonly #written = (error: Error | null | undefined): void => {
    if (error == null) this.#options.onWritten?.();
    else this.#lose();
  };

  #lose(): void {
    this.#lost++;
    this.#options.onLost?.();
  }

  #open(): RotatingFileStream {
    const { folder, sizeBytes, interval, ending, mode, nowMs, onWorks } = this.#options;
    const name = (time: number | Date | null, index = 1) => {
      const atMs = time === null ? nowMs() : Number(time);
      // The stream looks for a file with room from the first of the period on, which may have been removed by now.
      if (time !== null && index === 1) this.#firstIndex = this.#lastIndexOf(atMs);
      return logFileName(this.#options.name, interval, atMs, this.#firstIndex + index - 1, ending);
    };
    // The stream would make it, too, and try for ever where none can be made.
    makeFolderNow(folder);
    const stream = createStream(name, {
      path: folder,
      size: `${sizeBytes}B`,
      interval: ROTATION[interval],
      immutable: true,
      intervalBoundary: true,
      ...(mode !== undefined && { mode }),
    });
    stream.on('error', (error) => this.#failed(error, stream));
    stream.on('open', () => {
      onWorks();
      this.#removing = this.#removing.then(() => this.#removeOld());
    });
    return stream;
  }

  /** Number of the newest file of a period; 1 when there is none. */
  #lastIndexOf(atMs: number): number {
    const { folder, interval, name: family, ending } = this.#options;
    const { period } = partsOf(family, logFileName(family, interval, atMs, 1, ending), ending)!;
    let last = 1;
    try {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const parts = partsOf(family, entry.name, ending);
        // What is no file can't be written to: the stream goes on behind it.
        if (parts?.period === period) last = Math.max(last, parts.index + (entry.isDirectory() ? 1 : 0));
      }
    } catch {
      // The folder is made with the first file, and if it can't be read the stream will say why.
    }
    return last;
  }

  #failed(error: unknown, stream: RotatingFileStream | null = null): void {
    if (stream !== null && stream !== this.#stream) return;
    this.#stream = null;
    this.#failedMs = this.#options.nowMs();
    this.#options.onTrouble(error);
  }

  /** Removes the oldest files of the family beyond those that are kept. Their names tell their age. */
  async #removeOld(): Promise<void> {
    const { folder, retention, name: family, ending, onTrouble } = this.#options;
    try {
      const files = (await readdir(folder, { withFileTypes: true })).flatMap((entry) =>
        entry.isFile() ? (partsOf(family, entry.name, ending) ?? []) : [],
      );
      files.sort((a, b) => compareText(a.period.padEnd(12, '0'), b.period.padEnd(12, '0')) || a.index - b.index);
      for (const { name } of files.slice(0, Math.max(0, files.length - retention)))
        await removeFile(path.join(folder, name), (one) => partsOf(family, one, ending) !== null);
    } catch (error) {
      onTrouble(error);
    }
  }

  async close(): Promise<void> {
    const stream = this.#stream;
    this.#stream = null;
    this.#failedMs = Number.POSITIVE_INFINITY;
    if (stream !== null) {
      let timer: NodeJS.Timeout | undefined;
      const ended = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_MS);
        stream.once('close', () => resolve());
        stream.once('error', () => resolve());
        stream.end();
      });
      await ended;
      clearTimeout(timer);
    }
    await this.#removing;
  }
}
