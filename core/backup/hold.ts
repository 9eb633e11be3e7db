import { SkuaError } from '../errors.ts';
import type { StreamIndex } from '../index/stream-index.ts';
import type { TransactionLog } from '../log/transaction-log.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Storage } from '../ports/storage.ts';
import type { Scavenger } from '../scavenge/api.ts';
import { chunksUpTo, takeSnapshot, type LogState } from './snapshot.ts';
import type { BackupSource, Snapshot } from './source.ts';
import { StorageSource } from './storage-source.ts';

/** The files of a running node, kept as they are until `release`: no scavenge starts, no merge begins. Appends go on. */
export interface StoreHold extends BackupSource {
  /** Whether it has been released, by its owner or because the store was closed. */
  readonly isReleased: boolean;
}

export interface HoldParts {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly clock: Clock;
  readonly scavenger: Pick<Scavenger, 'hold'>;
  readonly index: Pick<StreamIndex, 'holdFiles'>;
  readonly log: TransactionLog;
  /** Text of a UUID. */
  readonly nodeId: string;
}

/**
 * Begins a hold. Everything that was acknowledged before the call is in its snapshot. Rejects with `scavenge_in_progress`
 * (data: scavengeId), `store_closed`, and what the storage throws; nothing is held then.
 */
export async function takeHold(parts: HoldParts): Promise<StoreHold> {
  const undo: (() => void)[] = [parts.scavenger.hold()];
  const release = () => { for (const step of undo.splice(0)) step(); };
  try {
    undo.push(await parts.index.holdFiles());
    const { storage, digests, nodeId, log } = parts;
    const snapshot = await takeSnapshot({ storage, digests, nodeId, chunkSizeBytes: log.chunkSize, log: () => logState(parts) });
    return new FilesHold(storage, snapshot, release);
  } catch (error) {
    release();
    throw error;
  }
}

/** End and files of the log are taken in one step, between two appends. */
async function logState({ log, clock }: HoldParts): Promise<LogState> {
  const { end, table, checkpoints } = log;
  const state: LogState = {
    takenMs: clock.nowMs(), chunks: chunksUpTo(table, end),
    checkpoints: { writer: end, chaser: end, epoch: checkpoints.epoch.value, proposal: checkpoints.proposal.value },
  };
  await log.flushCheckpoints();
  return state;
}

class FilesHold implements StoreHold {
  readonly snapshot: Snapshot;
  readonly #source: StorageSource;
  readonly #release: () => void;
  isReleased = false;

  constructor(storage: Storage, snapshot: Snapshot, release: () => void) {
    this.#source = new StorageSource(storage, snapshot);
    this.snapshot = snapshot;
    this.#release = release;
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
    this.#release();
  }
}

export function holdEnded(holdId?: string): SkuaError {
  return new SkuaError('hold_not_found', 'There is no such hold on the files of this node, or it has ended: begin a new one with POST /admin/backup/hold.', holdId === undefined ? {} : { holdId });
}
