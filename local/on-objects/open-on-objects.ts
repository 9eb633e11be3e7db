import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { NODE_ID_FILE } from '../../core/store/format/node-id.ts';
import type { ObjectInstance, ObjectWorld } from '../../core/shared-log/api.ts';
import { DryRuns } from '../../core/shared-log/dry-runs/dry-runs.ts';
import { newGuid } from '../../core/index/format/index-map.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { newestManifest } from '../../core/shared-log/format/manifest.ts';
import { createObjectNodes, OF_CLUSTER } from '../../core/shared-log/control/control.ts';
import { createScheduler } from '../../core/shared-log/scheduler/scheduler.ts';
import type { TickReport } from '../../core/shared-log/tick/tick.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { Store, StoreStatus } from '../../core/store/store.ts';
import { encodeText } from '../../core/base/text.ts';
import { KickingScavenger, SELF } from '../../infra/runtime/scavengers.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import type { Disposables } from '../../infra/disposables.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects, parseLocation } from '../../infra/objects/open-objects.ts';
import { createSchedule } from '../../infra/cron-schedule.ts';
import { licenceGuard } from '../../core/security/licence/licence.ts';
import { nodeLicence } from '../auto-scavenge/open-auto-scavenge.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import type { LentNode } from '../store/open-node.ts';
import { HeldObjects } from './held-objects.ts';
import { newTemporaryStorage } from '../../infra/runtime/temporary-storage.ts';
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
  /** What is opened is closed with it. */
  readonly opened: Disposables;
}

export interface NodeOnObjects extends LentNode<Store> {
  readonly autoScavenge: AutoScavenge;
  /** Ends dry runs and explanations; runs are those of all processes on the bucket, and go on. */
  endForesight(): Promise<void>;
  /** Runs ticks until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * A node whose data lie in a bucket, beside functions and other such nodes on the same one: the local twin of the
 * functions. What these leave to the platform's schedule, ticks, this process does on a timer.
 */
export async function openOnObjects({
  values,
  hasChunkSize,
  log,
  meter,
  opened,
}: OpenOnObjectsOptions): Promise<NodeOnObjects> {
  const objects = await openObjects(parseLocation(values.Storage!));
  opened.defer(() => objects.close());
  const world: ObjectWorld = { objects, clock: systemClock, ids: systemIds, digests: nodeDigests, log, meter };
  const options = { chunkSizeBytes: hasChunkSize ? values.ChunkSize : CHUNK_BYTES, cacheBytes: values.ChunksCacheSize };
  const instance = await openObjectStore(world, options);
  opened.defer(() => instance.close());
  const storage = await ownFiles(world);
  // A member may join while this node runs.
  let isCluster = instance.isCluster;
  const guard = licenceGuard('AUTO_SCAVENGE', {
    licence: await nodeLicence(values, nodeKeys),
    clock: systemClock,
    log,
  });
  const config = {
    isOff: () =>
      isCluster
        ? OF_CLUSTER
        : values['AutoScavenge:Enabled'] === false
          ? 'The option AutoScavenge:Enabled is false.'
          : guard(),
    zone: values['AutoScavenge:TimeZone'],
    nodeLostAfterMs: values['AutoScavenge:NodeLostAfter'] * MINUTE_MS,
  };
  const { store } = instance;
  const scavenge = {
    historyMaxAgeDays: values.ScavengeHistoryMaxAge,
    disableMerging: values.DisableScavengeMerging,
    unsafeIgnoreHardDelete: values.UnsafeIgnoreHardDelete,
    keepsDeletedData: values.KeepDataOfDeletedStreams,
  };
  const onTick = (report: TickReport | null): Promise<void> => {
    isCluster = report?.isCluster === true || isCluster;
    return scavenger.refresh();
  };
  const ticker: Ticker = new Ticker({
    world,
    options,
    autoScavenge: createScheduler({
      world,
      schedule: createSchedule(),
      self: SELF,
      config,
      open: () => Promise.resolve(instance),
    }),
    onTick,
    settings: { scavenge },
  });
  const dryRuns = new DryRuns({ world, options, instance, newTemporaryStorage, config: scavenge });
  const scavenger: KickingScavenger = new KickingScavenger(world, dryRuns, () => ticker.kick());
  const held = new HeldObjects(world, options);
  opened.defer(() => held.close());
  opened.defer(() => dryRuns.close());
  await scavenger.refresh();
  return {
    open: onObjects(instance, scavenger, held, () => ticker.kick()),
    storage,
    jobs: held.jobs,
    autoScavenge: createAutoScavenge(
      { ...world, store, nodes: createObjectNodes({ world, store, self: SELF }), schedule: createSchedule() },
      config,
    ),
    endForesight: () => dryRuns.close(),
    run: (signal) => ticker.run(signal),
  };
}

/**
 * What a node keeps beside its data: its id, which is that of the store, so that every node on a bucket adds to the
 * same backups.
 */
async function ownFiles({ objects, digests }: ObjectWorld): Promise<Storage> {
  const storage = new MemoryStorage();
  const file = await storage.create(NODE_ID_FILE);
  await file.writeAt(0, encodeText(`${(await newestManifest(objects, digests))!.storeId}\n`));
  await file.close();
  return storage;
}

/** The store as the rest of a node sees it. */
function onObjects(
  instance: ObjectInstance,
  scavenger: Store['scavenger'],
  held: HeldObjects,
  kick: () => void,
): Store {
  return {
    store: instance.store,
    scavenger,
    chunkSizeBytes: instance.chunkSizeBytes,
    status: () => statusOf(instance),
    chunkMap: (since) => instance.chunkMap.view(since),
    mergeIndexes: () => {
      kick();
      return newGuid(systemIds);
    },
    hold: () => held.take(),
    close: () => instance.close(),
  };
}

function statusOf({ internals, figures }: ObjectInstance): StoreStatus {
  const { end } = internals;
  return {
    checkpoints: { writer: end, chaser: end, epoch: -1, proposal: -1, truncate: -1 },
    existenceCheckpoint: end,
    isIndexMerging: false,
    indexMerges: 0,
    streams: internals.figures(),
    proofs: null,
    checksummedTo: null,
    ...figures(),
  };
}
