import { openMemberStore, type MemberStore } from '../../../core/cluster/replica/replica.ts';
import type { SkuaError } from '../../../core/base/errors.ts';
import type { ObjectLogOptions } from '../../../core/shared-log/api.ts';
import { InlineJobs } from '../../../core/memory/inline-jobs.ts';
import { type Log, silentLog } from '../../../core/ports/log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { type Meter, silentMeter } from '../../../core/ports/meter.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import type { ScavengeStore } from '../../../core/scavenge/api.ts';
import type { EventStoreInternals } from '../../../core/streams/streams.ts';
import { encodeText } from '../../../core/base/text.ts';
import { JOBS } from '../../../core/jobs/jobs.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';

export const CHUNK_BYTES = 65_536;

interface MemberOptions {
  readonly refusal?: () => SkuaError | null;
  readonly log?: ObjectLogOptions;
  readonly sink?: Log;
  readonly meter?: Meter;
  readonly scavengeStore?: (store: EventStoreInternals) => ScavengeStore;
  readonly beginsProofs?: boolean;
}

/** A member whose jobs are done on the test's own thread. */
export function openMember({
  storage,
  objects,
  clock,
  seed,
  sink: log = silentLog,
  meter = silentMeter,
  refusal,
  scavengeStore,
  beginsProofs,
  ...options
}: MemberOptions & {
  readonly storage: Storage;
  readonly objects: ObjectStore;
  readonly clock: ManualClock;
  readonly seed: number;
}): Promise<MemberStore> {
  const ids = new SeededIds(seed);
  const states = MemoryScavengeStates.of(storage);
  const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates: states });
  return openMemberStore({
    world: { objects, clock, ids, digests: nodeDigests, log, meter },
    log: { chunkSizeBytes: CHUNK_BYTES, ...options.log },
    ...(scavengeStore !== undefined && { scavengeStore }),
    ...(refusal !== undefined && { refusal }),
    store: {
      world: { storage, clock, ids, digests: nodeDigests, jobs, log, meter: silentMeter },
      cacheBytes: 4_194_304,
      ...(beginsProofs !== undefined && { beginsProofs }),
      log: { verifyChunks: false },
      index: { existenceFilterBytes: 10_000, memTableEntriesMax: 1_000 },
      scavenge: { states, config: { repairHistory: false } },
    },
  });
}

/** A bucket in memory, and members over it, each with a directory in memory. Time passes when the test says so. */
export class Cluster {
  readonly objects = new MemoryObjects();
  readonly clock = new ManualClock(Date.UTC(2026, 10, 22));
  #seeds = 1;

  async open(
    storage: Storage = new MemoryStorage(),
    options: MemberOptions & { readonly through?: (objects: ObjectStore) => ObjectStore } = {},
  ): Promise<MemberStore & { readonly storage: Storage }> {
    const member = await openMember({
      ...options,
      storage,
      objects: options.through?.(this.objects) ?? this.objects,
      clock: this.clock,
      seed: this.#seeds++,
    });
    return Object.assign(member, { storage });
  }
}

let next = 0;

/** An event with an id of its own. */
export function event(
  type: string,
  data = '{}',
): {
  readonly id: string;
  readonly type: string;
  readonly isJson: boolean;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
} {
  return {
    id: `00000000-0000-4000-8000-${(++next).toString(16).padStart(12, '0')}`,
    type,
    isJson: true,
    data: encodeText(data),
    metadata: new Uint8Array(0),
  };
}
