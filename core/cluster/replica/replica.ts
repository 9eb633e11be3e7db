import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { EPOCH_STREAM } from '../../log/format/epochs.ts';
import type { TransactionLog } from '../../log/api.ts';
import {
  COMMIT_ATTEMPTS_DEFAULT_MAX,
  COMMIT_DEADLINE_DEFAULT_MS,
  FRESH_DEFAULT_MS,
  ID_LOOKBACK_EVENTS,
  type ObjectLogOptions,
  type ObjectWorld,
  TAIL_COMMITS_MAX,
} from '../../shared-log/api.ts';
import type { Commit } from '../../shared-log/format/commit-object.ts';
import { openPrefix } from '../../shared-log/prefix/prefix.ts';
import { stampOf } from '../../ports/stamp.ts';
import { ObjectCommitLog } from '../../shared-log/commit-log/commit-log.ts';
import { Refresher } from '../../shared-log/refresh/refresh.ts';
import { type IdentifiedLog, whyAnotherLog } from '../../shared-log/head/head.ts';
import type { ObjectManifest } from '../../shared-log/format/manifest.ts';
import { listTail, readTail } from '../../shared-log/tail/tail.ts';
import type { Epoch } from '../../ports/peers.ts';
import type { Scavenger } from '../../scavenge/api.ts';
import type { ScavengeStore } from '../../scavenge/api.ts';
import { type DirectoryStore, openStore, type OpenStoreOptions, type SharedOpening } from '../../store/store.ts';
import type { EventStore } from '../../streams/api.ts';
import type { EventStoreInternals } from '../../streams/streams.ts';
import type { MemberLog } from '../api.ts';
import { ReplicaHead, type ReplicaLocation } from './replica-head.ts';
import { readLogId } from './identity/identity.ts';
import { replicaClosed, ReplicaLog, epochOfEvent, type OpenReplica } from './member-log.ts';
import { locateInTail } from './locate.ts';
import { prepareReplica } from './prepare-replica.ts';
import { clearScavengeDue, isScavengeDue } from './scavenge-due.ts';
import { SwitchingScavenger, switchingStore } from './switching.ts';
import { WatchedObjects } from './watched-objects.ts';
import { background } from '../../base/background.ts';

export interface MemberStoreOptions {
  /** The bucket with the log, which is begun where there is none. */
  readonly world: ObjectWorld;
  readonly log?: ObjectLogOptions;
  /** The copy; its chunk size is the log's. */
  readonly store: Omit<OpenStoreOptions, 'shared'>;
  /**
   * Why this member may commit nothing at the moment, such as a log that is written in a newer format; null, or left
   * out, where it may.
   */
  readonly refusal?: () => SkuaError | null;
  /** What the scavenger of the copy writes through; by default the member's own appends. */
  readonly scavengeStore?: (store: EventStoreInternals) => ScavengeStore;
}

/**
 * The store of a member of a cluster. Where its copy has to be opened again it does that by itself; meanwhile calls
 * reject with `not_ready`.
 */
export interface MemberStore extends DirectoryStore {
  readonly log: MemberLog;
}

/** A copy that is quiet is compared with the log this often, and what can't be taken in is tried again this often. */
const LOOK_EVERY_MS = 60_000;
const RETRY_EVERY_MS = 1_000;
/** A first opening begins anew when the log goes on faster than the copy, this often. */
const OPENS_MAX = 10;
/** Pauses between attempts to open a copy again. */
const REOPEN_FIRST_MS = 100;
const REOPEN_MAX_MS = 10_000;

/**
 * Opens the copy of a member and catches it up with the log. Rejects with `log_diverged` or `other_log` where the
 * directory is no copy of this log, and as `openStore` and the requests to the bucket do; nothing is left open then.
 */
export async function openMemberStore(options: MemberStoreOptions): Promise<MemberStore> {
  const { world } = options;
  const objects = new WatchedObjects(world.objects, world.clock);
  const watched: ObjectWorld = { ...world, objects };
  const chunkSizeBytes = options.log?.chunkSizeBytes ?? options.store.log?.chunkSizeBytes;
  // A directory that has been a copy of a log never begins another one.
  const mustExist = (await readLogId(options.store.world.storage)) !== null;
  const { storeId, number } = await openPrefix(watched, {
    ...options.log,
    isCluster: true,
    mustExist,
    ...(chunkSizeBytes !== undefined && { chunkSizeBytes }),
  });
  const log = new ReplicaLog(storeId, objects, world.clock, world.digests);
  const member = new Member(options, watched, log, { storeId, number });
  try {
    await member.open();
  } catch (error) {
    member.forget();
    throw error;
  }
  return member;
}

/** One opening of the copy. */
interface Opening {
  readonly open: DirectoryStore;
  readonly copy: OpenReplica;
}

class Member implements MemberStore {
  readonly log: ReplicaLog;
  readonly store: EventStore;
  readonly scavenger: Scavenger;
  readonly failed: Promise<SkuaError>;
  readonly #options: MemberStoreOptions;
  readonly #world: ObjectWorld;
  readonly #closing = new AbortController();
  #fail: (error: SkuaError) => void = () => {};
  #opening: Opening | null = null;
  #chunkSizeBytes = 0;
  #reopening: Promise<void> | null = null;
  #watching: Promise<void> = Promise.resolve();
  /** What is known of the log, also while the copy is closed. */
  #known: () => IdentifiedLog;
  /** It need not be said any more what the place of the log is known by. */
  readonly forget: () => void;

  constructor(options: MemberStoreOptions, world: ObjectWorld, log: ReplicaLog, begun: IdentifiedLog['manifest']) {
    this.#known = () => ({ manifest: begun, last: null });
    this.forget =
      world.objects.recognise?.((there) => whyAnotherLog(there, world.digests, () => this.#known())) ?? (() => {});
    this.#options = options;
    this.#world = world;
    this.log = log;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.store = switchingStore(
      () => this.#opening?.open.store ?? null,
      () => this.#current().store,
      log,
    );
    this.scavenger = new SwitchingScavenger(
      () => this.#opening?.open.scavenger ?? null,
      () => this.#current().scavenger,
    );
  }

  get chunkSizeBytes(): number {
    return this.#chunkSizeBytes;
  }
  get hashChain(): DirectoryStore['hashChain'] {
    return this.#opening?.open.hashChain ?? null;
  }
  get restoredMarks(): DirectoryStore['restoredMarks'] {
    return this.#current().restoredMarks;
  }
  get attributes(): DirectoryStore['attributes'] {
    return this.#opening?.open.attributes ?? null;
  }
  appendRestored(): Promise<void> {
    return this.#current().appendRestored();
  }
  status(): ReturnType<DirectoryStore['status']> {
    return this.#current().status();
  }
  chunkMap(since: string | null): ReturnType<DirectoryStore['chunkMap']> {
    return this.#current().chunkMap(since);
  }
  mergeIndexes(): string {
    return this.#current().mergeIndexes();
  }
  async hold(): ReturnType<DirectoryStore['hold']> {
    return this.#current().hold();
  }
  shippableLog(): ReturnType<DirectoryStore['shippableLog']> {
    return this.#current().shippableLog();
  }

  #current(): DirectoryStore {
    if (this.#opening === null) throw replicaClosed(this.log.trouble);
    return this.#opening.open;
  }

  async open(): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#openOnce();
        break;
      } catch (error) {
        // The log was taken into files beyond what the copy was brought up to meanwhile, or while its tail was read.
        if (!(isSkuaError(error, 'copy_behind') || isSkuaError(error, 'commit_lost')) || tries === OPENS_MAX)
          throw error;
      }
    }
    this.#watching = this.#watch();
  }

  async #openOnce(): Promise<void> {
    const opener = new ReplicaOpening(this.#options, this.#world, this.log, this.#closing.signal, (error) =>
      this.#reopen(error),
    );
    const open = await opener.run();
    const { head } = opener.copy;
    this.#known = () => head.knownLog;
    this.#opening = { open, copy: opener.copy };
    this.#chunkSizeBytes = open.chunkSizeBytes;
    background(
      open.failed.then((error) => {
        if (this.#opening?.open === open) this.#reopen(error);
      }),
    );
    this.log.caughtUp();
    background(this.#scavengeAgain());
    background(this.#appendMarks());
  }

  /** The copy is closed and opened again; what was being done with it is refused or ended meanwhile. */
  #reopen(why: SkuaError): void {
    if (this.#closing.signal.aborted || this.#reopening !== null || this.#opening === null) return;
    // Damage does not go away by opening the copy again, and a log that went apart must be looked at by an operator.
    if (why.code === 'log_corrupt' || why.code === 'log_diverged') {
      this.#fail(why);
      return;
    }
    const before = this.#opening;
    this.#world.log.warn('the replica is reopened', { code: why.code, reason: why.message });
    this.#opening = null;
    this.log.closed(why);
    this.#reopening = this.#openAgain(before).finally(() => {
      this.#reopening = null;
    });
  }

  async #openAgain(before: Opening): Promise<void> {
    const { clock, log } = this.#world;
    await closeOpening(before).catch((error: unknown) =>
      log.warn('the replica could not be closed cleanly', { error }),
    );
    for (let waitMs = REOPEN_FIRST_MS; !this.#closing.signal.aborted; waitMs = Math.min(2 * waitMs, REOPEN_MAX_MS)) {
      try {
        await this.#openOnce();
        return;
      } catch (error) {
        const trouble =
          error instanceof SkuaError
            ? error
            : new SkuaError('io_error', `The replica could not be opened: ${String(error)}.`, {}, error);
        if (FINAL.has(trouble.code)) {
          this.#fail(trouble);
          return;
        }
        this.log.closed(trouble);
        log.error('the replica could not be opened; will retry', { code: trouble.code, reason: trouble.message });
      }
      await clock.sleep(waitMs, this.#closing.signal);
    }
  }

  /**
   * Takes in what could not be taken in, and looks from time to time whether the log is still the one that the copy is
   * of.
   */
  async #watch(): Promise<void> {
    const { clock } = this.#world;
    const { signal } = this.#closing;
    let sinceLookMs = 0;
    while (!signal.aborted) {
      await clock.sleep(RETRY_EVERY_MS, signal);
      sinceLookMs += RETRY_EVERY_MS;
      if (signal.aborted || this.#opening === null) continue;
      if (this.log.trouble === null && sinceLookMs < LOOK_EVERY_MS) continue;
      if (sinceLookMs >= LOOK_EVERY_MS) {
        background(this.#scavengeAgain());
        background(this.#appendMarks());
      }
      sinceLookMs = 0;
      // The trouble itself is told where it arises.
      await this.log.refresh().catch((error: unknown) => {
        if (isSkuaError(error) && FINAL.has(error.code)) this.#fail(error);
      });
    }
  }

  /**
   * To the newest point that the log holds, where the copy was cut back. What hinders it hinders it for a minute. Never
   * rejects.
   */
  async #scavengeAgain(): Promise<void> {
    const opening = this.#opening;
    const { storage } = this.#options.store.world;
    try {
      if (opening === null || !(await isScavengeDue(storage))) return;
      const { scavenger } = opening.open;
      if (scavenger.current() !== null) return;
      const { scavengeId } = await scavenger.start({ syncOnly: true });
      await scavenger.idle();
      const last = scavenger.last();
      if (last?.scavengeId === scavengeId && last.result === 'Success' && this.#opening === opening)
        await clearScavengeDue(storage);
    } catch (error) {
      this.#world.log.warn('the replica, which was truncated, could not be scavenged again; will retry', { error });
    }
  }

  /**
   * Marks of a restore are in this copy alone until they are in the log: then all hide their events. What hinders it
   * hinders it for a minute. Never rejects.
   */
  async #appendMarks(): Promise<void> {
    try {
      await this.#opening?.open.appendRestored();
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#world.log.warn('redactions of a restore could not be appended; will retry', { error });
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reopening;
    await this.#watching;
    const opening = this.#opening;
    this.#opening = null;
    this.log.closed(new SkuaError('store_closed', 'The member is closing.'));
    if (opening !== null) await closeOpening(opening);
    this.forget();
  }
}

async function closeOpening({ open, copy }: Opening): Promise<void> {
  await copy.head.close();
  await open.close();
}

const FINAL: ReadonlySet<string> = new Set([
  'log_diverged',
  'other_log',
  'log_corrupt',
  'format_too_new',
  'manifest_invalid',
]);

/** Opens the copy once: files first, then log and index, then the tail. */
class ReplicaOpening implements SharedOpening {
  readonly logId: string;
  readonly streams: SharedOpening['streams'];
  readonly #options: MemberStoreOptions;
  readonly #world: ObjectWorld;
  readonly #log: ReplicaLog;
  readonly #signal: AbortSignal;
  readonly #onTrouble: (error: SkuaError) => void;
  #manifest: ObjectManifest | null = null;
  #local: TransactionLog | null = null;
  #head: ReplicaHead | null = null;
  #refresher: Refresher | null = null;
  #copy: OpenReplica | null = null;
  #flushing: Promise<void> = Promise.resolve();

  constructor(
    options: MemberStoreOptions,
    world: ObjectWorld,
    log: ReplicaLog,
    signal: AbortSignal,
    onTrouble: (error: SkuaError) => void,
  ) {
    this.logId = log.logId;
    this.streams = { idLookbackEvents: ID_LOOKBACK_EVENTS, ...options.log?.streams };
    this.#options = options;
    this.#world = world;
    this.#log = log;
    this.#signal = signal;
    this.#onTrouble = onTrouble;
  }

  get copy(): OpenReplica {
    return this.#copy!;
  }

  async run(): Promise<DirectoryStore> {
    const { store } = this.#options;
    this.#manifest = await openPrefix(this.#world, { ...this.#options.log, mustExist: true });
    return openStore({
      ...store,
      log: { ...store.log, chunkSizeBytes: this.#manifest.chunkSizeBytes, writeEpoch: false, isReplica: true },
      shared: this,
    });
  }

  async prepare(): Promise<void> {
    const { store } = this.#options;
    const { manifest } = await prepareReplica({
      storage: store.world.storage,
      world: this.#world,
      manifest: this.#manifest!,
      ...(store.onProgress && { onProgress: store.onProgress }),
      signal: this.#signal,
    });
    this.#manifest = manifest;
  }

  async commitLog(log: TransactionLog, index: ReplicaHeadParts['index']): Promise<ObjectCommitLog> {
    const options = this.#options.log;
    const manifest = this.#manifest!;
    const stamp = stampOf(this.#world.clock);
    const location = await placeOf(this.#world, manifest, log);
    const head = new ReplicaHead(
      this.#world,
      options?.freshMs ?? FRESH_DEFAULT_MS,
      { log, index },
      { manifest, stamp, ...location },
      {
        committed: () => this.#log.noteCommitted(),
        applied: (number) => this.#log.noteApplied(number),
        mustReopen: (error) => this.#onTrouble(error),
        refusal: () => this.#options.refusal?.() ?? null,
      },
    );
    this.#local = log;
    this.#head = head;
    this.#refresher = new Refresher(head);
    return new ObjectCommitLog(head, this.#refresher, {
      attemptsMax: options?.commitAttemptsMax ?? COMMIT_ATTEMPTS_DEFAULT_MAX,
      deadlineMs: options?.commitDeadlineMs ?? COMMIT_DEADLINE_DEFAULT_MS,
    });
  }

  onEpoch(epoch: Parameters<ReplicaLog['noteEpoch']>[0]): void {
    this.#log.noteEpoch(epoch);
    // One that can't be written now, or is lost in a crash, is written at the next opening.
    this.#flushing = this.#flushing
      .then(() => this.#flushEpoch())
      .catch((error: unknown) => this.#world.log.warn('the newest epoch could not be recorded', { error }));
  }

  async opened(store: EventStoreInternals): Promise<void> {
    const head = this.#head!;
    const refresher = this.#refresher!;
    head.listener = store;
    this.#copy = { head, refresher, store };
    const epoch = await lastEpoch(store);
    this.#log.opened(this.#copy, epoch);
    try {
      await refresher.catchUp();
      await this.#flushEpoch();
    } catch (error) {
      // The leader may have sent something meanwhile, and the files are closed next.
      await head.close();
      throw error;
    }
  }

  /** The process that opens the directory alone goes on behind the newest epoch, and never uses its number again. */
  async #flushEpoch(): Promise<void> {
    const newest = this.#log.epoch;
    if (newest === null) return;
    const { proposal, epoch } = this.#local!.checkpoints;
    if (proposal.value < newest.number) await proposal.flush(newest.number);
    if (epoch.value < newest.position) await epoch.flush(newest.position);
  }

  scavengeStore(store: EventStoreInternals): ScavengeStore {
    return this.#options.scavengeStore?.(store) ?? store;
  }
}

type ReplicaHeadParts = ConstructorParameters<typeof ReplicaHead>[2];

async function lastEpoch(store: EventStore): Promise<Epoch | null> {
  try {
    return epochOfEvent((await store.readEvent(EPOCH_STREAM, 'last')).data);
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'event_not_found')) return null;
    throw error;
  }
}

/**
 * The commit with which a copy ends (rule 4), and where the next one starts. Rejects with `log_diverged` where none
 * does, and with `copy_behind` when a newer manifest has taken the tail in.
 */
async function placeOf(
  { objects, digests }: ObjectWorld,
  manifest: ObjectManifest,
  { table }: TransactionLog,
): Promise<ReplicaLocation> {
  const { boundary, chunkSizeBytes: size } = manifest;
  const tail = await listTail(objects, boundary, TAIL_COMMITS_MAX);
  if (tail === null)
    throw new SkuaError(
      'copy_behind',
      `Commit ${boundary} has been taken into files since the replica was compared with the log.`,
      { boundary },
    );
  let last: Commit | null = null;
  let before: Commit | null = null;
  const noting = async function* (): AsyncGenerator<Commit, void, undefined> {
    for await (const commit of readTail(objects, digests, tail)) {
      before = last;
      last = commit;
      yield commit;
    }
  };
  const known = await locateInTail(table, manifest, noting(), objects.place);
  // The one behind it was looked at, too, where it shows that a chunk has ended.
  const commit = [last as Commit | null, before as Commit | null].find((one) => one?.number === known) ?? null;
  const { endsChunk } = commit ?? manifest;
  return {
    known,
    nextStart: endsChunk ? Math.ceil(table.end / size) * size : table.end,
    last: commit === null ? null : { number: known, end: commit.end, nonce: commit.nonce },
  };
}
