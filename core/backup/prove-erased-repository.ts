import type { StreamHasher } from '../stream-hash.ts';
import { proveErased } from '../scavenge/erasure/prove-erased.ts';
import type { ErasureFinding, ErasureProgress, ErasureSummary } from '../scavenge/erasure/prove-erased.ts';
import type { Storage } from '../ports/storage.ts';
import { timestampText } from '../time.ts';
import { blobPart, filesOfBackup, PartStorage } from './manifest-storage.ts';
import type { Part } from './manifest-storage.ts';
import { blobsOf } from './manifests.ts';
import type { Manifest } from './manifest.ts';
import type { Repository } from './repository-api.ts';

export interface ProveErasedInRepositoryOptions {
  readonly repository: Repository;
  /** Ids of events. */
  readonly events?: readonly string[];
  /** A stream, all of whose events should be gone. */
  readonly stream?: string;
  readonly hasher?: StreamHasher;
  /** Findings after this many in one backup are only counted. Default 1000. */
  readonly findingsMax?: number;
}

/**
 * Looks for what remains of events or of a stream in a repository: in the files of every backup and what was shipped after it,
 * and in blobs that no backup needs any more. Content that several backups share is searched once, in the newest; where it is
 * found, `file` names the backup and its file. Throws as `proveErased` does, and `repository_damaged`: what can't be read can't be judged.
 */
export async function* proveErasedInRepository(options: ProveErasedInRepositoryOptions): AsyncGenerator<ErasureFinding | ErasureProgress, ErasureSummary> {
  const { repository } = options;
  const searched = new Set<string>();
  const sum = { files: 0, bytes: 0, traces: 0, residues: 0 };
  const bytesTotal = await totalBytes(repository);
  for (const { id } of await repository.backups()) {
    const manifest = await repository.manifest(id);
    const files = filesOfBackup(repository, manifest, await repository.shipped(id));
    for (const [path, blob] of singleBlobs(manifest)) if (searched.has(blob)) files.delete(path);
    for (const { blob } of blobsOf(manifest)) searched.add(blob);
    yield* searchIn(options, new PartStorage(files), `backup ${id} of ${timestampText(manifest.createdMs, 0)}`, sum, bytesTotal);
  }
  const unused = new Map<string, readonly Part[]>();
  for await (const { id } of repository.blobs()) if (!searched.has(id)) unused.set(`unused-${id}`, [blobPart(repository, 0, { blob: id, sizeBytes: await repository.blobSize(id) })]);
  if (unused.size > 0) {
    // A search wants a directory that looks like one.
    unused.set('writer.chk', []);
    yield* searchIn(options, new PartStorage(unused), 'blobs that no backup needs', sum, bytesTotal);
  }
  return sum;
}

/** Files that are one blob: the tail is put together of several, and is searched in every backup. */
function singleBlobs({ chunks, index, scavengeDb }: Manifest): [string, string][] {
  return [...chunks, ...(index?.files ?? []), ...(scavengeDb === null ? [] : [scavengeDb])].map(({ path, blob }) => [path, blob]);
}

async function* searchIn({ events, stream, hasher, findingsMax }: ProveErasedInRepositoryOptions, storage: Storage, where: string, sum: { -readonly [K in keyof ErasureSummary]: number }, bytesTotal: number): AsyncGenerator<ErasureFinding | ErasureProgress, void> {
  const before = sum.bytes;
  const search = proveErased({ storage, ...(events && { events }), ...(stream !== undefined && { stream }), ...(hasher && { hasher }), ...(findingsMax !== undefined && { findingsMax }) });
  for (let step = await search.next(); ; step = await search.next()) {
    if (step.done === true) {
      for (const name of ['files', 'bytes', 'traces', 'residues'] as const) sum[name] += step.value[name];
      return;
    }
    const said = step.value;
    if (said.kind === 'progress') {
      const bytesDone = before + said.bytesDone;
      yield { kind: 'progress', bytesDone, bytesTotal: Math.max(bytesTotal, bytesDone) };
    } else yield { ...said, file: `${said.file} in ${where}` };
  }
}

/** About: frames may be compressed, and tails are searched once for each backup. */
async function totalBytes(repository: Repository): Promise<number> {
  let total = 0;
  for await (const { storedBytes } of repository.blobs()) total += storedBytes;
  return total;
}
