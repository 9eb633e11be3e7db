import { isSkuaError } from '../errors.ts';
import { readBloomHeader } from '../index/bloom.ts';
import { EXISTENCE_DATA_PATH } from '../index/existence-filter.ts';
import { inParallel } from './in-parallel.ts';
import type { Manifest, ManifestFile } from './manifest.ts';
import { filesAtOnce, restoreFile, type FileRestore } from './restore-file.ts';
import type { Skipped } from './restore-report.ts';
import type { RestoreWorld } from './restore-world.ts';

/** Bytes that hold the header of an existence filter. */
const BLOOM_HEADER_BYTES = 64;

/** Sets of files that are restored whole or not at all; none for a log that ends before they were made. */
export function indexSets(manifest: Manifest, position: number): ManifestFile[][] {
  const sets: ManifestFile[][] = [];
  // An index may not know more than the log: it would be discarded.
  if (manifest.index !== null && manifest.index.commitCheckpoint < position) sets.push([...manifest.index.files]);
  if (manifest.scavengeDb !== null && position >= manifest.checkpoints.writer) sets.push([manifest.scavengeDb]);
  return sets;
}

/** Writes one set where damage may be passed over: a damaged set is left out, since it is made anew from the log; null then. */
export async function restoreSet(options: FileRestore, files: readonly ManifestFile[], onSkipped: (skipped: Skipped) => void): Promise<number | null> {
  try {
    await inParallel(files.length, filesAtOnce(options), (i) => restoreFile(options, files[i]!));
    return files.length;
  } catch (error) {
    if (!isSkuaError(error, 'repository_damaged')) throw error;
    for (const { path } of files) await options.world.target.remove(path);
    onSkipped({ key: typeof error.data.key === 'string' ? error.data.key : null, path: files[0]!.path, reason: `${error.message} The ${files.length} files that belong together are left out and made anew from the log.`, lost: null });
    return null;
  }
}

/** Bytes of bits of the restored existence filter, so that the dry start does not take it for one of another size; null without one. */
export async function existenceBytesOf({ target }: RestoreWorld): Promise<number | null> {
  const size = await target.size(EXISTENCE_DATA_PATH);
  if (size === null) return null;
  const file = await target.open(EXISTENCE_DATA_PATH, 'read');
  try {
    return readBloomHeader(await file.read(0, BLOOM_HEADER_BYTES), size)?.logicalBytes ?? null;
  } finally {
    await file.close();
  }
}
