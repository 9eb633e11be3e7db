import { isSkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { VERIFY_CHUNK_JOB, type VerifyChunkArgs } from '../../log/scrub/scrub.ts';
import { isProven, type ManifestChunk, type ManifestFile } from '../format/snapshot-manifest.ts';
import { lanesFor } from '../repository/repository.ts';
import type { RestorePlan } from './choose.ts';
import {
  damagedBefore,
  endRestoreWhenAborted,
  filesAtOnce,
  restoreFile,
  restoreInLane,
  type FileRestore,
  type Skipped,
} from './restore-files.ts';
import { chunkEnd, chunkStart } from './restore-locations.ts';
import { ShippedEpochs, tailOf, writeTail, type TailPart } from './tail.ts';

interface LogRestoreOptions extends FileRestore {
  readonly plan: RestorePlan;
  readonly allowDamaged: boolean;
  readonly checkMd5: boolean;
  /** Other files of the backup, written side by side with the log; only where no damage is passed over. */
  readonly beside?: readonly ManifestFile[];
}

/** Where the log ends that was written, and what its last chunk told. */
export interface RestoredLog {
  readonly position: number;
  readonly files: number;
  /** The last epoch behind the manifest's log end. */
  readonly shippedEpoch: { readonly position: number; readonly number: number } | null;
  readonly skipped: readonly Skipped[];
}

/**
 * Writes the chunk files of a plan: those that were backed up whole, and those that are made anew, of which the log
 * ends in the last.
 */
export function restoreLog(options: LogRestoreOptions): Promise<RestoredLog> {
  return new LogRestore(options).run();
}

class LogRestore {
  readonly #options: LogRestoreOptions;
  readonly #skipped: Skipped[] = [];
  /** Checks of chunks that were written, oldest first: at most as many as there are lanes. */
  readonly #checks: Promise<void>[] = [];
  /** Where the log has to end because of damage. */
  #cut: number;

  constructor(options: LogRestoreOptions) {
    this.#options = options;
    this.#cut = options.plan.position;
  }

  async run(): Promise<RestoredLog> {
    try {
      return await this.#run();
    } finally {
      // Nothing reads the files any more when this ends.
      await Promise.allSettled(this.#checks);
    }
  }

  async #run(): Promise<RestoredLog> {
    const { plan, world, allowDamaged } = this.#options;
    const whole = plan.manifest.chunks.filter((chunk) => chunkEnd(plan.manifest, chunk) <= plan.position);
    const atOnce = filesAtOnce(this.#options);
    if (!allowDamaged) return this.#all(whole, atOnce);
    await inParallel(whole.length, atOnce, (i) => this.#chunk(whole[i]!));
    // Where the log may end before a damaged chunk, that has to be known before its end is written.
    await this.#checked(0);
    if (this.#cut < plan.position) {
      // What lies behind a lost chunk was written for nothing.
      const lost = whole.filter((chunk) => chunkStart(plan.manifest, chunk) >= this.#cut);
      for (const chunk of [...lost].reverse()) await world.target.remove(chunk.path);
      return this.#ended(this.#cut, whole.length - lost.length, null);
    }
    return this.#tail(whole.length);
  }

  /** Everything side by side, as damage to anything ends the restore. */
  async #all(whole: readonly ManifestChunk[], atOnce: number): Promise<RestoredLog> {
    let restored: RestoredLog | null = null;
    // The log's end comes first: what lies in it is put together part by part.
    const { beside = [] } = this.#options;
    await inParallel(1 + whole.length + beside.length, atOnce, async (i) => {
      if (i === 0) restored = await this.#tail(whole.length);
      else if (i <= whole.length) await this.#chunk(whole[i - 1]!);
      else await restoreFile(this.#options, beside[i - 1 - whole.length]!);
    });
    await this.#checked(0);
    return restored!;
  }

  async #chunk(chunk: ManifestChunk): Promise<void> {
    const { plan } = this.#options;
    const start = chunkStart(plan.manifest, chunk);
    if (start >= this.#cut) return;
    try {
      await restoreFile(this.#options, chunk, { isSealed: true, isUnproven: !isProven(chunk) });
    } catch (error) {
      return this.#damaged(error, chunk.path, start);
    }
    if (!this.#options.checkMd5) return;
    const check = this.#checkMd5(chunk).catch((error: unknown) => this.#damaged(error, chunk.path, start));
    // It is met when its turn comes.
    check.catch(() => {});
    this.#checks.push(check);
    await this.#checked(filesAtOnce(this.#options));
  }

  /** Waits until at most so many checks are under way. */
  async #checked(left: number): Promise<void> {
    while (this.#checks.length > left) await this.#checks.shift();
  }

  /**
   * What was written is read back, and compared with the chunk's own MD5, off this thread: for a caller that wants to
   * know what the disk holds.
   */
  async #checkMd5({ path }: ManifestChunk): Promise<void> {
    const { start, signal } = this.#options.world;
    const args: VerifyChunkArgs = { name: path };
    if ((await start.jobs.run(VERIFY_CHUNK_JOB, args, signal && { signal })) !== true) throw damagedBefore(path);
  }

  async #tail(files: number): Promise<RestoredLog> {
    const { repository, plan, world, onBytes } = this.#options;
    const {
      chunkSizeBytes,
      checkpoints: { writer },
    } = plan.manifest;
    const epochs = plan.position > writer ? new ShippedEpochs(writer) : null;
    const watch = (bytes: Uint8Array, position: number): void => {
      endRestoreWhenAborted(world.signal);
      // What was shipped begins with a piece of its own.
      if (position >= writer) epochs?.push(bytes, position);
      onBytes(bytes.length);
    };
    let written = files;
    for (const chunk of tailOf(repository, plan, world)) {
      const inLane = (part: TailPart, at: number): Promise<void> | null => {
        const { blob, from, to } = part;
        // One of another length than the log has there is found out, and logged, by what writes it piece by piece.
        const lane = blob?.sizeBytes === to - from ? lanesFor(this.#options.lanes, blob.sizeBytes) : null;
        return lane === null
          ? null
          : restoreInLane(lane, this.#options, { path: chunk.path, ref: blob!, at, isSealed: false });
      };
      const end = await writeTail(
        world,
        chunkSizeBytes,
        chunk,
        watch,
        (error, from) => this.#damaged(error, chunk.path, from),
        inLane,
      );
      if (end > chunk.start) written++;
      if (end < chunk.parts.at(-1)!.to) return this.#ended(end, written, epochs?.last ?? null);
    }
    return this.#ended(plan.position, written, epochs?.last ?? null);
  }

  /** Notes damage that may be passed over; throws everything else. */
  #damaged(error: unknown, path: string, from: number): void {
    const isDamage = isSkuaError(error, 'repository_damaged') || isSkuaError(error, 'log_corrupt');
    if (!isDamage || !this.#options.allowDamaged || from === 0) throw error;
    const key = error.data.key ?? null;
    this.#skipped.push({ key, path, reason: error.message, lost: { from, to: from, chunks: 0 } });
    this.#cut = Math.min(this.#cut, from);
  }

  /** Everything from the first damage on is lost; the one that is lost first says how much. */
  #ended(position: number, files: number, shippedEpoch: RestoredLog['shippedEpoch']): RestoredLog {
    const { plan } = this.#options;
    const to = plan.position;
    const chunks = Math.ceil(to / plan.manifest.chunkSizeBytes) - Math.floor(position / plan.manifest.chunkSizeBytes);
    const skipped = this.#skipped.map((one) => ({
      ...one,
      lost: one.lost?.from === position ? { from: position, to, chunks } : null,
    }));
    return {
      position,
      files,
      shippedEpoch: shippedEpoch !== null && shippedEpoch.position < position ? shippedEpoch : null,
      skipped,
    };
  }
}
