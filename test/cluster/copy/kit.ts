import { openMemberStore, type MemberStore } from '../../../core/cluster/copy/member-store.ts';
import type { SkuaError } from '../../../core/errors.ts';
import type { ObjectLogOptions } from '../../../core/object-log/api.ts';
import { InlineJobs } from '../../../core/ports/inline-jobs.ts';
import { type Log, silentLog } from '../../../core/ports/log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { MemoryScavengeStates } from '../../../core/ports/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/ports/memory-storage.ts';
import { type Meter, silentMeter } from '../../../core/ports/meter.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import type { ScavengeStore } from '../../../core/scavenge/run-context.ts';
import type { EventStoreInternals } from '../../../core/streams/event-store.ts';
import { encodeText } from '../../../core/text.ts';
import { JOBS } from '../../../core/workers/jobs.ts';
import { nodeDigests } from '../../../infra/digests.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';

export const CHUNK_BYTES = 65_536;

/** A bucket in memory, and members over it, each with a directory in memory. Time passes when the test says so. */
export class Cluster {
  readonly objects = new MemoryObjects();
  readonly clock = new ManualClock(Date.UTC(2026, 10, 22));
  #seeds = 1;

  async open(storage: Storage = new MemoryStorage(), options: { readonly refusal?: () => SkuaError | null; readonly through?: (objects: ObjectStore) => ObjectStore; readonly log?: ObjectLogOptions; readonly sink?: Log; readonly meter?: Meter; readonly scavengeStore?: (store: EventStoreInternals) => ScavengeStore } = {}): Promise<MemberStore & { readonly storage: Storage }> {
    const { clock } = this;
    const ids = new SeededIds(this.#seeds++);
    const log = options.sink ?? silentLog;
    const objects = options.through?.(this.objects) ?? this.objects;
    const states = MemoryScavengeStates.of(storage);
    const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates: states });
    const member = await openMemberStore({
      world: { objects, clock, ids, digests: nodeDigests, log, meter: options.meter ?? silentMeter },
      log: { chunkSizeBytes: CHUNK_BYTES, ...options.log },
      ...(options.scavengeStore !== undefined && { scavengeStore: options.scavengeStore }), ...(options.refusal !== undefined && { refusal: options.refusal }),
      store: {
        world: { storage, clock, ids, digests: nodeDigests, jobs, log, meter: silentMeter },
        log: { verifyChunks: false }, index: { existenceFilterBytes: 10_000, memTableEntriesMax: 1_000 }, scavenge: { states, config: { repairHistory: false } }, cacheBytes: 4_194_304,
      },
    });
    return Object.assign(member, { storage });
  }
}

let next = 0;

/** An event with an id of its own. */
export function event(type: string, data = '{}'): { readonly id: string; readonly type: string; readonly isJson: boolean; readonly data: Uint8Array; readonly metadata: Uint8Array } {
  return { id: `00000000-0000-4000-8000-${(++next).toString(16).padStart(12, '0')}`, type, isJson: true, data: encodeText(data), metadata: new Uint8Array(0) };
}
