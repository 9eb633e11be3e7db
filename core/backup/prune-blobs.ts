import { isSkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import { endWhenAborted } from './blob-writer.ts';
import type { PruneIntent } from './intents.ts';
import type { Repository } from './repository-api.ts';

/** A blob without use goes when it was first seen so this long ago, in milliseconds. */
export const UNREFERENCED_MS = 86_400_000;
/** Blobs removed between two looks for backups. */
const BATCH = 100;
const UNREFERENCED_KEY = 'unreferenced';
/** First seen without use so long ago that it goes at once. */
const AT_ONCE = 0;

/** `seen`: when a blob was first found to be without use, by its id. */
interface UnreferencedText { readonly seen: Readonly<Record<string, number>> }

export interface PruneBlobsParts {
  readonly repository: Repository;
  /** Null for a dry run. */
  readonly intent: PruneIntent | null;
  readonly clock: Clock;
  readonly needed: ReadonlySet<string>;
  /** Of backups that were removed because they hold what was erased: these go without waiting. */
  readonly erased: ReadonlySet<string>;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface PrunedBlobs {
  readonly blobsRemoved: number;
  readonly bytesRemoved: number;
  /** Without use, and not yet for long enough. */
  readonly blobsWaiting: number;
  /** A backup runs, so nothing was removed: to be repeated. */
  readonly isBackupRunning: boolean;
}

export async function pruneBlobs(parts: PruneBlobsParts): Promise<PrunedBlobs> {
  const { repository, intent, clock, needed, erased, signal } = parts;
  const nowMs = clock.nowMs();
  const before = await firstSeen(repository);
  const seen: Record<string, number> = {};
  const bytes = new Map<string, number>();
  for await (const { id, storedBytes } of repository.blobs()) {
    if (needed.has(id)) continue;
    seen[id] = erased.has(id) ? AT_ONCE : (before[id] ?? nowMs);
    bytes.set(id, storedBytes);
  }
  const due = Object.keys(seen).filter((id) => nowMs - seen[id]! >= UNREFERENCED_MS);
  const report = (removed: number, isBackupRunning: boolean): PrunedBlobs => ({
    blobsRemoved: removed, bytesRemoved: due.slice(0, removed).reduce((sum, id) => sum + bytes.get(id)!, 0), blobsWaiting: bytes.size - due.length, isBackupRunning,
  });
  if (intent === null) return report(due.length, false);
  // Before anything goes, so that an interruption forgets nothing.
  await noteSeen(repository, before, seen);
  let removed = 0;
  while (removed < due.length) {
    endWhenAborted(signal);
    if (!(await intent.mayRemove())) return report(removed, true);
    const batch = due.slice(removed, removed + BATCH);
    await repository.removeBlobs(batch);
    removed += batch.length;
    parts.onProgress?.(removed, due.length);
  }
  await noteSeen(repository, seen, Object.fromEntries(Object.entries(seen).filter(([, seenMs]) => nowMs - seenMs < UNREFERENCED_MS)));
  return report(removed, false);
}

/** What can't be read is forgotten: blobs then stay for another day. */
async function firstSeen(repository: Repository): Promise<Readonly<Record<string, number>>> {
  try {
    return ((await repository.readObject(UNREFERENCED_KEY)) as UnreferencedText | null)?.seen ?? {};
  } catch (error) {
    if (isSkuaError(error, 'repository_damaged')) return {};
    throw error;
  }
}

async function noteSeen(repository: Repository, before: Readonly<Record<string, number>>, seen: Readonly<Record<string, number>>): Promise<void> {
  const ids = Object.keys(seen);
  if (ids.length === Object.keys(before).length && ids.every((id) => before[id] === seen[id])) return;
  if (ids.length === 0) await repository.removeObjects([UNREFERENCED_KEY]);
  else await repository.writeObject(UNREFERENCED_KEY, { seen } satisfies UnreferencedText);
}
