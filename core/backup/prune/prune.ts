import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Repository } from '../repository/api.ts';
import { aheadOfNewest, blobsOf, madeMsOf } from '../format/snapshot-manifest.ts';
import { SHIPPED, UNREFERENCED_KEY } from '../format/repository-keys.ts';
import type { Manifest, ManifestSummary } from '../format/snapshot-manifest.ts';
import { mapOf, moment, record } from '../../base/shape.ts';
import { PruneIntent, runningBackups } from '../notes/notes.ts';
import type { RunningBackup } from '../notes/notes.ts';
import { endWhenAborted } from '../repository/repository-objects.ts';
import { heldFromBeforeScavenges, newestOfEach, restorableFrom, retained } from './backup-retention.ts';
import type { Restorable, Retention } from './backup-retention.ts';
import { keepMarks, marksOfForgotten } from '../kept-marks/kept-marks.ts';
import { heldMarkedContent } from './marked-content.ts';

export interface PruneOptions {
  readonly repository: Repository;
  /** Null keeps all backups that `isErased` leaves. */
  readonly keep: Retention | null;
  /**
   * Also drop what holds log from before a scavenge, or the content of an event that a scavenge has redacted. It is not
   * known any more whether what earlier prunes dropped held such log, so that all that no backup needs goes at once.
   */
  readonly isErased?: boolean;
  /** Also drop all backups of this node, which is no more: its newest would stay for ever. */
  readonly forgottenNode?: string | null;
  /** Change nothing, and say what would be done. */
  readonly isDryRun?: boolean;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface PruneReport extends PrunedBlobs {
  readonly kept: readonly string[];
  readonly removed: readonly {
    readonly id: string;
    readonly createdMs: number;
    readonly why: 'retention' | 'erased' | 'forgotten';
  }[];
  /** Events whose redaction only backups of the forgotten node knew, and the repository keeps in mind. */
  readonly redactionsKept: number;
  /** From where on each node's log can be restored to any position, before and after. */
  readonly restorableBefore: readonly Restorable[];
  readonly restorableAfter: readonly Restorable[];
}

/**
 * Removes backups that need not be kept, then blobs that no backup needs: where erased content is to go at once, and
 * otherwise those that were first seen without use 24 hours ago, so that backups that follow need not store them again.
 * Safe beside backups: while one is announced no blob is removed (`core/backup/notes/notes.ts`). Rejects before
 * anything is removed with `repository_damaged` when a manifest, or the redactions of a node to forget, can't be read,
 * since what it needs is not known, and
 * with `backup_not_found` for a node to forget of which there is none, or none but of which.
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
  checkForgotten(repository, manifests, options.forgottenNode ?? null);
  const summaries = await repository.backups(() => {});
  const shippedEnds = new Map(summaries.map(({ id, shippedEnd }) => [id, shippedEnd]));
  const erased = options.isErased === true ? await erasedIn(manifests, shippedEnds, options) : new Set<string>();
  const { kept, removed } = decide(manifests, summaries, erased, options);
  const forgotten = await forgottenMarks(manifests, options);
  if (intent !== null) {
    // Before the first backup goes that knows them.
    await forgotten.keep();
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
  const blobs = await pruneBlobs({
    repository,
    intent,
    clock: options.clock,
    signal,
    needed: blobIds(keptManifests),
    isErased: options.isErased ?? false,
    ...(options.onProgress !== undefined && { onProgress: options.onProgress }),
  });
  return {
    ...blobs,
    kept: [...kept],
    removed,
    redactionsKept: forgotten.count,
    restorableBefore: restorableFrom(manifests, shippedEnds),
    restorableAfter: restorableFrom(keptManifests, shippedEnds),
  };
}

/** A slip in the name, or a repository in which nothing would be left, changes nothing. */
function checkForgotten({ place }: Repository, manifests: readonly Manifest[], nodeId: string | null): void {
  if (nodeId === null) return;
  const others = manifests.filter((manifest) => manifest.nodeId !== nodeId);
  if (others.length === manifests.length)
    throw new SkuaError(
      'backup_not_found',
      `There is no backup of node ${nodeId} in ${place}. \`skua backup list\` shows the nodes that have backups.`,
      { nodeId, place },
    );
  if (others.length === 0)
    throw new SkuaError(
      'backup_not_found',
      `All backups in ${place} are of node ${nodeId}, so nothing would be left: remove the repository itself if you no longer need it.`,
      { nodeId, place },
    );
}

/** What was redacted stays so, whatever becomes of the backups that say it. */
async function forgottenMarks(
  manifests: readonly Manifest[],
  { repository, digests, forgottenNode = null }: PruneOptions,
): Promise<{ readonly count: number; keep(): Promise<void> }> {
  const nothing = { count: 0, keep: async () => {} };
  if (forgottenNode === null) return nothing;
  const parts = { repository, digests, nodeId: forgottenNode, manifests };
  const marks = await marksOfForgotten(parts);
  return marks === null ? nothing : { count: marks.positions.length, keep: () => keepMarks(parts, marks) };
}

/** Ids of the backups that hold what is erased. The newest of its node stays whatever it holds. */
async function erasedIn(
  manifests: readonly Manifest[],
  shippedEnds: ReadonlyMap<string, number>,
  { repository, digests }: PruneOptions,
): Promise<Set<string>> {
  const erased = await heldMarkedContent(repository, manifests, digests);
  for (const { id } of newestOfEach(manifests).values()) erased.delete(id);
  for (const { id } of heldFromBeforeScavenges(manifests, shippedEnds)) erased.add(id);
  return erased;
}

function decide(
  manifests: readonly Manifest[],
  summaries: readonly ManifestSummary[],
  erased: ReadonlySet<string>,
  { keep, forgottenNode = null }: PruneOptions,
): { kept: Set<string>; removed: PruneReport['removed'][number][] } {
  const kept = keep === null ? new Set(manifests.map(({ id }) => id)) : retained(manifests, keep);
  // Until shipping has caught up behind the newest, the end of the log is with one before it.
  for (const ofNode of Map.groupBy(summaries, ({ nodeId }) => nodeId).values())
    for (const { id } of aheadOfNewest(ofNode)) kept.add(id);
  const whyOf = ({ id, nodeId }: Manifest): PruneReport['removed'][number]['why'] | null => {
    if (nodeId === forgottenNode) return 'forgotten';
    if (erased.has(id)) return 'erased';
    return kept.has(id) ? null : 'retention';
  };
  const removed = manifests.flatMap((manifest) => {
    const why = whyOf(manifest);
    return why === null ? [] : [{ id: manifest.id, createdMs: madeMsOf(manifest), why }];
  });
  for (const { id } of removed) kept.delete(id);
  return { kept, removed };
}

function blobIds(manifests: readonly Manifest[]): Set<string> {
  const ids = new Set<string>();
  for (const manifest of manifests) for (const { blob } of blobsOf(manifest)) ids.add(blob);
  return ids;
}

async function shippedKeys(repository: Repository): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of repository.objectsOf(SHIPPED)) keys.push(key);
  return keys;
}

/** All of them, oldest first. One that was removed since it was listed is left out. */
async function readManifests(repository: Repository): Promise<Manifest[]> {
  const manifests: Manifest[] = [];
  for (const key of await repository.manifestKeys()) {
    const manifest = await repository.manifestAt(key);
    if (manifest !== null) manifests.push(manifest);
  }
  return manifests;
}

/** A blob without use goes when it was first seen so this long ago, in milliseconds. */
const UNREFERENCED_MS = 86_400_000;
/** Blobs removed between two looks for backups. */
const BATCH = 100;
/** First seen without use so long ago that it goes at once. */
const AT_ONCE = 0;

/** `seen`: when a blob was first found to be without use, by its id. */
interface UnreferencedText {
  readonly seen: Readonly<Record<string, number>>;
}
/** Blobs without use: the object that names so many is as large as one may be. */
const UNREFERENCED_MAX = 1_000_000;
export const unreferencedShape = record<UnreferencedText>({ seen: mapOf(/^[0-9a-f]{64}$/, moment, UNREFERENCED_MAX) });

interface PruneBlobsParts {
  readonly repository: Repository;
  /** Null for a dry run. */
  readonly intent: PruneIntent | null;
  readonly clock: Clock;
  readonly needed: ReadonlySet<string>;
  /** What is without use goes without waiting. */
  readonly isErased: boolean;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal | undefined;
}

interface PrunedBlobs {
  readonly blobsRemoved: number;
  readonly bytesRemoved: number;
  /** Without use, and not yet for long enough. */
  readonly blobsWaiting: number;
  /**
   * A backup runs, or may have come and gone while this prune stood still, so what no backup needs was not removed: to
   * be repeated.
   */
  readonly isBackupRunning: boolean;
  /** Those that were seen. */
  readonly backupsRunning: readonly RunningBackup[];
}

async function pruneBlobs(parts: PruneBlobsParts): Promise<PrunedBlobs> {
  const { repository, intent, clock, needed, isErased, signal } = parts;
  const nowMs = clock.nowMs();
  const before = await firstSeen(repository);
  const seen: Record<string, number> = {};
  const bytes = new Map<string, number>();
  for await (const { id, storedBytes } of repository.blobs()) {
    if (needed.has(id)) continue;
    // Of a clock that was ahead nothing is left to wait for. A mark that stays when this prune may remove nothing: the
    // next one then does, whatever it is asked for.
    seen[id] = isErased ? AT_ONCE : Math.min(before[id] ?? nowMs, nowMs);
    bytes.set(id, storedBytes);
  }
  const due = Object.keys(seen).filter((id) => nowMs - seen[id]! >= UNREFERENCED_MS);
  const report = (
    removed: number,
    isBackupRunning: boolean,
    backupsRunning: readonly RunningBackup[],
  ): PrunedBlobs => ({
    blobsRemoved: removed,
    bytesRemoved: due.slice(0, removed).reduce((sum, id) => sum + bytes.get(id)!, 0),
    blobsWaiting: bytes.size - due.length,
    isBackupRunning,
    backupsRunning,
  });
  if (intent === null) {
    const running = await runningBackups({ repository, clock });
    return report(running.length > 0 ? 0 : due.length, running.length > 0, running);
  }
  // Before anything goes, so that an interruption forgets nothing.
  await noteSeen(repository, before, seen);
  let removed = 0;
  while (removed < due.length) {
    endWhenAborted(signal);
    if (!(await intent.mayRemove())) return report(removed, true, await runningBackups({ repository, clock }));
    const batch = due.slice(removed, removed + BATCH);
    await repository.removeBlobs(batch);
    removed += batch.length;
    parts.onProgress?.(removed, due.length);
  }
  await noteSeen(
    repository,
    seen,
    Object.fromEntries(Object.entries(seen).filter(([, seenMs]) => nowMs - seenMs < UNREFERENCED_MS)),
  );
  return report(removed, false, []);
}

/** What can't be read is forgotten: blobs then stay for another day. */
async function firstSeen(repository: Repository): Promise<Readonly<Record<string, number>>> {
  try {
    return (await repository.readObject(UNREFERENCED_KEY, unreferencedShape))?.seen ?? {};
  } catch (error) {
    if (isSkuaError(error, 'repository_damaged')) return {};
    throw error;
  }
}

async function noteSeen(
  repository: Repository,
  before: Readonly<Record<string, number>>,
  seen: Readonly<Record<string, number>>,
): Promise<void> {
  const ids = Object.keys(seen);
  if (ids.length === Object.keys(before).length && ids.every((id) => before[id] === seen[id])) return;
  if (ids.length === 0) await repository.removeObjects([UNREFERENCED_KEY]);
  else await repository.writeObject(UNREFERENCED_KEY, { seen } satisfies UnreferencedText);
}
