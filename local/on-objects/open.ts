import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { SkuaError } from '../../core/errors.ts';
import { JOBS } from '../../core/jobs.ts';
import type { ObjectInstance, ObjectWorld } from '../../core/object-log/api.ts';
import { openObjectStore } from '../../core/object-log/instance.ts';
import { createObjectNodes } from '../../core/object-log/tick-nodes.ts';
import { InlineJobs } from '../../core/ports/inline-jobs.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { OpenStore, StoreStatus } from '../../core/store.ts';
import { SELF } from '../../infra/aws/functions/auto-scavenge.ts';
import { TickedScavenger } from '../../infra/aws/functions/ticked-scavenger.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { systemIds } from '../../infra/ids.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { openObjects, parsePlace } from '../../infra/objects/open.ts';
import { createSchedule } from '../../infra/schedule.ts';
import { licenceGuard } from '../../core/security/licence-guard.ts';
import { nodeLicence } from '../auto-scavenge/node-licence.ts';
import type { Values } from '../config/options.ts';
import type { OpenNode } from '../open-node.ts';
import { KickingScavenger } from './kicking-scavenger.ts';
import { Ticker } from './ticker.ts';

/** Chunks on object storage are smaller than on a disk: a tick writes whole ones. */
const CHUNK_BYTES = 16_777_216;
const MINUTE_MS = 60_000;

export interface OpenOnObjectsOptions {
  readonly values: Values;
  /** Whether the chunk size was asked for. */
  readonly hasChunkSize: boolean;
  readonly log: Log;
  readonly meter: Meter;
}

export interface NodeOnObjects extends OpenNode {
  readonly autoScavenge: AutoScavenge;
  /** Runs ticks until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * A node whose data lie in a bucket, beside functions and other such nodes on the same one: the local twin of the functions. What
 * these leave to the platform's schedule, ticks, this process does on a timer.
 */
export async function openOnObjects({ values, hasChunkSize, log, meter }: OpenOnObjectsOptions): Promise<NodeOnObjects> {
  const objects = await openObjects(parsePlace(values.Storage!));
  const world: ObjectWorld = { objects, clock: systemClock, ids: systemIds, digests: nodeDigests, log, meter };
  const options = { chunkSizeBytes: hasChunkSize ? values.ChunkSize : CHUNK_BYTES, cacheBytes: values.ChunksCacheSize };
  let instance: ObjectInstance;
  try {
    instance = await openObjectStore(world, options);
  } catch (error) {
    await objects.close();
    throw error;
  }
  const guard = licenceGuard('AUTO_SCAVENGE', { licence: await nodeLicence(values, nodeKeys), clock: systemClock, log });
  const config = { isOff: () => (values['AutoScavenge:Enabled'] === false ? 'The option AutoScavenge:Enabled is false.' : guard()), zone: values['AutoScavenge:TimeZone'], nodeLostAfterMs: values['AutoScavenge:NodeLostAfter'] * MINUTE_MS };
  const { store } = instance;
  const ticked = new TickedScavenger(world, { leftMs: () => Number.POSITIVE_INFINITY });
  const ticker: Ticker = new Ticker({
    world, options, autoScavenge: { schedule: createSchedule(), self: SELF, config }, onTick: () => ticked.refresh(),
    settings: { scavenge: { historyMaxAgeDays: values.ScavengeHistoryMaxAge, disableMerging: values.DisableScavengeMerging, unsafeIgnoreHardDelete: values.UnsafeIgnoreHardDelete } },
  });
  const scavenger = new KickingScavenger(ticked, () => ticker.kick());
  await ticked.refresh();
  const storage = new MemoryStorage();
  const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids: systemIds, clock: systemClock });
  return {
    open: onObjects(instance, scavenger, () => ticker.kick()), storage, jobs,
    autoScavenge: createAutoScavenge({ ...world, store, nodes: createObjectNodes({ world, store, self: SELF }), schedule: createSchedule() }, config),
    run: (signal) => ticker.run(signal),
    close: async () => {
      await instance.close();
      await jobs.close();
      await objects.close();
    },
  };
}

/** The store as the rest of a node sees it. There are no files here that a backup could hold: ticks make the backups. */
function onObjects(instance: ObjectInstance, scavenger: OpenStore['scavenger'], kick: () => void): OpenStore {
  const noFiles = () => new SkuaError('backup_off', 'The data of this node lie on object storage, so it has no files of its own to back up.');
  return {
    store: instance.store, scavenger, chunkSizeBytes: instance.chunkSizeBytes, failed: new Promise(() => {}),
    status: () => statusOf(instance),
    mergeIndexes: () => {
      kick();
      return '00000000-0000-0000-0000-000000000000';
    },
    hold: () => Promise.reject(noFiles()),
    shippableLog: () => { throw noFiles(); },
    close: () => instance.close(),
  };
}

function statusOf({ internals, figures }: ObjectInstance): StoreStatus {
  const { end } = internals;
  return {
    checkpoints: { writer: end, chaser: end, epoch: -1, proposal: -1, truncate: -1 }, existenceCheckpoint: end, isIndexMerging: false, indexMerges: 0, streams: internals.figures(), ...figures(),
  };
}
