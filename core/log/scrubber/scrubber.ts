import type { SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import { isSameStamp, type Scrubbed, type Stamp, stampOf } from '../format/scrubbed-file.ts';

/** A start is not slowed down by the first files. */
const FIRST_AFTER_MS = 10_000;
/** How often the scrubber looks for files that were written since, or were compared long ago. */
const LOOK_EVERY_MS = 60_000;
/** A file that could not be read is tried again after this. */
const RETRY_AFTER_MS = 3_600_000;
/** Age at which a file is compared again: a disk also loses what nothing touches. */
export const SCRUB_AGAIN_AFTER_MS = 7 * 86_400_000;
/**
 * Bytes a second at which a file is compared again, so that no reader and no append notices. A file that was never
 * compared is read without a limit.
 */
export const SCRUB_AGAIN_BYTES_PER_SECOND = 16_777_216;

/** A file that is written once, with a checksum of its content. */
export interface ScrubbedFile {
  /** Of the content that was found to fit its checksum; null where nothing has looked yet, or damage was found. */
  scrubbed: Scrubbed | null;
}

/** What differs between files of one kind and of another. */
export interface ScrubParts<F extends ScrubbedFile> {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
  /** The files in force, newest first: others may take their place at any time. */
  readonly files: () => readonly F[];
  readonly pathOf: (file: F) => string;
  /**
   * Compares a file with its checksum, at most so many bytes a second (0: without a limit), and gives what is wrong
   * with it. Throws where the file can't be read.
   */
  readonly check: (file: F, bytesPerSecond: number) => Promise<SkuaError | null>;
  /** Called once, for a file whose content does not fit its checksum; nothing is compared after that. */
  readonly onDamage: (error: SkuaError) => void;
  /** What is logged of a file that could not be read, and under which name it gives the path. */
  readonly unreadable: { readonly message: string; readonly member: 'file' | 'path' };
  /** After each file that was compared. */
  readonly afterFile?: () => Promise<void>;
  /** When no file is due; false after damage. */
  readonly afterRound?: () => Promise<boolean>;
}

/**
 * Compares files with their checksums in the background: those that never were, newest first, and then those that were
 * long ago, oldest first.
 */
export class Scrubber<F extends ScrubbedFile> {
  readonly #parts: ScrubParts<F>;
  /** Monotonic time before which a file that could not be read is left alone. */
  readonly #retryMs = new WeakMap<F, number>();

  constructor(parts: ScrubParts<F>) {
    this.#parts = parts;
  }

  /** Ends with the signal, or with the first damage. Rejects only where `afterFile` or `afterRound` do. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, afterFile, afterRound } = this.#parts;
    await clock.sleep(FIRST_AFTER_MS, signal);
    while (!signal.aborted) {
      // One file at a time: those written meanwhile come first.
      for (let next = this.#next(); next !== null && !signal.aborted; next = this.#next()) {
        if (!(await this.#scrub(next, signal))) return;
        await afterFile?.();
      }
      if (!signal.aborted && (await afterRound?.()) === false) return;
      await clock.sleep(LOOK_EVERY_MS, signal);
    }
  }

  #next(): F | null {
    const { clock, files } = this.#parts;
    const nowMs = clock.monotonicMs();
    const dueMs = clock.nowMs() - SCRUB_AGAIN_AFTER_MS;
    let next: F | null = null;
    for (const file of files()) {
      if (nowMs < (this.#retryMs.get(file) ?? -Infinity)) continue;
      const scrubbedMs = scrubbedMsOf(file);
      if (scrubbedMs <= dueMs && (next === null || scrubbedMs < scrubbedMsOf(next))) next = file;
    }
    return next;
  }

  /** False after damage. */
  async #scrub(file: F, signal: AbortSignal): Promise<boolean> {
    const { storage, clock, log, files, pathOf, check, onDamage, unreadable } = this.#parts;
    const path = pathOf(file);
    // A merge or a scavenge may replace the file meanwhile, and then it goes.
    const isInForce = (): boolean => files().includes(file);
    this.#retryMs.set(file, clock.monotonicMs() + RETRY_AFTER_MS);
    try {
      const before = await stampOf(storage, path);
      const damage = await check(file, file.scrubbed === null ? 0 : SCRUB_AGAIN_BYTES_PER_SECOND);
      if (!isInForce()) return true;
      if (damage !== null) {
        file.scrubbed = null;
        onDamage(damage);
        return false;
      }
      const scrubbed = await scrubbedSince({ storage, clock }, path, before);
      // Something other than this process writes to the file: what is there now is looked at later.
      if (scrubbed === null) return true;
      file.scrubbed = scrubbed;
      this.#retryMs.delete(file);
    } catch (error) {
      if (!signal.aborted && isInForce())
        log.warn(unreadable.message, { [unreadable.member]: path, error: String(error) });
    }
    return true;
  }
}

/** What is known of a file that has just been found to be as it was written; null where it changed since `before`. */
export async function scrubbedSince(
  { storage, clock }: Pick<ScrubParts<never>, 'storage' | 'clock'>,
  path: string,
  before: Stamp | null,
): Promise<Scrubbed | null> {
  const after = await stampOf(storage, path);
  return before === null || after === null || !isSameStamp(before, after)
    ? null
    : { ...after, scrubbedMs: Math.floor(clock.nowMs()) };
}

function scrubbedMsOf({ scrubbed }: ScrubbedFile): number {
  return scrubbed === null ? -Infinity : scrubbed.scrubbedMs;
}
