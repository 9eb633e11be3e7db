import { isSkuaError, SkuaError, type SkuaErrorOf } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { isOfKind } from '../../ports/object-kinds.ts';
import type { Shape } from '../../base/shape.ts';
import type { Repository } from '../repository/api.ts';
import {
  ACTIVE,
  BLOBS,
  isRepositoryKey,
  TESTED_KEY,
  PRUNING,
  SUSPECT_KEY,
  KEPT_MARKS,
  UNREFERENCED_KEY,
} from '../format/repository-keys.ts';
import { blobsOf } from '../format/snapshot-manifest.ts';
import type { Manifest } from '../format/snapshot-manifest.ts';
import { intentShape, noteSuspects, testedShape, suspectBlobs, suspectShape } from '../notes/notes.ts';
import { damaged, endWhenAborted } from '../repository/repository-objects.ts';
import { blobIdOf } from '../repository/repository.ts';
import { keptMarksShape } from '../kept-marks/kept-marks.ts';
import { unreferencedShape } from '../prune/prune.ts';

/** Blobs that are read at once. */
const PARALLEL = 4;
/** Spreads seeds over all 32-bit numbers. */
const SEED_STEP = 0x9e37_79b1;

export interface RepositoryFinding {
  /** Of the object that is missing, damaged or unknown. */
  readonly key: string;
  readonly kind: 'missing' | 'damaged' | 'unknown';
  readonly message: string;
  /** Ids of the backups that need it. */
  readonly backups: readonly string[];
}

export interface VerifyRepositoryOptions {
  readonly repository: Repository;
  /** Part of all content that is read, 0 to 1; the rest is only looked for. Default 1. */
  readonly subset?: number;
  /** Another seed reads another part; parts of seeds that follow one another differ most. */
  readonly seed?: number;
  /** Only what this backup needs. */
  readonly backupId?: string;
  readonly onFinding?: (finding: RepositoryFinding) => void;
  readonly onProgress?: (bytesDone: number, bytesTotal: number) => void;
  readonly signal?: AbortSignal;
}

export interface VerifyRepositoryReport {
  readonly manifests: number;
  readonly blobs: number;
  readonly blobsRead: number;
  readonly bytesRead: number;
  readonly pieces: number;
  readonly findings: number;
}

/**
 * Checks that every backup can be restored: all manifests, that every object they need is there, and the content of all
 * or a part of them. Damaged blobs are noted, so that the next backup stores them anew. Only reads otherwise, and runs
 * beside backups.
 */
export async function verifyRepository(options: VerifyRepositoryOptions): Promise<VerifyRepositoryReport> {
  return await new RepositoryCheck(options).run();
}

class RepositoryCheck {
  readonly #options: VerifyRepositoryOptions;
  readonly #repository: Repository;
  /** Blobs by their id: the backups that need them, and the size that they should have. */
  readonly #needed = new Map<string, { readonly backups: string[]; readonly sizeBytes: number }>();
  #manifests = 0;
  #blobs = 0;
  #blobsRead = 0;
  #bytesRead = 0;
  #pieces = 0;
  #findings = 0;

  constructor(options: VerifyRepositoryOptions) {
    this.#options = options;
    this.#repository = options.repository;
  }

  async run(): Promise<VerifyRepositoryReport> {
    const { backupId } = this.#options;
    const manifests = await this.#readManifests();
    const chosen = backupId === undefined ? manifests : manifests.filter(({ id }) => id === backupId);
    if (backupId !== undefined && chosen.length === 0)
      throw new SkuaError('backup_not_found', `There is no readable backup ${backupId} in ${this.#repository.place}.`, {
        id: backupId,
      });
    for (const manifest of chosen) {
      for (const { blob, sizeBytes } of blobsOf(manifest)) {
        const needed = this.#needed.get(blob);
        if (needed === undefined) this.#needed.set(blob, { backups: [manifest.id], sizeBytes });
        else if (needed.backups.at(-1) !== manifest.id) needed.backups.push(manifest.id);
      }
    }
    await this.#checkBlobs(backupId === undefined);
    for (const manifest of chosen) await this.#checkShipped(manifest);
    if (backupId === undefined) await this.#checkRest();
    return {
      manifests: this.#manifests,
      blobs: this.#blobs,
      blobsRead: this.#blobsRead,
      bytesRead: this.#bytesRead,
      pieces: this.#pieces,
      findings: this.#findings,
    };
  }

  /** Read anew, whatever is known of them. */
  async #readManifests(): Promise<Manifest[]> {
    const manifests: Manifest[] = [];
    for (const key of await this.#repository.manifestKeys()) {
      this.#manifests++;
      await this.#checking([], async () => {
        const manifest = await this.#repository.manifestAt(key);
        // Null where it was pruned meanwhile.
        if (manifest !== null) manifests.push(manifest);
      });
    }
    return manifests;
  }

  async #checkBlobs(isAll: boolean): Promise<void> {
    const there: { readonly id: string; readonly storedBytes: number }[] = [];
    const missing = new Set(this.#needed.keys());
    for await (const { id, storedBytes } of this.#repository.blobs()) {
      if (!isAll && !missing.has(id)) continue;
      there.push({ id, storedBytes });
      missing.delete(id);
    }
    this.#blobs = there.length;
    const bad = new Set<string>();
    for (const id of missing) await this.#reportMissing(id);
    const toRead = there.filter(({ id }) => this.#isInSubset(id));
    const bytesTotal = toRead.reduce((sum, { storedBytes }) => sum + storedBytes, 0);
    let bytesDone = 0;
    this.#options.onProgress?.(0, bytesTotal);
    await inParallel(toRead.length, PARALLEL, async (i) => {
      const { id, storedBytes } = toRead[i]!;
      if (!(await this.#checkBlob(id))) bad.add(id);
      bytesDone += storedBytes;
      this.#options.onProgress?.(bytesDone, bytesTotal);
    });
    await this.#noteSuspects(bad, toRead);
  }

  /** Damaged ones are added, sound ones taken away; what was not read stays as it was. */
  async #noteSuspects(bad: ReadonlySet<string>, read: readonly { readonly id: string }[]): Promise<void> {
    const before = await suspectBlobs(this.#repository);
    const after = new Set(before);
    for (const { id } of read) after.delete(id);
    for (const id of bad) after.add(id);
    if (after.size === before.size && [...after].every((id) => before.has(id))) return;
    await noteSuspects(this.#repository, after).catch((error: unknown) => {
      // A caller that may only read can check all the same.
      if (!isSkuaError(error, 'storage_denied')) throw error;
    });
  }

  /** One that vanished together with the backups that needed it was pruned while this went on. */
  async #reportMissing(id: string): Promise<void> {
    const still: string[] = [];
    for (const backup of this.#needed.get(id)!.backups) if (await this.#isStillThere(backup)) still.push(backup);
    if (still.length === 0 || (await this.#repository.hasBlob(id))) return;
    const key = this.#repository.blobKey(id);
    this.#report({
      key,
      kind: 'missing',
      message: damaged(this.#repository.place, key, 'is missing').message,
      backups: still,
    });
  }

  async #isStillThere(backupId: string): Promise<boolean> {
    return (await this.#repository.manifestKeys()).some(({ id }) => id === backupId);
  }

  async #checkBlob(id: string): Promise<boolean> {
    const needed = this.#needed.get(id);
    return await this.#checking(needed?.backups ?? [], async () => {
      // One that was pruned since it was listed is no loss.
      if (needed === undefined && !(await this.#repository.hasBlob(id))) return;
      const sizeBytes = needed?.sizeBytes ?? (await this.#repository.blobSize(id));
      for await (const piece of this.#repository.readBlob({ blob: id, sizeBytes }, undefined, this.#options.signal))
        this.#bytesRead += piece.length;
      this.#blobsRead++;
    });
  }

  /** A window over all ids, which are evenly spread, that the seed shifts. */
  #isInSubset(id: string): boolean {
    const { subset = 1, seed = 0 } = this.#options;
    return ((Number.parseInt(id.slice(0, 8), 16) + Math.imul(seed, SEED_STEP)) >>> 0) / 4_294_967_296 < subset;
  }

  async #checkShipped({ id }: Manifest): Promise<void> {
    const backups = [id];
    const list = () => this.#repository.shipped(id, (_, error) => this.#reportError(error, backups));
    const pieces = await list().catch((error: unknown) => {
      // The backup was pruned meanwhile.
      if (isSkuaError(error, 'backup_not_found')) return [];
      throw error;
    });
    for (const piece of pieces) {
      this.#pieces++;
      await this.#checking(backups, async () => {
        this.#bytesRead += (await this.#repository.readShipped(piece)).length;
      });
    }
  }

  /** Small objects, and what does not belong here. */
  async #checkRest(): Promise<void> {
    for await (const { key } of this.#repository.everything()) {
      const shape = smallShape(key);
      if (shape !== null)
        await this.#checking([], async () => {
          await this.#repository.readObject(key, shape);
        });
      else if (!isRepositoryKey(key) || (isOfKind(BLOBS, key) && blobIdOf(key) === null))
        this.#report({
          key,
          kind: 'unknown',
          message: `${key} in ${this.#repository.place} does not belong to the repository and is skipped. Find out what put it there.`,
          backups: [],
        });
    }
  }

  /** False when it was damaged. */
  async #checking(backups: readonly string[], check: () => Promise<void>): Promise<boolean> {
    endWhenAborted(this.#options.signal);
    try {
      await check();
      return true;
    } catch (error) {
      if (!isSkuaError(error, 'repository_damaged')) throw error;
      this.#reportError(error, backups);
      return false;
    }
  }

  #reportError(error: SkuaErrorOf<'repository_damaged'>, backups: readonly string[]): void {
    const { key, isMissing = false } = error.data;
    this.#report({ key: String(key), kind: isMissing ? 'missing' : 'damaged', message: error.message, backups });
  }

  #report(finding: RepositoryFinding): void {
    this.#findings++;
    this.#options.onFinding?.(finding);
  }
}

const SMALL: ReadonlyMap<string, Shape<unknown>> = new Map<string, Shape<unknown>>([
  [TESTED_KEY, testedShape],
  [UNREFERENCED_KEY, unreferencedShape],
  [SUSPECT_KEY, suspectShape],
]);

/** What a small object may say; null for another one. */
function smallShape(key: string): Shape<unknown> | null {
  if (isOfKind(KEPT_MARKS, key)) return keptMarksShape;
  return isOfKind(ACTIVE, key) || isOfKind(PRUNING, key) ? intentShape : (SMALL.get(key) ?? null);
}
