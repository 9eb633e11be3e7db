import { isSkuaError } from '../errors.ts';
import { VERIFY_CHUNK_JOB, type VerifyChunkArgs } from '../log/verify-chunk-job.ts';
import { chunkEnd, chunkStart } from './choose-places.ts';
import type { RestorePlan } from './choose.ts';
import { inParallel } from './in-parallel.ts';
import type { ManifestChunk } from './manifest.ts';
import type { Repository } from './repository-api.ts';
import { badMd5, writeFile } from './restore-files.ts';
import type { Skipped } from './restore-report.ts';
import { ShippedEpochs, tailOf, writeTail } from './restore-tail.ts';
import { endWhenAborted, lanesOf, type RestoreWorld } from './restore-world.ts';

export interface LogRestoreOptions {
  readonly repository: Repository;
  readonly plan: RestorePlan;
  readonly world: RestoreWorld;
  readonly allowDamaged: boolean;
  readonly checkMd5: boolean;
  readonly onBytes: (count: number) => void;
}

/** Where the log ends that was written, and what its last chunk told. */
export interface RestoredLog {
  readonly position: number;
  readonly files: number;
  /** The last epoch behind the manifest's log end. */
  readonly shippedEpoch: { readonly position: number; readonly number: number } | null;
  readonly skipped: readonly Skipped[];
}

/** Writes the chunk files of a plan: the completed ones side by side, then the one in which the log ends. */
export function restoreLog(options: LogRestoreOptions): Promise<RestoredLog> {
  return new LogRestore(options).run();
}

class LogRestore {
  readonly #options: LogRestoreOptions;
  readonly #skipped: Skipped[] = [];
  /** Where the log has to end because of damage. */
  #cut: number;

  constructor(options: LogRestoreOptions) {
    this.#options = options;
    this.#cut = options.plan.position;
  }

  async run(): Promise<RestoredLog> {
    const { plan, world } = this.#options;
    const whole = plan.manifest.chunks.filter((chunk) => chunkEnd(plan.manifest, chunk) <= plan.position);
    await inParallel(whole.length, lanesOf(world), (i) => this.#chunk(whole[i]!));
    if (this.#cut < plan.position) {
      // What lies behind a lost chunk was written for nothing.
      const lost = whole.filter((chunk) => chunkStart(plan.manifest, chunk) >= this.#cut);
      for (const chunk of [...lost].reverse()) await world.target.remove(chunk.path);
      return this.#ended(this.#cut, whole.length - lost.length, null);
    }
    return this.#tail(whole.length);
  }

  async #chunk(chunk: ManifestChunk): Promise<void> {
    const { repository, plan, world, onBytes } = this.#options;
    const start = chunkStart(plan.manifest, chunk);
    if (start >= this.#cut) return;
    const watch = (bytes: Uint8Array): void => {
      endWhenAborted(world.signal);
      onBytes(bytes.length);
    };
    try {
      await writeFile(world.target, chunk.path, repository.readBlob(chunk, undefined, world.signal), chunk.sizeBytes, { watch, isSealed: true });
      if (this.#options.checkMd5) await this.#checkMd5(chunk);
    } catch (error) {
      this.#damaged(error, chunk.path, start);
    }
  }

  /** The repository vouches for the bytes that were given to it; whether they were sound then, the chunk's own MD5 tells, off this thread. */
  async #checkMd5({ path }: ManifestChunk): Promise<void> {
    const { start, signal } = this.#options.world;
    const args: VerifyChunkArgs = { name: path };
    if (await start.jobs.run(VERIFY_CHUNK_JOB, args, signal && { signal }) !== true) throw badMd5(path);
  }

  async #tail(chunks: number): Promise<RestoredLog> {
    const { repository, plan, world, onBytes } = this.#options;
    const { target, ids, signal } = world;
    const { manifest } = plan;
    const tail = tailOf(repository, plan, ids, signal);
    if (tail === null) return this.#ended(plan.position, chunks, null);
    const { writer } = manifest.checkpoints;
    const epochs = plan.position > writer ? new ShippedEpochs(writer) : null;
    let at = tail.header === null ? -1 : tail.start;
    const watch = (bytes: Uint8Array): void => {
      endWhenAborted(signal);
      // What was shipped begins with a piece of its own.
      if (at >= writer) epochs?.push(bytes);
      if (at >= 0) at += bytes.length;
      onBytes(bytes.length);
    };
    const end = await writeTail(target, manifest.chunkSizeBytes, tail, watch, (error, from) => this.#damaged(error, tail.path, from));
    return this.#ended(end, chunks + (end > tail.start ? 1 : 0), epochs?.last ?? null);
  }

  /** Notes damage that may be passed over; throws everything else. */
  #damaged(error: unknown, path: string, from: number): void {
    const isDamage = isSkuaError(error, 'repository_damaged') || isSkuaError(error, 'log_corrupt');
    if (!isDamage || !this.#options.allowDamaged || from === 0) throw error;
    const key = typeof error.data.key === 'string' ? error.data.key : null;
    this.#skipped.push({ key, path, reason: error.message, lost: { from, to: from, chunks: 0 } });
    this.#cut = Math.min(this.#cut, from);
  }

  /** Everything from the first damage on is lost; the one that is lost first says how much. */
  #ended(position: number, files: number, shippedEpoch: RestoredLog['shippedEpoch']): RestoredLog {
    const { plan } = this.#options;
    const to = plan.position;
    const chunks = Math.ceil(to / plan.manifest.chunkSizeBytes) - Math.floor(position / plan.manifest.chunkSizeBytes);
    const skipped = this.#skipped.map((one) => ({ ...one, lost: one.lost?.from === position ? { from: position, to, chunks } : null }));
    return { position, files, shippedEpoch: shippedEpoch !== null && shippedEpoch.position < position ? shippedEpoch : null, skipped };
  }
}
