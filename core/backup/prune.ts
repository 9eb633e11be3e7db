import { isSkuaError, SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import { endWhenAborted } from './blob-writer.ts';
import { aheadOfNewest } from './choose-latest.ts';
import { heldFromBeforeScavenges, restorableFrom } from './erased.ts';
import type { Restorable } from './erased.ts';
import { PruneIntent } from './intents.ts';
import { blobsOf, MANIFEST_PREFIX, manifestKey } from './manifests.ts';
import type { Manifest, ManifestSummary } from './manifest.ts';
import { pruneBlobs } from './prune-blobs.ts';
import type { PrunedBlobs } from './prune-blobs.ts';
import { retained } from './retention.ts';
import type { Retention } from './retention.ts';
import type { Repository } from './repository-api.ts';
import { SHIPPED_PREFIX } from './shipped.ts';

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
 * removed (`core/backup/intents.ts`), and otherwise only blobs that were first seen without use 24 hours ago. Rejects with
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
