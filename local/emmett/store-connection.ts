import { outcomeOf } from '../../handlers/http/problem-document.ts';
import { isSkuaError } from '../event-store/store-errors.ts';
import { StreamGone, VersionConflict } from './emmett-connection.ts';
import type { Connection } from './emmett-connection.ts';
import { SkuaEventStoreError } from './emmett-errors.ts';
import type { UsedEventStore } from './api.ts';

/** Over an event store, of this process or called by HTTP. */
export function storeConnection(store: UsedEventStore): Connection {
  return {
    async read(stream, from, limit, each) {
      // What the reader throws is the application's.
      const isTheirs = { now: false };
      try {
        for await (const event of store.read(stream, {
          from: Number(from),
          ...(limit !== undefined && { limit: Number(limit) }),
        })) {
          isTheirs.now = true;
          each({
            id: event.id,
            type: event.type,
            version: BigInt(event.version),
            position: BigInt(event.position.commit),
            data: event.data,
            metadata: event.metadata,
          });
          isTheirs.now = false;
        }
        return true;
      } catch (error) {
        if (isTheirs.now) throw error;
        if (isSkuaError(error, 'stream_not_found')) return false;
        throw failureOf(error);
      }
    },

    async lastVersion(stream) {
      const { state, version } = await told(() => store.info(stream));
      if (state === 'tombstoned') throw new StreamGone(undefined);
      return state === 'live' && version !== null ? BigInt(version) : null;
    },

    async append(stream, events, expected) {
      const { version, position } = await told(() =>
        store.append(stream, events, { expected: typeof expected === 'bigint' ? Number(expected) : expected }),
      );
      return { version: BigInt(version), position: BigInt(position.commit) };
    },
  };
}

async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failureOf(error);
  }
}

/** What only a store that is called rejects with. */
const STATUSES: Readonly<Record<string, number>> = { unreachable: 503, unexpected_reply: 502, reply_too_large: 413 };

/** An error of a store, as the event store for Emmett takes it. */
export function failureOf(error: unknown): unknown {
  if (!isSkuaError(error)) return error;
  if (isSkuaError(error, 'stream_deleted')) return new StreamGone(error);
  if (isSkuaError(error, 'wrong_expected_version')) {
    const { actual } = error.data;
    return new VersionConflict(actual === null ? null : BigInt(actual), error);
  }
  const { code, message, data } = error;
  // What a schema refuses is the application's when it is written, and the store's when it is read.
  const status = code === 'event_invalid' && 'index' in data ? 400 : (STATUSES[code] ?? outcomeOf(code).status);
  return new SkuaEventStoreError(code, status, message, error);
}
