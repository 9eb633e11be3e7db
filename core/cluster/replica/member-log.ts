import { i64 } from '../../base/bytes.ts';
import type { EpochRecord } from '../../log/format/records.ts';
import { SkuaError } from '../../base/errors.ts';
import { COMMIT_HEADER_BYTES, decodeCommits } from '../../shared-log/format/commit-object.ts';
import { sinceMs } from '../../ports/stamp.ts';
import type { Refresher } from '../../shared-log/refresh/refresh.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Epoch } from '../../ports/peers.ts';
import type { EventStoreInternals } from '../../streams/streams.ts';
import { decodeText } from '../../base/text.ts';
import type { MemberLog } from '../api.ts';
import type { ReplicaHead } from './replica-head.ts';
import type { WatchedObjects } from './watched-objects.ts';

/** A copy that is open. */
export interface OpenReplica {
  readonly head: ReplicaHead;
  readonly refresher: Refresher;
  readonly store: EventStoreInternals;
}

interface Waiting {
  readonly number: number;
  readonly resolve: (isReached: boolean) => void;
}

/** The log as its member has it, whichever opening of the copy is in force. */
export class ReplicaLog implements MemberLog {
  readonly logId: string;
  readonly #objects: WatchedObjects;
  readonly #clock: Clock;
  readonly #digests: Digests;
  readonly #epochListeners: ((epoch: Epoch) => void)[] = [];
  readonly #appliedListeners: (() => void)[] = [];
  readonly #waiting = new Set<Waiting>();
  #open: OpenReplica | null = null;
  #isCaughtUp = false;
  #epoch: Epoch | null = null;
  #applied = 0;
  #end = 0;
  #closedBy: SkuaError | null = null;

  constructor(logId: string, objects: WatchedObjects, clock: Clock, digests: Digests) {
    this.logId = logId;
    this.#objects = objects;
    this.#clock = clock;
    this.#digests = digests;
  }

  get applied(): number {
    return this.#applied;
  }
  get end(): number {
    return this.#end;
  }
  get epoch(): Epoch | null {
    return this.#epoch;
  }
  get isCaughtUp(): boolean {
    return this.#isCaughtUp && this.trouble === null;
  }
  get trouble(): SkuaError | null {
    return this.#open?.head.trouble ?? this.#closedBy;
  }
  get bucketSilentMs(): number {
    return this.#objects.silentMs;
  }
  get lag(): { readonly commits: number; readonly bytes: number } {
    return this.#open?.head.lag ?? { commits: 0, bytes: 0 };
  }

  /** A copy was opened, up to commit `applied`, and is being caught up. */
  opened(copy: OpenReplica, epoch: Epoch | null): void {
    this.#open = copy;
    this.#closedBy = null;
    this.#noteEpoch(epoch);
    this.noteApplied(copy.head.applied);
  }

  caughtUp(): void {
    this.#isCaughtUp = true;
    this.#tell();
  }

  /** The copy is closed, and opened again where nothing stands in the way. */
  closed(why: SkuaError): void {
    this.#open = null;
    this.#isCaughtUp = false;
    this.#closedBy = why;
  }

  noteApplied(number: number): void {
    // While it is opened again a copy may be behind what readers have seen; they see it again only beyond that.
    this.#applied = number;
    this.#end = this.#open?.store.end ?? this.#end;
    this.#tell();
  }

  #tell(): void {
    this.noteCommitted();
    for (const listener of this.#appliedListeners) listener();
  }

  /** A commit is in the log, and is in the copy or on its way there: what waits for it goes on. */
  noteCommitted(): void {
    for (const waiting of this.#waiting) {
      if (this.#committed < waiting.number) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(true);
    }
  }

  noteEpoch({ position, json }: EpochRecord): void {
    this.#noteEpoch(parseEpoch(position, json));
  }

  #noteEpoch(epoch: Epoch | null): void {
    if (epoch === null || epoch.number <= (this.#epoch?.number ?? -1)) return;
    this.#epoch = epoch;
    for (const listener of this.#epochListeners) listener(epoch);
  }

  onEpoch(listener: (epoch: Epoch) => void): void {
    this.#epochListeners.push(listener);
  }
  onApplied(listener: () => void): void {
    this.#appliedListeners.push(listener);
  }

  async lead(instanceId: string, after: number): Promise<Epoch> {
    const { store } = this.#opened();
    const lost = () =>
      new SkuaError(
        'epoch_lost',
        `The newest epoch of the log is ${this.#epoch?.number ?? -1}, no longer ${after}: another member is the leader.`,
        { after, epoch: this.#epoch?.number ?? -1 },
      );
    await store.writeEpoch((isFirst) => {
      const known = this.#epoch;
      // What is expected, number and predecessor are those of the log at the place of the record.
      return !isFirst || (known?.number ?? -1) !== after
        ? lost()
        : { epochNumber: after + 1, prevEpochPosition: known?.position ?? -1, leaderInstanceId: instanceId };
    });
    const epoch = this.#epoch;
    if (epoch?.number !== after + 1 || epoch.leaderInstanceId !== instanceId) throw lost();
    return epoch;
  }

  async hold(signal: AbortSignal): Promise<void> {
    await this.#opened().head.hold(signal);
  }

  async refresh(): Promise<void> {
    await this.#opened().refresher.refresh();
  }

  async confirmFresh(ageMs: number): Promise<void> {
    const { head, refresher } = this.#opened();
    if (head.provedAt === null || sinceMs(head.provedAt, this.#clock) > ageMs) await refresher.refresh();
  }

  async takePushed(bytes: Uint8Array): Promise<number> {
    const { head } = this.#opened();
    if (bytes.length < COMMIT_HEADER_BYTES) return this.#applied;
    const commits = decodeCommits(i64(bytes, 16), bytes, this.#digests);
    await head.take(commits, 'leader');
    return this.#applied;
  }

  recent(from: number, bytesMax: number): Uint8Array | null {
    return this.#open?.head.recent.read(from, this.#committed, bytesMax) ?? null;
  }

  /** Number of the last commit that is known to be in the log with all before it. */
  get #committed(): number {
    return Math.max(this.#applied, this.#open?.head.recent.last ?? 0);
  }

  waitForCommit(number: number, signal: AbortSignal): Promise<boolean> {
    if (this.#committed >= number) return Promise.resolve(true);
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiting: Waiting = {
        number,
        resolve: (reached) => {
          signal.removeEventListener('abort', gaveUp);
          resolve(reached);
        },
      };
      const gaveUp = () => {
        this.#waiting.delete(waiting);
        resolve(false);
      };
      signal.addEventListener('abort', gaveUp, { once: true });
      this.#waiting.add(waiting);
    });
  }

  #opened(): OpenReplica {
    if (this.#open !== null) return this.#open;
    throw replicaClosed(this.#closedBy);
  }
}

/** What is answered while the copy of a member is being opened. */
export function replicaClosed(why: SkuaError | null): SkuaError {
  return new SkuaError(
    'not_ready',
    `The replica of this member is being opened${why === null ? '' : ` again (${why.message})`}: try again in a moment, or ask another member.`,
    {},
    why ?? undefined,
  );
}

/** Members that are zero are left out. */
function parseEpoch(position: number, json: Uint8Array): Epoch {
  const {
    epochNumber = 0,
    epochId = '',
    leaderInstanceId = '',
  } = JSON.parse(decodeText(json)) as { epochNumber?: number; epochId?: string; leaderInstanceId?: string };
  return { number: epochNumber, position, id: epochId, leaderInstanceId };
}

/** The epoch that the last event of the epoch stream repeats. */
export function epochOfEvent(data: Uint8Array): Epoch {
  const { epochPosition = 0 } = JSON.parse(decodeText(data)) as { epochPosition?: number };
  return parseEpoch(epochPosition, data);
}
