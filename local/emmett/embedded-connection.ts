import { StreamGone, VersionConflict } from './emmett-connection.ts';
import type { Connection } from './emmett-connection.ts';
import type { EmbeddedStore } from './api.ts';

/** What is used of the errors of a store. */
interface StoreError {
  readonly code?: string;
  readonly data?: { readonly actual?: unknown };
}

/** Over a store of this process. */
export function embeddedConnection(store: EmbeddedStore): Connection {
  return {
    async read(stream, from, limit, each) {
      try {
        for await (const event of store.read(stream, {
          from: Number(from),
          ...(limit !== undefined && { limit: Number(limit) }),
        })) {
          each({
            id: event.id,
            type: event.type,
            version: BigInt(event.version),
            position: BigInt(event.position.commit),
            data: event.data,
            metadata: event.metadata,
          });
        }
        return true;
      } catch (error) {
        if (codeOf(error) === 'stream_not_found') return false;
        throw gone(error);
      }
    },

    async lastVersion(stream) {
      const { state, version } = await store.info(stream);
      if (state === 'tombstoned') throw new StreamGone(undefined);
      return state === 'live' && version !== null ? BigInt(version) : null;
    },

    async append(stream, events, expected) {
      try {
        const { version, position } = await store.append(stream, events, {
          expected: typeof expected === 'bigint' ? Number(expected) : expected,
        });
        return { version: BigInt(version), position: BigInt(position.commit) };
      } catch (error) {
        if (codeOf(error) !== 'wrong_expected_version') throw gone(error);
        const actual = (error as StoreError).data?.actual;
        throw new VersionConflict(typeof actual === 'number' && actual >= 0 ? BigInt(actual) : null, error);
      }
    },
  };
}

function codeOf(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null ? (error as StoreError).code : undefined;
}

function gone(error: unknown): unknown {
  return codeOf(error) === 'stream_deleted' ? new StreamGone(error) : error;
}
