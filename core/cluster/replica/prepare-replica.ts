import { BlockCache } from '../../cache/cache.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { refuseUnfinishedRestore } from '../../log/format/markers.ts';
import { openLog } from '../../log/log.ts';
import type { TransactionLog } from '../../log/api.ts';
import { LOADS_MAX, type ObjectWorld, TAIL_COMMITS_MAX } from '../../shared-log/api.ts';
import { newestManifest, newestManifestNumber, type ObjectManifest } from '../../shared-log/format/manifest.ts';
import { listTail, readTail } from '../../shared-log/tail/tail.ts';
import type { Storage } from '../../ports/storage.ts';
import { isOutdated, manifestEnd, throwIfEnded } from './bucket-files.ts';
import { catchUpChunk, restBytes } from './catch-up.ts';
import { checkFirstBytes, checkLastBytes, compareFrom, diverged } from './compare.ts';
import { requestTruncation, commonEnd, dropIndexBeyond, forgetEpoch } from './truncate.ts';
import { refuseDamaged } from './damage.ts';
import { belongsTo, writeLogId } from './identity/identity.ts';
import { locateInTail } from './locate.ts';
import { markScavengeDue } from './scavenge-due.ts';
import { type ReplicaInspection, openInspected, inspectReplica } from './inspect-replica.ts';
import { downloadFiles, missingBytes } from './download-files.ts';
import { takeWaitingMarks } from './waiting-marks.ts';

/**
 * Newer manifests that one catch-up follows when it has ended with one: each is nearer to the log's end, and behind the
 * last comes the tail.
 */
const FOLLOWED_MAX = 8;
/** Manifests of which files may be gone before a catch-up has them all. */
const OUTDATED_MAX = 100;
/** Steps for one manifest: settling, cutting back, the rest of a chunk, whole files, and the end of the last chunk. */
const STEPS_MAX = 8;
/** For small files beside those of the log. */
const SPARE_BYTES = 1_048_576;

export interface PrepareReplicaParts {
  /** The copy's directory, log and index. The caller holds its lock, and no process has it open. */
  readonly storage: Storage;
  readonly world: ObjectWorld;
  /** The newest one. */
  readonly manifest: ObjectManifest;
  /** Bytes that are downloaded; the total grows when the log does meanwhile. */
  readonly onProgress?: (progress: {
    readonly phase: 'catching-up';
    readonly bytesDone: number;
    readonly bytesTotal: number;
  }) => void;
  readonly signal: AbortSignal;
}

/**
 * `end`: where the copy ends. It lies behind the manifest's end where the copy has some of the tail already; which
 * commit that is the caller finds out (`locateInTail`).
 */
export interface PreparedReplica {
  /** The one that was used last. */
  readonly manifest: ObjectManifest;
  readonly end: number;
}

/**
 * Brings the files of a stopped directory up to the newest manifest. Afterwards it belongs to this log (`log-id`),
 * holds it up to the manifest's end at least, byte for byte where nothing is scavenged, and can be opened
 * (core/cluster/replica/README.md, rules 3 to 5).
 *
 * Nothing is written before the directory has been compared with the log. Each step leaves a log that every opening
 * takes for what it is, so after a crash, an error or an abort the next call goes on. Rejects with `other_log`,
 * `log_diverged` (nothing was changed where it is found before the first step), `log_corrupt` for damage on either
 * side, `disk_full`, `too_busy` when the bucket's files change faster than they can be read, `aborted`, and with what
 * opening a log, storage and bucket throw.
 */
export async function prepareReplica(parts: PrepareReplicaParts): Promise<PreparedReplica> {
  return new Preparation(parts).run();
}

class Preparation {
  readonly #parts: PrepareReplicaParts;
  readonly #storage: Storage;
  readonly #world: ObjectWorld;
  #manifest: ObjectManifest;
  #belongs = false;
  /** An opening has recovered the copy's log, or there is none. */
  #isSettled = false;
  /** Bytes downloaded, and those that are known to be missing still. */
  #bytesDone = 0;
  #bytesTotal = 0;

  constructor(parts: PrepareReplicaParts) {
    this.#parts = parts;
    this.#storage = parts.storage;
    this.#world = parts.world;
    this.#manifest = parts.manifest;
  }

  async run(): Promise<PreparedReplica> {
    await refuseUnfinishedRestore(this.#storage);
    this.#belongs = await belongsTo(this.#storage, this.#manifest.storeId, this.#world.objects.place);
    let outdated = 0;
    let candidacy = 0;
    for (let followed = 0; ;) {
      const before = this.#bytesDone;
      try {
        const end = await this.#follow();
        // After long work what was behind the manifest may be gone from the tail, too.
        if (this.#bytesDone === before || followed++ === FOLLOWED_MAX || !(await this.#isOld())) return this.#done(end);
        await this.#takeNewest(null);
      } catch (error) {
        if (!isOutdated(error)) throw error;
        // What was brought before the first file was gone is kept, so it is standing still that ends this.
        candidacy = this.#bytesDone > before ? 0 : candidacy + 1;
        if (candidacy === LOADS_MAX || ++outdated === OUTDATED_MAX)
          throw new SkuaError(
            'too_busy',
            `The files of ${this.#world.objects.place} change faster than this replica can follow: try again later.`,
            { place: this.#world.objects.place },
            error,
          );
        await this.#takeNewest(error);
      }
    }
  }

  #done(end: number): PreparedReplica {
    if (this.#bytesDone > 0)
      this.#world.log.info('the replica has caught up with the files of the log', {
        end,
        bytes: this.#bytesDone,
        manifest: this.#manifest.number,
      });
    return { manifest: this.#manifest, end };
  }

  async #isOld(): Promise<boolean> {
    return (await newestManifestNumber(this.#world.objects)) !== this.#manifest.number;
  }

  /** `cause`: why the one in use does not do any more; thrown where there is no newer one. */
  async #takeNewest(cause: unknown): Promise<void> {
    const { objects, digests } = this.#world;
    const newest = await newestManifest(objects, digests);
    const old = this.#manifest;
    if (newest === null || newest.storeId !== old.storeId || newest.number < old.number || newest.logEnd < old.logEnd) {
      throw new SkuaError(
        'log_diverged',
        `The log at ${objects.place} was replaced or rolled back to an older state while this replica was catching up. Start again when it is restored.`,
        { place: objects.place },
        cause,
      );
    }
    if (newest.number === old.number && cause !== null) {
      const key = cause instanceof SkuaError ? cause.data.key : undefined;
      throw new SkuaError(
        'log_corrupt',
        `The object ${String(key)}, which the newest manifest of ${objects.place} names, is missing: restore it from a version or a backup of the bucket.`,
        typeof key === 'string' ? { key } : {},
        cause,
      );
    }
    this.#manifest = newest;
  }

  /** Brings the copy up to the manifest in use; resolves with where it ends. */
  async #follow(): Promise<number> {
    let inspection = await inspectReplica(this.#storage, this.#world.digests);
    await this.#compare(inspection);
    await takeWaitingMarks(this.#storage, this.#world, this.#manifest);
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      throwIfEnded(this.#parts.signal);
      if (!inspection.isCutPending && inspection.end >= manifestEnd(this.#manifest)) return inspection.end;
      if (steps === 0) await this.#begin(inspection);
      await this.#step(inspection);
      inspection = await inspectReplica(this.#storage, this.#world.digests);
    }
    throw new SkuaError(
      'io_error',
      `The replica ends at ${inspection.end}, and its log at ${manifestEnd(this.#manifest)}, whatever is done: this is a defect.`,
      { end: inspection.end },
    );
  }

  /** The directory must hold nothing that the log does not. One that named no log so far names this one afterwards. */
  async #compare(inspection: ReplicaInspection): Promise<void> {
    const { objects } = this.#world;
    const { chunkSizeBytes, storeId } = this.#manifest;
    if (inspection.chunkSizeBytes !== null && inspection.end > 0) {
      if (inspection.chunkSizeBytes !== chunkSizeBytes)
        throw diverged(objects.place, 0, `have chunks of ${inspection.chunkSizeBytes} and ${chunkSizeBytes} bytes`);
      await this.#compareBytes(inspection).catch(async (error: unknown) => {
        const position = isSkuaError(error, 'log_diverged') ? error.data.position : undefined;
        if (position !== undefined)
          await refuseDamaged({
            storage: this.#storage,
            inspection,
            world: this.#world,
            manifest: this.#manifest,
            position,
            signal: this.#parts.signal,
          });
        throw error;
      });
    }
    if (this.#belongs) return;
    await writeLogId(this.#storage, storeId);
    this.#belongs = true;
  }

  async #compareBytes(inspection: ReplicaInspection): Promise<void> {
    const { objects, digests } = this.#world;
    const manifest = this.#manifest;
    const table = await openInspected(
      this.#storage,
      inspection,
      this.#belongs ? compareFrom(inspection.end, manifest) : 0,
    );
    try {
      const parts = { table, manifest, objects };
      const alike = await checkLastBytes(parts);
      if (this.#belongs) return;
      // Nothing else says that it is a copy of this log: some record of it must.
      if (manifest.logEnd > 0 && alike === 0 && (await checkFirstBytes(parts)) === 0)
        throw diverged(objects.place, 0, 'have no record that could be compared');
      if (inspection.end <= manifest.logEnd) return;
      const tail = await listTail(objects, manifest.boundary, TAIL_COMMITS_MAX);
      if (tail === null)
        throw new SkuaError(
          'commit_lost',
          `Commit ${manifest.boundary} no longer exists: a newer manifest includes it.`,
          { number: manifest.boundary },
        );
      await locateInTail(table, manifest, readTail(objects, digests, tail), objects.place);
    } finally {
      await table.close();
    }
  }

  /** Before the first change for a manifest. */
  async #begin(inspection: ReplicaInspection): Promise<void> {
    const from = inspection.end;
    const common = commonEnd(inspection, this.#manifest);
    const { chunkSizeBytes } = this.#manifest;
    const rest = common % chunkSizeBytes === 0 ? 0 : restBytes(this.#manifest, common);
    const bytes = rest + missingBytes(this.#manifest, Math.ceil(common / chunkSizeBytes) * chunkSizeBytes);
    this.#bytesTotal = this.#bytesDone + bytes;
    const free = await this.#storage.freeBytes();
    // The rest of a chunk is there twice for a while.
    const needed = bytes + rest + SPARE_BYTES;
    if (bytes > 0 && needed > free)
      throw new SkuaError(
        'disk_full',
        `Catching up with the log takes ${needed} bytes, and ${free} are free in the directory. Free space, then start again: what was downloaded is kept.`,
        { bytes: needed, free },
      );
    if (bytes > 0)
      this.#world.log.info('the replica is catching up with the files of the log', {
        from,
        to: this.#manifest.logEnd,
        bytes,
        manifest: this.#manifest.number,
      });
    this.#told(0);
    await forgetEpoch(this.#storage);
  }

  #told(count: number): void {
    this.#bytesDone += count;
    this.#parts.onProgress?.({
      phase: 'catching-up',
      bytesDone: this.#bytesDone,
      bytesTotal: Math.max(this.#bytesTotal, this.#bytesDone),
    });
  }

  /** One of the steps that bring a copy nearer to the manifest's end. Another survey tells what it came to. */
  async #step(inspection: ReplicaInspection): Promise<void> {
    const { chunkSizeBytes } = this.#manifest;
    const { digests } = this.#world;
    const common = commonEnd(inspection, this.#manifest);
    const isInside = inspection.end % chunkSizeBytes !== 0;
    // Recovery first, so that what is built upon is durable; the rest of a chunk is appended by the process that has
    // recovered it.
    const needsRecovery =
      !this.#isSettled && inspection.chunkSizeBytes !== null && (common < inspection.end || !isInside);
    if (inspection.isCutPending || needsRecovery) return this.#opened(async () => {});
    if (common < inspection.end) {
      this.#world.log.warn(
        'the replica is truncated to the start of a file of the log: the rest was scavenged in the bucket meanwhile',
        { from: inspection.end, to: common },
      );
      await markScavengeDue(this.#storage);
      await requestTruncation(this.#storage, common);
      return this.#opened(async () => {});
    }
    if (await dropIndexBeyond(this.#storage, digests, inspection.end))
      this.#world.log.warn('the index is ahead of the log and is rebuilt', { end: inspection.end });
    const parts = {
      storage: this.#storage,
      world: this.#world,
      manifest: this.#manifest,
      signal: this.#parts.signal,
      onBytes: (count: number) => this.#told(count),
    };
    if (!isInside) return downloadFiles({ ...parts, from: inspection.end });
    return this.#opened((log) => catchUpChunk({ ...parts, log }));
  }

  /** Does work with the log open, which recovers it first, and cuts it back where that was asked for. */
  async #opened(work: (log: TransactionLog) => Promise<void>): Promise<void> {
    const { clock, digests, ids, log } = this.#world;
    const opened = await openLog({
      storage: this.#storage,
      cache: new BlockCache(0),
      digests,
      ids,
      clock,
      log,
      chunkSizeBytes: this.#manifest.chunkSizeBytes,
      truncationBytesMax: -1,
      isReplica: true,
    });
    this.#isSettled = true;
    try {
      await work(opened);
    } finally {
      await opened.close();
    }
  }
}
