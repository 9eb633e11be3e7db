import { SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { StreamIndex } from '../../index/index.ts';
import type { TransactionLog } from '../../log/api.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import type { Scavenger } from '../../scavenge/api.ts';
import type { MarkColumns } from '../../streams/api.ts';
import { chunksUpTo, takeSnapshot } from '../snapshot/snapshot.ts';
import type { LogState } from '../snapshot/snapshot.ts';
import { StorageSource } from '../source/source.ts';
import type { BackupSource, Snapshot } from '../source/source.ts';
import { background } from '../../base/background.ts';

/**
 * The files of a running node, kept as they are until `release`: no scavenge starts, no merge begins. Appends go on.
 */
export interface StoreHold extends BackupSource {
  /** Whether it has been released, by its owner or because the store was closed. */
  readonly isReleased: boolean;
}

interface HoldParts {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly clock: Clock;
  readonly scavenger: Pick<Scavenger, 'hold'>;
  readonly index: Pick<StreamIndex, 'holdFiles'>;
  readonly log: TransactionLog;
  readonly marks: () => MarkColumns;
  /** Text of a UUID. */
  readonly nodeId: string;
}

/**
 * Begins a hold. Everything that was acknowledged before the call is in its snapshot. Rejects with
 * `scavenge_in_progress` (data: scavengeId), `store_closed`, and what the storage throws; nothing is held then.
 */
export async function takeHold(parts: HoldParts): Promise<StoreHold> {
  const undo: (() => void)[] = [parts.scavenger.hold()];
  const release = () => {
    for (const step of undo.splice(0)) step();
  };
  try {
    undo.push(await parts.index.holdFiles());
    const { storage, digests, nodeId, log } = parts;
    const snapshot = await takeSnapshot({
      storage,
      digests,
      nodeId,
      chunkSizeBytes: log.chunkSize,
      log: () => logState(parts),
    });
    return holdOf(new StorageSource(storage, snapshot, { release: async () => release() }));
  } catch (error) {
    release();
    throw error;
  }
}

/** End and files of the log are taken in one step, between two appends. */
async function logState({ log, clock, marks }: HoldParts): Promise<LogState> {
  const { end, table, checkpoints } = log;
  const state: LogState = {
    takenMs: clock.nowMs(),
    chunks: chunksUpTo(table, end),
    checkpoints: { writer: end, chaser: end, epoch: checkpoints.epoch.value, proposal: checkpoints.proposal.value },
    marks: marks(),
  };
  await log.flushCheckpoints();
  return state;
}

/**
 * Files that are held until `release`; what is read of them afterwards is refused, and nothing that was being read then
 * is given away.
 */
class SourceHold implements StoreHold {
  readonly #source: BackupSource;
  isReleased = false;

  constructor(source: BackupSource) {
    this.#source = source;
  }

  get snapshot(): Snapshot {
    return this.#source.snapshot;
  }

  async *read(path: string, position: number, length: number): AsyncGenerator<Uint8Array, void, undefined> {
    this.#check();
    for await (const piece of this.#source.read(path, position, length)) {
      // What was read after the end of the hold may be something else.
      this.#check();
      yield piece;
    }
  }

  #check(): void {
    if (this.isReleased) throw holdEnded();
  }

  async release(): Promise<void> {
    if (this.isReleased) return;
    this.isReleased = true;
    await this.#source.release();
  }
}

/** A hold of the files of a source, which is released with it, once. */
export function holdOf(source: BackupSource): StoreHold {
  return new SourceHold(source);
}

export function holdEnded(holdId?: string): SkuaError {
  return new SkuaError(
    'hold_not_found',
    'There is no such hold on the files of this node, or it has ended: start a new one with POST /admin/backup/hold.',
    holdId === undefined ? {} : { holdId },
  );
}

/** Holds that may exist at once. */
export const HOLDS_MAX = 4;
/** How long a hold lasts after its last use. */
export const HOLD_MS = 60_000;

/** A hold as it is shown to its owner. */
export interface HoldView {
  readonly holdId: string;
  /** Wall-clock time at which it ends unless it is used before: milliseconds since 1970. */
  readonly expiresMs: number;
  readonly snapshot: Snapshot;
}

interface HoldsParts {
  /** Begins a hold of the store. */
  readonly take: () => Promise<StoreHold>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

interface Held {
  readonly holdId: string;
  readonly hold: StoreHold;
  /** Ends the sleep of its watch. */
  readonly ending: AbortController;
  /** Monotonic time. */
  dueMs: number;
}

/**
 * Holds that others have on this node's files, over a connection that may break: each ends by itself when it was not
 * used for HOLD_MS. Every use renews it: being asked for, and each piece of a file that is read.
 */
export class Holds {
  readonly #parts: HoldsParts;
  readonly #held = new Map<string, Held>();
  /** Holds that are being begun. */
  #beginning = 0;
  #isClosed = false;

  constructor(parts: HoldsParts) {
    this.#parts = parts;
  }

  /** How many there are. */
  get count(): number {
    return this.#held.size;
  }

  /** Rejects with `too_busy` (data: limit), `store_closed`, and what beginning a hold of the store rejects with. */
  async begin(): Promise<HoldView> {
    if (this.#isClosed) throw closed();
    if (this.#held.size + this.#beginning >= HOLDS_MAX)
      throw new SkuaError(
        'too_busy',
        `${HOLDS_MAX} backups already hold the files of this node: wait until one has finished.`,
        { limit: HOLDS_MAX },
      );
    this.#beginning++;
    try {
      const hold = await this.#parts.take();
      if (this.#isClosed) {
        await hold.release();
        throw closed();
      }
      return this.#add(hold);
    } finally {
      this.#beginning--;
    }
  }

  #add(hold: StoreHold): HoldView {
    const { ids, log, clock } = this.#parts;
    const held: Held = {
      holdId: guidToText(guidFromUuidBytes(ids.uuidBytes()), 0),
      hold,
      ending: new AbortController(),
      dueMs: clock.monotonicMs() + HOLD_MS,
    };
    this.#held.set(held.holdId, held);
    log.info('a backup holds the files of this node: no scavenge starts', {
      holdId: held.holdId,
      logEnd: hold.snapshot.checkpoints.writer,
      files: hold.snapshot.files.length,
    });
    background(this.#watch(held));
    return this.#viewOf(held);
  }

  /** Lets the hold end when its time has come. */
  async #watch(held: Held): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = held.ending;
    while (!signal.aborted) {
      const leftMs = held.dueMs - clock.monotonicMs();
      if (leftMs <= 0) return this.#expire(held);
      await clock.sleep(leftMs, signal);
    }
  }

  async #expire(held: Held): Promise<void> {
    if (!this.#held.has(held.holdId)) return;
    this.#parts.log.warn('an unused hold on the files of this node has ended', {
      holdId: held.holdId,
      unusedSeconds: HOLD_MS / 1_000,
    });
    await this.#end(held);
  }

  async #end(held: Held): Promise<void> {
    this.#held.delete(held.holdId);
    held.ending.abort();
    await held.hold.release();
  }

  /** Renews a hold. Rejects with `hold_not_found`. */
  async renew(holdId: string): Promise<HoldView> {
    return this.#viewOf(await this.#used(holdId));
  }

  /** The hold, renewed. Its end is noticed here too, whenever its watch comes to wake. */
  async #used(holdId: string): Promise<Held> {
    const held = this.#held.get(holdId);
    if (held === undefined) throw holdEnded(holdId);
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs >= held.dueMs || held.hold.isReleased) {
      await this.#expire(held);
      throw holdEnded(holdId);
    }
    held.dueMs = nowMs + HOLD_MS;
    return held;
  }

  #viewOf({ holdId, hold, dueMs }: Held): HoldView {
    const { clock } = this.#parts;
    return { holdId, expiresMs: clock.nowMs() + dueMs - clock.monotonicMs(), snapshot: hold.snapshot };
  }

  /** As `BackupSource.read`, of a hold; each piece renews it. */
  async *read(
    holdId: string,
    path: string,
    position: number,
    length: number,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const { hold } = await this.#used(holdId);
    for await (const piece of hold.read(path, position, length)) {
      await this.#used(holdId);
      yield piece;
    }
  }

  /** Ends a hold. Rejects with `hold_not_found`. */
  async release(holdId: string): Promise<void> {
    const held = this.#held.get(holdId);
    if (held === undefined) throw holdEnded(holdId);
    await this.#end(held);
  }

  /** Ends all holds; none begins any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const held of this.#held.values()) await this.#end(held);
  }
}

function closed(): SkuaError {
  return new SkuaError('store_closed', 'The node is stopping: no backup can hold its files.');
}
