import type { MemberLog, Membership } from '../../core/cluster/api.ts';
import type { ObjectLogOptions, ObjectWorld } from '../../core/shared-log/api.ts';
import { newestManifest } from '../../core/shared-log/format/manifest.ts';
import type { TemporaryStorage } from '../../core/shared-log/overlay/overlay.ts';
import { COMPACT_AFTER_MS, type TickStreams } from '../../core/shared-log/tick/tick.ts';
import type { ScavengeConfig } from '../../core/scavenge/api.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { Ticker } from '../on-objects/ticker.ts';

export interface MemberTickingParts {
  readonly world: ObjectWorld;
  readonly options?: ObjectLogOptions;
  readonly membership: Pick<Membership, 'isLeader'>;
  readonly log: Pick<MemberLog, 'applied' | 'refresh'>;
  /** The copy, in which ticks read streams, and what writes their history. */
  readonly store: Pick<EventStore, 'readStream' | 'redactions' | 'streamInfo'>;
  readonly writes: Pick<EventStore, 'append'>;
  readonly scavenge: Partial<Pick<ScavengeConfig, 'disableMerging' | 'historyMaxAgeDays' | 'keepsDeletedData'>>;
  /** Where a tick works; by default a folder among the temporary files of this machine, which must hold two chunks. */
  readonly newTemporaryStorage?: () => Promise<TemporaryStorage>;
}

/** A member that does not lead looks this often, in milliseconds, whether a member ticks, ... */
const LOOK_MS = COMPACT_AFTER_MS;
/** ... and does it when the newest manifest is older than it should be at most by this factor. */
const OVERDUE_FACTOR = 3;

/**
 * The ticks of a cluster's log (core/cluster/replica/README.md, rule 6): those of the leader, else of a member that
 * finds that no member ticks. Resolves when aborted; what a tick has not put in force by then is as if it had never
 * been. Any number of members may tick at once, and functions beside them.
 */
export function runMemberTicks(parts: MemberTickingParts, signal: AbortSignal): Promise<void> {
  const { world, options = {}, scavenge, newTemporaryStorage } = parts;
  const watch = new Overdue(parts);
  const ticker = new Ticker({
    world,
    options,
    settings: { scavenge },
    open: async () => streamsOf(parts),
    isWanted: () => watch.isWanted(),
    ...(newTemporaryStorage !== undefined && { newTemporaryStorage }),
  });
  return ticker.run(signal);
}

/** Whether this member is to tick now. */
class Overdue {
  readonly #parts: MemberTickingParts;
  #nextLookMs: number;

  constructor(parts: MemberTickingParts) {
    this.#parts = parts;
    this.#nextLookMs = parts.world.clock.monotonicMs() + LOOK_MS;
  }

  async isWanted(): Promise<boolean> {
    const {
      membership,
      log,
      world: { clock, objects, digests },
    } = this.#parts;
    if (membership.isLeader) return true;
    if (clock.monotonicMs() < this.#nextLookMs) return false;
    this.#nextLookMs = clock.monotonicMs() + LOOK_MS;
    const manifest = await newestManifest(objects, digests);
    return (
      manifest !== null &&
      log.applied >= manifest.boundary &&
      clock.nowMs() - manifest.writtenMs >= OVERDUE_FACTOR * COMPACT_AFTER_MS
    );
  }
}

/**
 * The chunk behind a point ends by the commit that carries it, and a member's copy looks after its tombstones itself.
 */
function streamsOf({ log, store, writes }: MemberTickingParts): TickStreams {
  return {
    internals: {
      get redactions() {
        return store.redactions;
      },
      append: (stream, expectedVersion, events) => writes.append(stream, expectedVersion, events),
      appendInternal: (stream, expectedVersion, events) => writes.append(stream, expectedVersion, events),
      readStream: (stream, options) => store.readStream(stream, options),
      streamInfo: (stream) => store.streamInfo(stream),
      completeChunk: async () => {},
      forgetTombstones: () => {},
    },
    refresh: () => log.refresh(),
    close: async () => {},
  };
}
