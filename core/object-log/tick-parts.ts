import type { AutoScavengeConfig } from '../auto-scavenge/auto-scavenge.ts';
import type { StreamHasher } from '../stream-hash.ts';
import type { NodeAddress } from '../ports/nodes.ts';
import type { Schedule } from '../ports/schedule.ts';
import type { ScavengeStates } from '../ports/scavenge-state.ts';
import type { Storage } from '../ports/storage.ts';
import type { ScavengeConfig } from '../scavenge/run-context.ts';
import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from './api.ts';
import type { ObjectScavenge } from './manifest.ts';
import { SCAVENGE_STATE_BYTES_MAX } from './tick-slice.ts';

/** What a tick is given, and what it says. */

export interface TickSettings {
  /** A tail is taken over when it has this many commits, ... */
  readonly compactCommitsMin: number;
  /** ... or this many bytes, ... */
  readonly compactBytesMin: number;
  /** ... or when the newest manifest is this old. */
  readonly compactAfterMs: number;
  /** New files that a tick writes before it publishes, in bytes; the last one may exceed it. The scratch storage must hold twice as much. */
  readonly ownBytesMax: number;
  /** Largest scavenge database in bytes, which ticks bring to and fro; the scratch storage must hold it besides. A larger one ends its run. */
  readonly stateBytesMax: number;
  readonly scavenge: Partial<ScavengeConfig>;
}

export const TICK_DEFAULTS: TickSettings = { compactCommitsMin: 64, compactBytesMin: 1_048_576, compactAfterMs: 600_000, ownBytesMax: 201_326_592, stateBytesMax: SCAVENGE_STATE_BYTES_MAX, scavenge: {} };

export interface TickParts {
  readonly world: ObjectWorld;
  readonly options?: ObjectLogOptions;
  readonly settings?: Partial<TickSettings>;
  /** Empty, and of this tick alone. Whoever gives it clears it afterwards. */
  readonly scratch: Storage;
  /** The scavenge database at its place in the scratch storage. */
  readonly scavengeStates: ScavengeStates;
  /** By the monotonic clock: everything is published by then. */
  readonly deadlineMs: number;
  /** Left out where scavenges are not scheduled. */
  readonly autoScavenge?: { readonly schedule: Schedule; readonly config: AutoScavengeConfig; readonly self: NodeAddress };
  /** Called at the end with the time that is left. What it throws ends the tick with that error; everything else is done by then. */
  readonly shipBackup?: (deadlineMs: number) => Promise<unknown>;
  /** Tests inject a hash with collisions. */
  readonly hasher?: StreamHasher;
  /** `openObjectStore`. Called when a scavenge or a schedule needs the streams; the tick closes what it gets. */
  readonly open: (world: ObjectWorld, options: ObjectLogOptions) => Promise<ObjectInstance>;
}

export interface TickReport {
  /**
   * `idle`: there was nothing to do. `published`: a manifest was written. `superseded`: another tick was first, and nothing of
   * this one counts.
   */
  readonly outcome: 'idle' | 'published' | 'superseded';
  /** Number of the manifest that this tick wrote, or else began with. */
  readonly manifest: number;
  /** What was taken over from the tail. */
  readonly commits: number;
  readonly bytes: number;
  readonly chunksCompleted: number;
  /** The scavenge that goes on, or that was the last. */
  readonly scavenge: ObjectScavenge | null;
  /** Objects removed that nobody reads any more. */
  readonly removed: number;
}
