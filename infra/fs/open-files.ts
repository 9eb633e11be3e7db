import { systemCode } from './fs-errors.ts';

/** Files that are only read and hold a descriptor at the same time, in one thread. */
const OPEN_FILES_MAX = 4_096;

/** A file that is only read: it can do without its descriptor until it is read again. */
export interface ReadOnlyFile {
  /** No call uses the descriptor. */
  readonly isIdle: boolean;
  /** It was read since this was last set to false. */
  wasUsed: boolean;
  /** Closes the descriptor. The next read opens the file again. */
  park(): void;
}

/**
 * The files that hold a descriptor, so that a log of any number of chunks stays below what the system allows: a file
 * that was not read for the longest time, by turns of a clock hand, is parked for the next one.
 */
export class OpenFiles {
  readonly #max: number;
  /** In the order in which the hand comes by. */
  readonly #files = new Set<ReadOnlyFile>();

  constructor(max = OPEN_FILES_MAX) {
    this.#max = max;
  }

  /** Descriptors that are held. */
  get count(): number {
    return this.#files.size;
  }

  /** Opens a file. Where the system lets this process have no more of them, half of those here are parked first. */
  open(call: () => number): number {
    try {
      return call();
    } catch (error) {
      const code = systemCode(error);
      if ((code !== 'EMFILE' && code !== 'ENFILE') || !this.#parkTo(this.#files.size >> 1)) throw error;
      return call();
    }
  }

  /** The file holds a descriptor from now on. */
  add(file: ReadOnlyFile): void {
    if (this.#files.has(file)) return;
    this.#parkTo(this.#max - 1);
    this.#files.add(file);
  }

  /** A file is idle now: where all were in use, and more are open than may be, it is one too many. */
  settle(): void {
    if (this.#files.size > this.#max) this.#parkTo(this.#max);
  }

  /** The file holds none any more. */
  remove(file: ReadOnlyFile): void {
    this.#files.delete(file);
  }

  /** Whether any was parked. Files in use stay, so more than `count` may be left. */
  #parkTo(count: number): boolean {
    let parked = false;
    // Two turns at most: the first one clears the marks.
    for (let turns = 2 * this.#files.size; this.#files.size > count && turns > 0; turns--) {
      const { value: file } = this.#files.values().next() as { value: ReadOnlyFile };
      this.#files.delete(file);
      if (file.isIdle && !file.wasUsed) {
        file.park();
        parked = true;
        continue;
      }
      file.wasUsed = false;
      this.#files.add(file);
    }
    return parked;
  }
}

/** Those of this thread. */
export const openFiles = new OpenFiles();
