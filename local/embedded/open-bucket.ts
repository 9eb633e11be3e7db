import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import type { ObjectWorld } from '../../core/shared-log/api.ts';
import { DryRuns } from '../../core/shared-log/dry-runs/dry-runs.ts';
import { checkErasureInObjects } from '../../core/shared-log/erasure-check/erasure-check.ts';
import type { Log } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { ErasureFinding } from '../../core/scavenge/api.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { Disposables } from '../../infra/disposables.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { openObjects, parseLocation } from '../../infra/objects/open-objects.ts';
import { HeldObjects } from '../on-objects/held-objects.ts';
import { KickingScavenger } from '../../infra/runtime/scavengers.ts';
import { newTemporaryStorage } from '../../infra/runtime/temporary-storage.ts';
import { Ticker } from '../on-objects/ticker.ts';
import type { Backend } from './backend.ts';

interface BucketOptions {
  readonly bucket: string;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly upkeep: boolean;
  readonly chunkBytes: number | undefined;
  readonly cacheBytes: number | undefined;
  readonly log: Log;
}

/** A store on object storage, beside functions, nodes and other processes on the same bucket. */
export async function openBucket({
  bucket,
  endpoint,
  region,
  upkeep,
  chunkBytes,
  cacheBytes,
  log,
}: BucketOptions): Promise<Backend> {
  const opened = new Disposables();
  const objects = await openObjects(parseLocation(bucket, { endpoint: endpoint ?? null, region: region ?? null }));
  opened.defer(() => objects.close());
  const world: ObjectWorld = {
    objects,
    clock: systemClock,
    ids: systemIds,
    digests: nodeDigests,
    log,
    meter: silentMeter,
  };
  const options = {
    ...(chunkBytes !== undefined && { chunkSizeBytes: chunkBytes }),
    ...(cacheBytes !== undefined && { cacheBytes }),
  };
  try {
    const instance = await openObjectStore(world, options);
    opened.defer(() => instance.close());
    const ticker = new Ticker({ world, options, settings: {} });
    const held = new HeldObjects(world, options);
    opened.defer(() => held.close());
    const dryRuns = new DryRuns({ world, options, instance, newTemporaryStorage, config: {} });
    opened.defer(() => dryRuns.close());
    const scavenger = new KickingScavenger(world, dryRuns, () => ticker.kick());
    const closing = new AbortController();
    const ticking = upkeep ? ticker.run(closing.signal) : Promise.resolve();
    opened.defer(() => {
      closing.abort();
      return ticking;
    });
    return {
      store: instance.store,
      jobs: held.jobs,
      failed: new Promise(() => {}),
      scavenger,
      refresh: () => scavenger.refresh(),
      hold: () => held.take(),
      search: async ({ stream, events }, signal) => {
        const findings: ErasureFinding[] = [];
        const search = checkErasureInObjects({ world, events, ...(stream !== null && { stream }) });
        for (let next = await search.next(); ; next = await search.next()) {
          if (next.done === true) return { ...next.value, findings };
          if (next.value.kind !== 'progress') findings.push(next.value);
          if (signal?.aborted !== true) continue;
          await search.return(undefined as never);
          throw signal.reason;
        }
      },
      close: () => opened.close(),
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
