import { isSkuaError, SkuaError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Repository } from '../repository/api.ts';
import { aheadOfNewest, blobsOf } from '../repository/manifest.ts';
import type { Manifest, ManifestSummary } from '../repository/manifest.ts';
import { MANIFEST_PREFIX, manifestKey } from '../repository/manifests.ts';
import { PruneIntent } from '../repository/notes.ts';
import { endWhenAborted } from '../repository/objects.ts';
import { SHIPPED_PREFIX } from '../repository/shipped.ts';
import { heldFromBeforeScavenges, restorableFrom, retained } from './retention.ts';
import type { Restorable, Retention } from './retention.ts';

export interface PruneOptions {
  readonly repository: Repository;
  /** Null keeps all backups that `isErased` leaves. */
  readonly keep: Retention | null;
  /** Also drop what holds log from before a scavenge; its content goes at once. */
  readonly isErased?: boolean;
  /** Change nothing, and say what would be done. */
  readonly isDryRun?: boolean;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface PruneReport extends PrunedBlobs {
  readonly kept: readonly string[];
  readonly removed: readonly { readonly id: string; readonly createdMs: number; readonly why: 'retention' | 'erased' }[];
  /** From where on each node's log can be restored to any position, before and after. */
  readonly restorableBefore: readonly Restorable[];
  readonly restorableAfter: readonly Restorable[];
}

/**
 * Removes backups that need not be kept, then blobs that no backup needs. Safe beside backups: while one is announced no blob is
 * removed (`core/backup/repository/notes.ts`), and otherwise only blobs that were first seen without use 24 hours ago. Rejects with
 * `repository_damaged` before anything is removed when a manifest can't be read: what it needs is not known.
 */
export async function pruneRepository(options: PruneOptions): Promise<PruneReport> {
  const { repository, clock, signal, isDryRun = false } = options;
  if (isDryRun) return await prune(options, null);
  const intent = await PruneIntent.begin({ repository, clock, signal }, options.ids);
  try {
    return await prune(options, intent);
  } finally {
    await intent.end();
  }
}

async function prune(options: PruneOptions, intent: PruneIntent | null): Promise<PruneReport> {
  const { repository, signal } = options;
  // In this order: a piece whose backup is not listed afterwards has none.
  const pieces = await shippedKeys(repository);
  const manifests = await readManifests(repository);
  const summaries = await repository.backups(() => {});
  const shippedEnds = new Map(summaries.map(({ id, shippedEnd }) => [id, shippedEnd]));
  const { kept, removed } = decide(manifests, summaries, options);
  if (intent !== null) {
    for (const { id } of removed) {
      endWhenAborted(signal);
      await repository.removeManifest(id).catch((error: unknown) => {
        // Another prune was faster.
        if (!isSkuaError(error, 'backup_not_found')) throw error;
      });
    }
    const ids = new Set(manifests.map(({ id }) => id));
    await repository.removeObjects(pieces.filter((key) => !ids.has(key.split('/')[1]!)));
  }
  const keptManifests = manifests.filter(({ id }) => kept.has(id));
  const erased = new Set(removed.filter(({ why }) => why === 'erased').map(({ id }) => id));
  const blobs = await pruneBlobs({
    repository, intent, clock: options.clock, signal,
    needed: blobIds(keptManifests), erased: blobIds(manifests.filter(({ id }) => erased.has(id))),
    ...(options.onProgress !== undefined && { onProgress: options.onProgress }),
  });
  return { ...blobs, kept: [...kept], removed, restorableBefore: restorableFrom(manifests, shippedEnds), restorableAfter: restorableFrom(keptManifests, shippedEnds) };
}

function decide(manifests: readonly Manifest[], summaries: readonly ManifestSummary[], { keep, isErased = false }: PruneOptions): { kept: Set<string>; removed: PruneReport['removed'][number][] } {
  const kept = keep === null ? new Set(manifests.map(({ id }) => id)) : retained(manifests, keep);
  // Until shipping has caught up behind the newest, the end of the log is with one before it.
  for (const ofNode of Map.groupBy(summaries, ({ nodeId }) => nodeId).values()) for (const { id } of aheadOfNewest(ofNode)) kept.add(id);
  const shippedEnds = new Map(summaries.map(({ id, shippedEnd }) => [id, shippedEnd]));
  const erased = new Set(isErased ? heldFromBeforeScavenges(manifests, shippedEnds).map(({ id }) => id) : []);
  for (const id of erased) kept.delete(id);
  const removed = manifests.filter(({ id }) => !kept.has(id)).map(({ id, createdMs }) => ({ id, createdMs, why: erased.has(id) ? ('erased' as const) : ('retention' as const) }));
  return { kept, removed };
}

function blobIds(manifests: readonly Manifest[]): Set<string> {
  const ids = new Set<string>();
  for (const manifest of manifests) for (const { blob } of blobsOf(manifest)) ids.add(blob);
  return ids;
}

async function shippedKeys(repository: Repository): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of repository.listObjects(SHIPPED_PREFIX)) keys.push(key);
  return keys;
}

/** All of them, oldest first. One that was removed since it was listed is left out. */
async function readManifests(repository: Repository): Promise<Manifest[]> {
  const manifests: Manifest[] = [];
  for await (const { key } of repository.listObjects(MANIFEST_PREFIX)) {
    const manifest = (await repository.readObject(key)) as Manifest | null;
    if (manifest === null) continue;
    if (manifest.format !== 1 || manifestKey(manifest) !== key) throw new SkuaError('repository_damaged', `The object ${key} in ${repository.place} is no manifest that belongs there. Nothing is pruned while it is not known which blobs it needs: find out who put it there.`, { key, place: repository.place });
    manifests.push(manifest);
  }
  return manifests;
}

/** A blob without use goes when it was first seen so this long ago, in milliseconds. */
const UNREFERENCED_MS = 86_400_000;
/** Blobs removed between two looks for backups. */
const BATCH = 100;
const UNREFERENCED_KEY = 'unreferenced';
/** First seen without use so long ago that it goes at once. */
const AT_ONCE = 0;

/** `seen`: when a blob was first found to be without use, by its id. */
interface UnreferencedText { readonly seen: Readonly<Record<string, number>> }

interface PruneBlobsParts {
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

interface PrunedBlobs {
  readonly blobsRemoved: number;
  readonly bytesRemoved: number;
  /** Without use, and not yet for long enough. */
  readonly blobsWaiting: number;
  /** A backup runs, so nothing was removed: to be repeated. */
  readonly isBackupRunning: boolean;
}

async function pruneBlobs(parts: PruneBlobsParts): Promise<PrunedBlobs> {
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
