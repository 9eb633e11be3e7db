import { gather } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { streamHasher } from '../../base/stream-hash.ts';
import type { Digests } from '../../ports/digests.ts';
import { isOfKind } from '../../ports/object-kinds.ts';
import type { Storage } from '../../ports/storage.ts';
import type { MarkColumns } from '../../streams/api.ts';
import { ReadRecords } from '../../streams/committed/committed.ts';
import { decodeMarks, MARKS_FILE, writeMarksTable } from '../../streams/format/marks-table.ts';
import { ALL_MARKS } from '../../streams/format/mark-columns.ts';
import { Redactions } from '../../streams/redactions/redactions.ts';
import { keptMarksKeys, readKeptMarks } from '../kept-marks/kept-marks.ts';
import { SHIPPED } from '../format/repository-keys.ts';
import { aheadOfNewest } from '../format/snapshot-manifest.ts';
import type { BlobRef, Manifest, ShippedPiece } from '../format/snapshot-manifest.ts';
import type { Repository } from '../repository/api.ts';
import { manifestKey } from '../repository/manifests.ts';

/** Marks that a restore is to apply where it finds their events, and what they may lack. */
export interface FoundMarks {
  readonly marks: MarkColumns;
  readonly warnings: readonly string[];
}

/**
 * All marks of redaction that a repository knows, of whatever node and moment: an event has its mark by position and
 * id, so that those of other logs do no harm, and a backup that a wrong clock dates before the restored one is no
 * exception. They are in the tables of the manifests, and in log that was shipped behind the newest of each node. What
 * can't be read, and may have some that are not in the restored backup, is a warning.
 */
export function marksOfRepository(repository: Repository, restored: Manifest, digests: Digests): Promise<FoundMarks> {
  return new MarksSearch(repository, restored, digests).run();
}

class MarksSearch {
  readonly #repository: Repository;
  readonly #restored: Manifest;
  readonly #digests: Digests;
  readonly #marks = new Redactions();
  readonly #records = new ReadRecords(streamHasher);
  readonly #warnings: string[] = [];

  constructor(repository: Repository, restored: Manifest, digests: Digests) {
    this.#repository = repository;
    this.#restored = restored;
    this.#digests = digests;
  }

  async run(): Promise<FoundMarks> {
    // Backups of which what was shipped is damaged: their manifests may be sound.
    const shipped = new Set<string>();
    const restored = manifestKey(this.#restored);
    const summaries = await this.#repository.backups((key, error) => {
      if (isOfKind(SHIPPED, key)) shipped.add(key.split('/')[1]!);
      else if (key > restored) this.#warn(`The newer manifest ${key}`, error);
    });
    const tables = new Map<string, BlobRef>();
    const note = (table: BlobRef | undefined) => table !== undefined && tables.set(table.blob, table);
    for (const { redactions } of summaries) note(redactions);
    for (const id of shipped)
      await this.#reading(`The manifest of backup ${id}`, async () =>
        note((await this.#repository.manifest(id)).redactions),
      );
    for (const table of tables.values()) await this.#table(table);
    for (const key of await keptMarksKeys(this.#repository)) await this.#kept(key);
    for (const ofNode of Map.groupBy(summaries, ({ nodeId }) => nodeId).values())
      for (const { id } of [ofNode[0]!, ...aheadOfNewest(ofNode)]) shipped.add(id);
    for (const id of shipped) await this.#shipped(id);
    return { marks: this.#marks.columns(...ALL_MARKS), warnings: this.#warnings };
  }

  async #table(ref: BlobRef): Promise<void> {
    const key = this.#repository.blobKey(ref.blob);
    await this.#reading(`The table of redactions ${key}`, async () => {
      const bytes = await gather(this.#repository.readBlob(ref), ref.sizeBytes);
      this.#add(decodeMarks(key, bytes, this.#digests));
    });
  }

  async #kept(key: string): Promise<void> {
    await this.#reading(`The redactions ${key}`, async () => {
      const marks = await readKeptMarks(this.#repository, key, this.#digests);
      if (marks !== null) this.#add(marks);
    });
  }

  /** Where they lie in their own logs means nothing here. */
  #add({ keys, markedAt, ...marks }: MarkColumns): void {
    const names = keys.map(([i, name]) => [i, name, 0] as const);
    this.#marks.addAll({ ...marks, keys: names, markedAt: markedAt.map(() => 0) });
  }

  async #shipped(id: string): Promise<void> {
    await this.#reading(`The log shipped after backup ${id}`, async () => {
      const pieces = await this.#repository.shipped(id, (key, error) => this.#warn(`The shipped log ${key}`, error));
      for (const piece of pieces) if (piece.hasMarks === true) await this.#piece(piece);
    });
  }

  async #piece(piece: ShippedPiece): Promise<void> {
    await this.#reading(`The log shipped from position ${piece.from} on`, async () => {
      const bytes = await this.#repository.readShipped(piece);
      for (const { mark } of this.#records.read(bytes, piece.from).marks) this.#marks.add(mark, 0);
    });
  }

  async #reading(what: string, read: () => Promise<unknown>): Promise<void> {
    try {
      await read();
    } catch (error) {
      // A prune was faster.
      if (isSkuaError(error, 'backup_not_found')) return;
      if (!isSkuaError(error, 'repository_damaged') && !isSkuaError(error, 'log_corrupt')) throw error;
      this.#warn(what, error);
    }
  }

  #warn(what: string, error: Error): void {
    this.#warnings.push(
      `${what} can't be read, so that events which were redacted may be readable: give them with --redactions. ${error.message}`,
    );
  }
}

/**
 * Puts the marks beside a log that is being restored, where its first opening finds them; the one that proves it leaves
 * those that have an effect.
 */
export async function putFoundMarks(target: Storage, found: readonly MarkColumns[], digests: Digests): Promise<void> {
  const marks = new Redactions();
  for (const columns of found) marks.addAll(columns);
  if (marks.count > 0) await writeMarksTable(target, MARKS_FILE, marks.columns(...ALL_MARKS), digests);
}
