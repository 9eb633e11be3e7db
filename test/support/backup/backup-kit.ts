import { createBackup } from '../../../core/backup/create/create.ts';
import type { CreateBackupOptions, CreatedBackup } from '../../../core/backup/create/create.ts';
import { blobsOf } from '../../../core/backup/format/snapshot-manifest.ts';
import type { Manifest } from '../../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../../core/backup/repository/api.ts';
import type { BackupSource, Snapshot } from '../../../core/store/source/source.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import type { DirectoryStore } from '../../../core/store/store.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { ManualClock } from '../manual-clock.ts';
import { SeededIds } from '../seeded-ids.ts';
import { TEST_NOW_MS } from '../test-store.ts';
import { collect, openTestRepository } from './test-repository.ts';

/** A source that counts the bytes that are read of it. */
export class CountingSource implements BackupSource {
  readonly #source: BackupSource;
  bytesRead = 0;

  constructor(source: BackupSource) {
    this.#source = source;
  }

  get snapshot(): Snapshot {
    return this.#source.snapshot;
  }

  async *read(path: string, position: number, length: number): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of this.#source.read(path, position, length)) {
      this.bytesRead += piece.length;
      yield piece;
    }
  }

  release(): Promise<void> {
    return this.#source.release();
  }
}

let nextSeed = 1_000;

export function backUpSource(
  source: BackupSource,
  repository: Repository,
  more: Partial<CreateBackupOptions> = {},
): Promise<CreatedBackup> {
  return createBackup({
    source,
    repository,
    cause: 'manual',
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    ids: new SeededIds(nextSeed++),
    digests: nodeDigests,
    ...more,
  });
}

/** Holds the files of a node, backs them up, and compares every file with what the backup holds of it. */
export async function backUpNode(
  node: DirectoryStore,
  repository: Repository,
  more: Partial<CreateBackupOptions> = {},
): Promise<CreatedBackup & { readonly bytesRead: number }> {
  const hold = await node.hold();
  try {
    const source = new CountingSource(hold);
    const created = await backUpSource(source, repository, more);
    const { bytesRead } = source;
    const differing = await differences(hold, repository, created.manifest);
    if (differing.length > 0) throw new Error(`The backup differs from the node in ${differing.join(', ')}`);
    return { ...created, bytesRead };
  } finally {
    await hold.release();
  }
}

/** The content of every file as a backup holds it; of the chunk that was being written, its header and data. */
export async function filesOf(repository: Repository, manifest: Manifest): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  const { chunks, index, scavengeDb, tail, proofs = [], redactions } = manifest;
  const optional = [scavengeDb, redactions ?? null].filter((file) => file !== null);
  for (const file of [...chunks, ...(index?.files ?? []), ...optional, ...proofs])
    files.set(file.path, await collect(repository.readBlob(file)));
  if (tail !== null) {
    const parts: Uint8Array[] = [Uint8Array.from(Buffer.from(tail.header, 'hex'))];
    for (const segment of tail.segments) parts.push(await collect(repository.readBlob(segment)));
    files.set(tail.path, new Uint8Array(Buffer.concat(parts)));
  }
  return files;
}

async function differences(source: BackupSource, repository: Repository, manifest: Manifest): Promise<string[]> {
  const files = await filesOf(repository, manifest);
  const differing: string[] = [];
  for (const { path, kind, sizeBytes } of source.snapshot.files) {
    if (kind === 'checkpoint' || (manifest.index === null && kind.startsWith('existence-'))) continue;
    const stored = files.get(path);
    if (stored === undefined || Buffer.compare(stored, await collect(source.read(path, 0, sizeBytes))) !== 0)
      differing.push(path);
    files.delete(path);
  }
  const { writer, chaser } = source.snapshot.checkpoints;
  if (manifest.checkpoints.writer !== writer || chaser !== writer) differing.push('writer.chk');
  return [...differing, ...files.keys()];
}

/** What manifests point to and can't be read, by any client of the store: a backup must never leave any. */
export async function danglingIn(objects: ObjectStore, key: Uint8Array | null = null): Promise<string[]> {
  const repository = await openTestRepository(objects, { key, create: true });
  const wrong: string[] = [];
  for (const { id } of await repository.backups()) {
    for (const ref of blobsOf(await repository.manifest(id))) {
      try {
        for await (const _piece of repository.readBlob(ref)) continue;
      } catch (error) {
        wrong.push(`${id}: ${(error as Error).message}`);
      }
    }
  }
  return wrong;
}
