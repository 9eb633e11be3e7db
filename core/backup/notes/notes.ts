import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { KeyKind } from '../../ports/object-kinds.ts';
import { hexDigits, listOf, moment, record, uuid, whole } from '../../base/shape.ts';
import type { Repository } from '../repository/api.ts';
import { ACTIVE, TESTED_KEY, PRUNING, SUSPECT_KEY } from '../format/repository-keys.ts';
import { blobsOf } from '../format/snapshot-manifest.ts';
import type { Manifest } from '../format/snapshot-manifest.ts';
import { endWhenAborted } from '../repository/repository-objects.ts';

/**
 * A backup counts on blobs that are there already, and a prune removes blobs that no backup needs. So that they never
 * meet, each first says what it is about to do and then looks for the other: the one that comes second sees the first.
 * A backup waits for a prune; a prune beside a backup removes no blobs. A process that died leaves its intent, which
 * stops counting after a while; a backup that stood still for so long looks at its blobs once more when its manifest
 * stands (`BackupIntent.hasLapsed`). No removal needs more than that: the day that blobs otherwise stay without use
 * only spares their being stored again.
 */
/** An intent of a backup counts this long after it was written last, in milliseconds; so much later it is removed. */
const ACTIVE_MS_MAX = 86_400_000;
const PRUNING_MS_MAX = 3_600_000;
/** A backup writes its intent anew when it is this old. */
const ACTIVE_RENEW_MS = 3_600_000;
/** A prune writes its intent anew when it is this old. */
const PRUNING_RENEW_MS = 300_000;
/** A backup waits this long for a prune, in milliseconds, and looks so often. */
const WAIT_MS_MAX = 600_000;
const WAIT_STEP_MS = 1_000;

interface IntentText {
  readonly writtenMs: number;
}
export const intentShape = record<IntentText>({ writtenMs: moment });

interface IntentWorld {
  readonly repository: Repository;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Says that a backup runs, until `end`. */
export class BackupIntent {
  readonly #world: IntentWorld;
  readonly #key: string;
  #writtenMs = -Infinity;

  private constructor(world: IntentWorld, id: string) {
    this.#world = world;
    this.#key = `${ACTIVE.prefix}${id}`;
  }

  /** Rejects with `repository_busy` when a prune takes longer than a backup should wait. */
  static async begin(world: IntentWorld, backupId: string): Promise<BackupIntent> {
    const intent = new BackupIntent(world, backupId);
    try {
      await intent.#announce();
      return intent;
    } catch (error) {
      await intent.end();
      throw error;
    }
  }

  /** To be called now and then, and before what was found out is relied on for good. */
  async renew(): Promise<void> {
    const ageMs = this.#world.clock.nowMs() - this.#writtenMs;
    if (ageMs < 0 || ageMs >= ACTIVE_RENEW_MS) await this.#announce();
  }

  async #announce(): Promise<void> {
    const { repository, clock, signal } = this.#world;
    for (let waitedMs = 0; ; waitedMs += WAIT_STEP_MS) {
      endWhenAborted(signal);
      this.#writtenMs = clock.nowMs();
      if (waitedMs === 0) await repository.writeObject(this.#key, { writtenMs: this.#writtenMs } satisfies IntentText);
      if (!(await isAnyYoung(this.#world, PRUNING, PRUNING_MS_MAX))) return;
      if (waitedMs >= WAIT_MS_MAX)
        throw new SkuaError(
          'repository_busy',
          `A prune of ${repository.place} has been running for ${WAIT_MS_MAX / 60_000} minutes since this backup started waiting for it. Repeat the backup when it has finished; one that died is ignored an hour after its last heartbeat.`,
          { place: repository.place, limitMs: WAIT_MS_MAX },
        );
      await clock.sleep(WAIT_STEP_MS, signal);
    }
  }

  /**
   * Whether a prune may have taken this backup for dead by now, because it stood still or its clock was set. What was
   * found out before is found out anew then. Half of the time for which others count it is left for clocks that differ.
   */
  hasLapsed(): boolean {
    const ageMs = this.#world.clock.nowMs() - this.#writtenMs;
    return ageMs < 0 || ageMs >= ACTIVE_MS_MAX / 2;
  }

  /** What stays behind because the store fails now stops counting by itself. */
  async end(): Promise<void> {
    await this.#world.repository.removeObjects([this.#key]).catch(() => {});
  }
}

/** A backup that is being made, or was killed while it was. */
export interface RunningBackup {
  readonly id: string;
  /** When it last said that it runs, and when it stops counting unless it says so again: milliseconds since 1970. */
  readonly lastSignMs: number;
  readonly countsUntilMs: number;
}

/** Backups beside which nothing is removed. Changes nothing. */
export async function runningBackups({
  repository,
  clock,
}: Pick<IntentWorld, 'repository' | 'clock'>): Promise<RunningBackup[]> {
  const { young } = await intentsIn({ repository, clock }, ACTIVE, ACTIVE_MS_MAX);
  return young.map(({ key, writtenMs }) => ({
    id: key.slice(ACTIVE.prefix.length),
    lastSignMs: writtenMs,
    countsUntilMs: writtenMs + ACTIVE_MS_MAX,
  }));
}

/** Says that a prune runs, until `end`. */
export class PruneIntent {
  readonly #world: IntentWorld;
  readonly #key: string;
  #writtenMs: number;
  #isBesideBackup = false;

  private constructor(world: IntentWorld, id: string) {
    this.#world = world;
    this.#writtenMs = world.clock.nowMs();
    this.#key = `${PRUNING.prefix}${id}`;
  }

  /**
   * To be awaited before manifests are read. A backup that runs now may write its manifest behind that and end before
   * blobs are removed, unseen; one that begins later waits.
   */
  static async begin(world: IntentWorld, ids: Ids): Promise<PruneIntent> {
    const intent = new PruneIntent(world, guidToText(guidFromUuidBytes(ids.uuidBytes()), 0));
    await intent.#write();
    intent.#isBesideBackup = await isAnyYoung(world, ACTIVE, ACTIVE_MS_MAX);
    return intent;
  }

  /** Whether blobs may be removed now: asked before every batch of them. Once it is false it stays so. */
  async mayRemove(): Promise<boolean> {
    this.#noteStandstill();
    if (!this.#isBesideBackup && this.#ageMs() >= PRUNING_RENEW_MS) await this.#write();
    this.#isBesideBackup ||= await isAnyYoung(this.#world, ACTIVE, ACTIVE_MS_MAX);
    this.#noteStandstill();
    return !this.#isBesideBackup;
  }

  #ageMs(): number {
    return this.#world.clock.nowMs() - this.#writtenMs;
  }

  /** A process that stood still for so long may have missed a backup that came and went. */
  #noteStandstill(): void {
    const ageMs = this.#ageMs();
    if (ageMs < 0 || ageMs >= PRUNING_MS_MAX / 2) this.#isBesideBackup = true;
  }

  async #write(): Promise<void> {
    const writtenMs = this.#world.clock.nowMs();
    await this.#world.repository.writeObject(this.#key, { writtenMs } satisfies IntentText);
    this.#noteStandstill();
    this.#writtenMs = writtenMs;
  }

  async end(): Promise<void> {
    await this.#world.repository.removeObjects([this.#key]).catch(() => {});
  }
}

/** Whether there is an intent that still counts. Those that have long stopped counting are removed on the way. */
async function isAnyYoung(world: IntentWorld, kind: KeyKind, ageMsMax: number): Promise<boolean> {
  const { young, dead } = await intentsIn(world, kind, ageMsMax);
  if (dead.length > 0) await world.repository.removeObjects(dead);
  return young.length > 0;
}

interface Intents {
  /** Those that count. */
  readonly young: readonly { readonly key: string; readonly writtenMs: number }[];
  /** Keys of those that have long stopped to. */
  readonly dead: readonly string[];
}

/**
 * By whichever is later, what the intent says and when the store got it: a clock that is wrong must not hide what runs.
 */
async function intentsIn(
  { repository, clock }: Pick<IntentWorld, 'repository' | 'clock'>,
  kind: KeyKind,
  ageMsMax: number,
): Promise<Intents> {
  const young: { key: string; writtenMs: number }[] = [];
  const dead: string[] = [];
  for await (const { key, modifiedMs } of repository.objectsOf(kind)) {
    const saidMs = await writtenMsOf(repository, key, modifiedMs);
    if (saidMs === null) continue;
    const writtenMs = Math.max(saidMs, modifiedMs);
    const ageMs = clock.nowMs() - writtenMs;
    if (ageMs < ageMsMax) young.push({ key, writtenMs });
    else if (ageMs > 2 * ageMsMax) dead.push(key);
  }
  return { young, dead };
}

/** Null when it is gone. Of one that is damaged the store knows when it was written. */
async function writtenMsOf(repository: Repository, key: string, modifiedMs: number): Promise<number | null> {
  try {
    return (await repository.readObject(key, intentShape))?.writtenMs ?? null;
  } catch (error) {
    if (!isSkuaError(error, 'repository_damaged')) throw error;
    return modifiedMs;
  }
}

/** More than this many are not remembered: such a repository has to be replaced. */
const SUSPECTS_MAX = 100_000;

/** Damaged blobs: while they are named, a backup stores their content again instead of counting on them. */
interface SuspectText {
  readonly blobs: readonly string[];
}
export const suspectShape = record<SuspectText>({ blobs: listOf(hexDigits(64), SUSPECTS_MAX) });

/** An object that can't be read names nothing: the next check makes it anew. */
export async function suspectBlobs(repository: Repository): Promise<ReadonlySet<string>> {
  try {
    return new Set((await repository.readObject(SUSPECT_KEY, suspectShape))?.blobs);
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
export async function clearSuspects(
  repository: Repository,
  suspects: ReadonlySet<string>,
  manifest: Manifest,
): Promise<void> {
  if (suspects.size === 0) return;
  const left = new Set(suspects);
  for (const { blob } of blobsOf(manifest)) left.delete(blob);
  if (left.size < suspects.size) await noteSuspects(repository, left);
}

/** A backup that was restored, opened and verified. */
interface TestedBackup {
  readonly backupId: string;
  /** When that was: milliseconds since 1970. */
  readonly provenMs: number;
  /** Where its log ends. */
  readonly position: number;
}

export const testedShape = record<TestedBackup>({ backupId: uuid, provenMs: moment, position: whole(0) });

/** The backup that a drill proved last; null when none has. Rejects with `repository_damaged`. */
export async function lastProven(repository: Repository): Promise<TestedBackup | null> {
  return repository.readObject(TESTED_KEY, testedShape);
}

/** Notes a proven backup. Two drills that end together leave either's. */
export function noteProven(repository: Repository, proven: TestedBackup): Promise<void> {
  return repository.writeObject(TESTED_KEY, proven);
}
