import { type MemberStore, openMemberStore } from '../../../core/cluster/replica/replica.ts';
import { InlineJobs } from '../../../core/memory/inline-jobs.ts';
import { type Log, silentLog } from '../../../core/ports/log.ts';
import type { ScavengeStates } from '../../../core/ports/scavenge-state.ts';
import { JOBS } from '../../../core/jobs/jobs.ts';
import type { SimProcess } from '../shared-log/sim-process.ts';
import type { SimDisk } from './sim-disk.ts';
import { CHUNK_BYTES } from './truth.ts';
import { FRESH_MS, REMOVE_AFTER_MS, type World } from './world.ts';

export type OpenedMember = MemberStore;

export interface MemberParts {
  readonly world: World;
  readonly process: SimProcess;
  readonly disk: SimDisk;
  readonly states: ScavengeStates;
  /** The copy ended inside a file that was scavenged in the bucket, and goes on with that file. */
  readonly onCutBack: () => void;
}

/** Opens the real thing over simulated time, disk, bucket and chance. */
export function openMember({ world, process, disk, states, onCutBack }: MemberParts): Promise<OpenedMember> {
  const { objects, clock, ids, digests, meter } = world.objectWorld(process);
  const log: Log = {
    ...silentLog,
    warn: (text) => {
      if (text.startsWith('the copy is cut back')) onCutBack();
    },
  };
  const jobs = new InlineJobs({ jobs: JOBS, storage: disk, digests, ids, clock, scavengeStates: states });
  return openMemberStore({
    world: { objects, clock, ids, digests, log, meter },
    log: objectOptions(world),
    store: {
      world: { storage: disk, clock, ids, digests, jobs, log, meter },
      cacheBytes: 1_048_576,
      log: { verifyChunks: false },
      index: { memTableEntriesMax: 40, existenceFilterBytes: 10_000 },
      ...(world.clients === 'deciding' && { attributes: { memTableEntriesMax: 40 } }),
      scavenge: { states, config: { repairHistory: false } },
    },
  });
}

export function objectOptions(world: World) {
  return {
    chunkSizeBytes: CHUNK_BYTES,
    cacheBytes: 1_048_576,
    freshMs: FRESH_MS,
    removeAfterMs: REMOVE_AFTER_MS,
    commitDeadlineMs: 6_000,
    streams: world.judge.truth.remembersAll
      ? { recentIds: world.random.pick([16, 256]), idLookbackEvents: 1_000 }
      : { recentIds: 4, idLookbackEvents: 2 },
  };
}
