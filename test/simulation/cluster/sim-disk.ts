import type { Storage, StorageFile, StorageLock } from '../../../core/ports/storage.ts';
import type { ScavengeStates } from '../../../core/ports/scavenge-state.ts';
import { isCrash } from '../../support/crash.ts';
import type { FaultyStorage } from '../../support/faulty-storage.ts';
import type { Random } from '../../support/random.ts';
import type { Timeline } from '../auto-scavenge/timeline.ts';
import type { SimProcess } from '../shared-log/sim-process.ts';

/** How the disk of a member is at the moment. */
export interface DiskHealth {
  /** Chance of a sync that takes longer than a moment. */
  slow: number;
  /** Syncs that are to fail. */
  failingSyncs: number;
}

/** The scavenge database, which is in memory here: it goes when its file is removed. */
const DATABASE_PATH = 'index/scavenging/scavenging.db';

export interface SimDiskParts {
  readonly storage: FaultyStorage;
  readonly states: ScavengeStates;
  readonly process: SimProcess;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly health: DiskHealth;
  /** The power failed in the middle of a call. */
  readonly onPowerLoss: () => void;
}

/**
 * A faulty disk as one process has it. Syncs take time, in which everybody else goes on. A process that has died is
 * never answered again: it neither hears of its end nor does anything after it.
 */
export class SimDisk implements Storage {
  readonly #parts: SimDiskParts;

  constructor(parts: SimDiskParts) {
    this.#parts = parts;
    const { storage, health } = parts;
    storage.failWhen((op, path) =>
      op === 'sync' && health.failingSyncs > 0 && path.startsWith('chunk-') && health.failingSyncs-- > 0
        ? 'sync_failed'
        : undefined,
    );
  }

  list(folder: string): Promise<string[]> {
    return this.call(() => this.#parts.storage.list(folder));
  }
  size(path: string): Promise<number | null> {
    return this.call(() => this.#parts.storage.size(path));
  }
  modifiedMs(path: string): Promise<number | null> {
    return this.call(() => this.#parts.storage.modifiedMs(path));
  }
  freeBytes(): Promise<number> {
    return this.call(() => this.#parts.storage.freeBytes());
  }
  rename(from: string, to: string): Promise<void> {
    return this.call(() => this.#parts.storage.rename(from, to));
  }
  open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    return this.call(async () => new SimHandle(this, await this.#parts.storage.open(path, access)));
  }
  create(path: string): Promise<StorageFile> {
    return this.call(async () => new SimHandle(this, await this.#parts.storage.create(path)));
  }
  lock(): Promise<StorageLock> {
    return this.call(() => this.#parts.storage.lock());
  }

  remove(path: string): Promise<void> {
    return this.call(async () => {
      await this.#parts.storage.remove(path);
      if (path === DATABASE_PATH) this.#parts.states.remove();
    });
  }

  /** @internal */
  get isDead(): boolean {
    return this.#parts.process.isDead;
  }

  /** @internal Calls the disk, unless the process has died before or dies of it. */
  async call<T>(effect: () => Promise<T>): Promise<T> {
    if (this.isDead) return never();
    try {
      return await effect();
    } catch (error) {
      return this.died(error);
    }
  }

  /** @internal The power failed, or it is an error like any other. */
  died(error: unknown): Promise<never> {
    if (!isCrash(error)) throw error;
    if (!this.isDead) this.#parts.onPowerLoss();
    return never();
  }

  /** @internal */
  async sync(effect: () => Promise<void>): Promise<void> {
    const { random, health, timeline, process } = this.#parts;
    if (random.chance(health.slow)) {
      const ms = random.chance(0.9) ? random.int(1, 30) : random.int(100, 8_000);
      await new Promise<void>((resolve) => {
        timeline.in(ms, () => process.deliver(resolve));
      });
    }
    return this.call(effect);
  }
}

class SimHandle implements StorageFile {
  readonly #disk: SimDisk;
  readonly #file: StorageFile;

  constructor(disk: SimDisk, file: StorageFile) {
    this.#disk = disk;
    this.#file = file;
  }

  get path(): string {
    return this.#file.path;
  }
  get size(): number {
    return this.#file.size;
  }

  read(position: number, length: number): Uint8Array | Promise<Uint8Array> {
    if (this.#disk.isDead) return never();
    try {
      const reading = this.#file.read(position, length);
      return reading instanceof Promise ? reading.catch((error: unknown) => this.#disk.died(error)) : reading;
    } catch (error) {
      return this.#disk.died(error);
    }
  }

  readNow(position: number, length: number, into: Uint8Array, at: number): number {
    if (this.#disk.isDead) return -1;
    try {
      return this.#file.readNow!(position, length, into, at);
    } catch (error) {
      // Who asks again with a promise is never answered.
      void this.#disk.died(error);
      return -1;
    }
  }

  writeAt(position: number, bytes: Uint8Array): void | Promise<void> {
    if (this.#disk.isDead) return never();
    try {
      const writing = this.#file.writeAt(position, bytes);
      return writing instanceof Promise ? writing.catch((error: unknown) => this.#disk.died(error)) : writing;
    } catch (error) {
      return this.#disk.died(error);
    }
  }

  truncate(size: number): Promise<void> {
    return this.#disk.call(() => this.#file.truncate(size));
  }
  seal(): Promise<void> {
    return this.#disk.call(() => this.#file.seal());
  }
  close(): Promise<void> {
    return this.#disk.call(() => this.#file.close());
  }

  sync(): Promise<void> {
    return this.#disk.sync(() => this.#file.sync());
  }
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
