import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../../../core/object-log/api.ts';
import { openObjectStore } from '../../../core/object-log/instance.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { AppContext } from '../../../handlers/http/context.ts';
import { logLevelOf } from '../../../local/config/table/logging.ts';
import { VERSION } from '../../../local/version.ts';
import { systemClock } from '../../clock.ts';
import { nodeDigests } from '../../digests.ts';
import { systemIds } from '../../ids.ts';
import { openObjects } from '../../objects/open.ts';
import type { FunctionLog } from './function-log.ts';
import type { Call } from './http-function.ts';
import { addressOf, readBody, REQUEST_BODY_BYTES_MAX } from './request-of.ts';
import { SettledStore } from './settled-store.ts';
import { readSettings } from './settings.ts';
import type { FunctionSettings } from './settings.ts';

/** The store as every function has it, kept while its process lives. */
export interface FunctionStore {
  readonly settings: FunctionSettings;
  readonly world: ObjectWorld;
  readonly instance: ObjectInstance;
  readonly store: SettledStore;
}

/** The settings and the bucket. */
export async function openWorld(log: FunctionLog): Promise<{ readonly settings: FunctionSettings; readonly world: ObjectWorld }> {
  const settings = readSettings(process.env);
  log.setLevel(logLevelOf(settings.values.LogLevel));
  for (const warning of settings.warnings) log.warn(warning);
  const objects = await openObjects(settings.place);
  return { settings, world: { objects, clock: systemClock, ids: systemIds, digests: nodeDigests, log, meter: silentMeter } };
}

/** How a store on this prefix is opened, by requests and by ticks. */
export function objectLogOptions({ values }: FunctionSettings): ObjectLogOptions {
  return { chunkSizeBytes: values.ChunkSize, cacheBytes: values.ChunksCacheSize };
}

export async function openFunctionStore({ log }: Call): Promise<FunctionStore> {
  const { settings, world } = await openWorld(log);
  const instance = await openObjectStore(world, objectLogOptions(settings)).catch(async (error: unknown) => {
    // The next call opens both anew.
    await world.objects.close().catch(() => {});
    throw error;
  });
  return { settings, world, instance, store: new SettledStore(instance.store) };
}

/** What the handlers of every function have in common. */
export function commonContext({ settings: { values }, store, world }: FunctionStore): Omit<AppContext, 'scavenger' | 'security'> {
  return {
    store, node: null, clock: world.clock, ids: world.ids, log: world.log, meter: world.meter, addressOf, readBody,
    options: {
      version: VERSION, bodyBytesMax: REQUEST_BODY_BYTES_MAX, disableHttpCaching: values.DisableHttpCaching,
      logFailedAuthenticationAttempts: values.LogFailedAuthenticationAttempts, logHttpRequests: values.LogHttpRequests,
    },
  };
}
