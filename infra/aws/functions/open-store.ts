import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { ObjectFailures } from '../../../core/shared-log/shared-failures/shared-failures.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createSecurity } from '../../../core/security/security.ts';
import type { RunningSecurity } from '../../../core/security/security.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { layer, performWrite } from '../../../core/streams/layer/layer.ts';
import type { AppContext } from '../../../handlers/http/context.ts';
import { logLevelOf } from '../../runtime/config/options.ts';
import { VERSION } from '../../runtime/version.ts';
import { systemClock } from '../../system-clock.ts';
import { nodeDigests } from '../../node-digests.ts';
import { systemIds } from '../../system-ids.ts';
import { nodeKeys } from '../../node-keys.ts';
import { openObjects } from '../../objects/open-objects.ts';
import type { Call, FunctionLog } from './http-function.ts';
import { addressOf, readBody, REQUEST_BODY_BYTES_MAX } from './request-of.ts';
import { firstPasswordOf, readSettings } from './function-settings.ts';
import type { FunctionSettings } from './function-settings.ts';

/** The store as every function has it, kept while its process lives. */
export interface FunctionStore {
  readonly settings: FunctionSettings;
  readonly world: ObjectWorld;
  readonly instance: ObjectInstance;
  readonly store: EventStore;
  /**
   * Resolves when nothing is under way in the store any more, also nothing that something else was followed by; never
   * rejects.
   */
  settled(): Promise<void>;
}

/** The settings and the bucket. `hasUsers` as for `readSettings`. */
export async function openWorld(
  log: FunctionLog,
  hasUsers: boolean,
): Promise<{ readonly settings: FunctionSettings; readonly world: ObjectWorld }> {
  const settings = readSettings(process.env, { hasUsers });
  log.setLevel(logLevelOf(settings.values.LogLevel));
  for (const warning of settings.warnings) log.warn(warning);
  const objects = await openObjects(settings.place);
  return {
    settings,
    world: { objects, clock: systemClock, ids: systemIds, digests: nodeDigests, log, meter: silentMeter },
  };
}

/** How a store on this prefix is opened, by requests and by ticks. */
export function objectLogOptions({ values }: FunctionSettings): ObjectLogOptions {
  return { chunkSizeBytes: values.ChunkSize, cacheBytes: values.ChunksCacheSize };
}

export async function openFunctionStore({ log }: Call, { hasUsers = true } = {}): Promise<FunctionStore> {
  const { settings, world } = await openWorld(log, hasUsers);
  const instance = await openObjectStore(world, objectLogOptions(settings)).catch(async (error: unknown) => {
    // The next call opens both anew.
    await world.objects.close().catch(() => {});
    throw error;
  });
  return { settings, world, instance, ...settledStore(instance.store) };
}

/** What the handlers of every function have in common. */
export function commonContext({
  settings: { values },
  store,
  world,
}: FunctionStore): Omit<AppContext, 'scavenger' | 'security' | 'features'> {
  return {
    store,
    world,
    node: null,
    server: { addressOf, readBody },
    options: {
      version: VERSION,
      bodyBytesMax: REQUEST_BODY_BYTES_MAX,
      readPageBytesMax: values.MaxReadPageBytes,
      disableHttpCaching: values.DisableHttpCaching,
      logFailedAuthenticationAttempts: values.LogFailedAuthenticationAttempts,
      logHttpRequests: values.LogHttpRequests,
    },
  };
}

/**
 * A store that knows what is under way in it. A function's process is frozen when its reply has been sent, so what was
 * begun in the background (a note about a refused call, say) must end before. Subscriptions and waits don't count: they
 * end with their request.
 */
export function settledStore(store: EventStore): Pick<FunctionStore, 'store' | 'settled'> {
  const underWay = new Set<Promise<unknown>>();
  const watched = <T>(work: Promise<T>): Promise<T> => {
    const end = () => {
      underWay.delete(work);
    };
    underWay.add(work);
    work.then(end, end);
    return work;
  };
  return {
    store: layer(store, {
      write: (write) => watched(performWrite(store, write)),
      read: (call) => watched(call(store)),
    }),
    settled: async () => {
      while (underWay.size > 0) {
        await Promise.allSettled(underWay);
        // Whatever goes on behind a promise has begun its next step by then.
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
    },
  };
}

/**
 * Users, logins and access lists as on a node, over the same streams, with failed logins that all instances count
 * together; null while security is off. The store is closed where that fails, for the next call opens it anew.
 */
export async function openSecurity({
  settings,
  instance,
  store,
  world,
}: FunctionStore): Promise<RunningSecurity | null> {
  const { values } = settings;
  const { clock, ids, log, meter } = world;
  if (values.Insecure) return null;
  const security = createSecurity(
    { store, keys: nodeKeys, clock, ids, log, meter, sharedFailures: new ObjectFailures(world) },
    {
      passwordFormat: values.PasswordFormat,
      allowAnonymousStreamAccess: values.AllowAnonymousStreamAccess,
      adminPassword: () => firstPasswordOf(settings, 'DefaultAdminPassword'),
      opsPassword: () => firstPasswordOf(settings, 'DefaultOpsPassword'),
    },
  );
  await openedOrClosed({ instance }, security.start());
  return security;
}

/** What is opened over a store; where that fails the store is closed, for the next call opens it anew. */
export async function openedOrClosed<T>(
  { instance }: Pick<FunctionStore, 'instance'>,
  opening: Promise<T>,
): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    await instance.close().catch(() => {});
    throw error;
  }
}
