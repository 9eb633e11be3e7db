import type { ByteShare } from '../../../core/base/byte-budget.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { ObjectFailures } from '../../../core/shared-log/shared-failures/shared-failures.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { Scavenger } from '../../../core/scavenge/api.ts';
import { createSecurity } from '../../../core/security/security.ts';
import type { RunningSecurity } from '../../../core/security/security.ts';
import type {
  AllPage, AllPosition, AppendResult, AppendToStreamsOptions, AppendToStreamsResult, Authorize, EventStore, NewEvent, ReadAllOptions, ReadStreamOptions, StoredEvent, StreamInfo, StreamPage, StreamWrite, SubscribeAllOptions,
  SubscribeStreamOptions, SubscriptionMessage, SubscriptionPage,
} from '../../../core/streams/api.ts';
import type { AppContext } from '../../../handlers/http/context.ts';
import { logLevelOf } from '../../runtime/config/options.ts';
import { VERSION } from '../../runtime/version.ts';
import { systemClock } from '../../clock.ts';
import { nodeDigests } from '../../digests.ts';
import { systemIds } from '../../ids.ts';
import { nodeKeys } from '../../keys.ts';
import { openObjects } from '../../objects/open.ts';
import type { Call, FunctionLog } from './http-function.ts';
import { addressOf, readBody, REQUEST_BODY_BYTES_MAX } from './request-of.ts';
import { firstPasswordOf, readSettings } from './settings.ts';
import type { FunctionSettings } from './settings.ts';

/** The store as every function has it, kept while its process lives. */
export interface FunctionStore {
  readonly settings: FunctionSettings;
  readonly world: ObjectWorld;
  readonly instance: ObjectInstance;
  readonly store: SettledStore;
}

/** The settings and the bucket. `hasUsers` as for `readSettings`. */
export async function openWorld(log: FunctionLog, hasUsers: boolean): Promise<{ readonly settings: FunctionSettings; readonly world: ObjectWorld }> {
  const settings = readSettings(process.env, { hasUsers });
  log.setLevel(logLevelOf(settings.values.LogLevel));
  for (const warning of settings.warnings) log.warn(warning);
  const objects = await openObjects(settings.place);
  return { settings, world: { objects, clock: systemClock, ids: systemIds, digests: nodeDigests, log, meter: silentMeter } };
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
  return { settings, world, instance, store: new SettledStore(instance.store) };
}

/** What the handlers of every function have in common. */
export function commonContext({ settings: { values }, store, world }: FunctionStore): Omit<AppContext, 'scavenger' | 'security' | 'features'> {
  return {
    store, world, node: null, server: { addressOf, readBody },
    options: {
      version: VERSION, bodyBytesMax: REQUEST_BODY_BYTES_MAX, readPageBytesMax: values.MaxReadPageBytes, disableHttpCaching: values.DisableHttpCaching,
      logFailedAuthenticationAttempts: values.LogFailedAuthenticationAttempts, logHttpRequests: values.LogHttpRequests,
    },
  };
}

/**
 * A store that knows what is under way in it. A function's process is frozen when its reply has been sent, so what was begun
 * in the background (a note about a refused call, say) must end before. Subscriptions and waits don't count: they end with their request.
 */
export class SettledStore implements EventStore {
  readonly #store: EventStore;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly streamInfoNow?: (stream: string) => StreamInfo | null;

  constructor(store: EventStore) {
    this.#store = store;
    if (store.streamInfoNow !== undefined) this.streamInfoNow = (stream) => store.streamInfoNow!(stream);
  }

  /** Resolves when nothing is under way any more, also nothing that something else was followed by; never rejects. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay);
      // Whatever goes on behind a promise has begun its next step by then.
      await new Promise((resolve) => { setImmediate(resolve); });
    }
  }

  get end(): number { return this.#store.end; }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> {
    return this.#watch(this.#store.append(stream, expectedVersion, events, authorize));
  }

  appendToStreams(writes: readonly StreamWrite[], options?: AppendToStreamsOptions): Promise<AppendToStreamsResult> {
    return this.#watch(this.#store.appendToStreams(writes, options));
  }

  deleteStream(stream: string, expectedVersion: number, kind: 'soft' | 'hard', authorize?: Authorize): Promise<{ readonly position: number }> {
    return this.#watch(this.#store.deleteStream(stream, expectedVersion, kind, authorize));
  }

  readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> { return this.#watch(this.#store.readStream(stream, options)); }
  readEvent(stream: string, number: number | 'last', resolveLinks?: boolean, share?: ByteShare): Promise<StoredEvent> { return this.#watch(this.#store.readEvent(stream, number, resolveLinks, share)); }
  readAll(options: ReadAllOptions): Promise<AllPage> { return this.#watch(this.#store.readAll(options)); }
  streamInfo(stream: string): Promise<StreamInfo> { return this.#watch(this.#store.streamInfo(stream)); }
  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionMessage<number>> { return this.#store.subscribeToStream(stream, options); }
  subscribeToAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionMessage<AllPosition>> { return this.#store.subscribeToAll(options); }
  followStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionPage<number>> { return this.#store.followStream(stream, options); }
  followAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionPage<AllPosition>> { return this.#store.followAll(options); }
  waitForStream(stream: string, signal: AbortSignal): Promise<boolean> { return this.#store.waitForStream(stream, signal); }
  waitForLog(position: number, signal: AbortSignal): Promise<boolean> { return this.#store.waitForLog(position, signal); }

  #watch<T>(work: Promise<T>): Promise<T> {
    const end = () => { this.#underWay.delete(work); };
    this.#underWay.add(work);
    work.then(end, end);
    return work;
  }
}

/** Users, logins and access lists as on a node, over the same streams, with failed logins that all instances count together; null while security is off. The store is closed where that fails, for the next call opens it anew. */
export async function openSecurity({ settings, instance, store, world }: FunctionStore): Promise<RunningSecurity | null> {
  const { values } = settings;
  const { clock, ids, log, meter } = world;
  if (values.Insecure) return null;
  const security = createSecurity(
    { store, keys: nodeKeys, clock, ids, log, meter, sharedFailures: new ObjectFailures(world) },
    { passwordFormat: values.PasswordFormat, allowAnonymousStreamAccess: values.AllowAnonymousStreamAccess, adminPassword: () => firstPasswordOf(settings, 'DefaultAdminPassword'), opsPassword: () => firstPasswordOf(settings, 'DefaultOpsPassword') },
  );
  await openedOrClosed({ instance }, security.start());
  return security;
}

/** What is opened over a store; where that fails the store is closed, for the next call opens it anew. */
export async function openedOrClosed<T>({ instance }: Pick<FunctionStore, 'instance'>, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    await instance.close().catch(() => {});
    throw error;
  }
}

/** In functions that serve no routes of scavenges. */
export const noScavenger: Scavenger = {
  start: refuse, stop: refuse, startDryRun: refuse, dryRun: refuse, explain: refuse,
  current: () => null,
  last: () => null,
  waiting: async () => null,
  progress: () => null,
  hold: () => () => {},
  idle: async () => {},
  close: async () => {},
};

async function refuse(): Promise<never> {
  throw new SkuaError('not_found', 'Scavenges are handled by another function.');
}
