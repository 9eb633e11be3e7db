import { isSkuaError } from '../errors.ts';
import { blobsOf } from './manifests.ts';
import type { Manifest } from './manifest.ts';
import type { Repository } from './repository-api.ts';

/** The object that names damaged blobs: while it does, a backup stores their content again instead of counting on them. */
const SUSPECT_KEY = 'suspect';
/** More than this many are not remembered: such a repository has to be replaced. */
const SUSPECTS_MAX = 100_000;

interface SuspectText { readonly blobs: readonly string[] }

/** An object that can't be read names nothing: the next check makes it anew. */
export async function suspectBlobs(repository: Repository): Promise<ReadonlySet<string>> {
  try {
    return new Set(((await repository.readObject(SUSPECT_KEY)) as SuspectText | null)?.blobs);
  } catch (error) {
    if (isSkuaError(error, 'repository_damaged')) return new Set();
    throw error;
  }
}

export async function noteSuspects(repository: Repository, blobs: ReadonlySet<string>): Promise<void> {
  if (blobs.size === 0) await repository.removeObjects([SUSPECT_KEY]);
  else await repository.writeObject(SUSPECT_KEY, { blobs: [...blobs].slice(0, SUSPECTS_MAX) } satisfies SuspectText);
}

/** What a backup holds was stored anew, and is sound. */
export async function clearSuspects(repository: Repository, suspects: ReadonlySet<string>, manifest: Manifest): Promise<void> {
  if (suspects.size === 0) return;
  const left = new Set(suspects);
  for (const { blob } of blobsOf(manifest)) left.delete(blob);
  if (left.size < suspects.size) await noteSuspects(repository, left);
}
