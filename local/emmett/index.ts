import { embeddedConnection } from './embedded-connection.ts';
import { eventStoreOver } from './event-store.ts';
import { grpcConnection } from './grpc-connection.ts';
import { httpConnection } from './http-connection.ts';
import type { Connection } from './emmett-connection.ts';
import type { EventSource, SkuaEventStore, SkuaEventStoreOptions } from './api.ts';

export { SkuaEventStoreError } from './emmett-errors.ts';
export { SkuaEventStoreDefaultStreamVersion } from './event-store.ts';
export type * from './api.ts';

/**
 * Emmett's event store over a store of `skua/embedded`, an official client, or the address of a node or of functions.
 * Nothing is opened, and nothing has to be closed: what it was given stays its maker's.
 *
 * @throws TypeError for what is none of them.
 */
export function getSkuaEventStore(source: EventSource, options?: SkuaEventStoreOptions): SkuaEventStore {
  return eventStoreOver(connectionOf(source), options);
}

function connectionOf(source: EventSource): Connection {
  if (typeof source === 'object' && source !== null) {
    if ('appendToStream' in source && 'readStream' in source) return grpcConnection(source);
    if ('append' in source && 'read' in source && 'info' in source) return embeddedConnection(source);
    if ('url' in source) return httpConnection(source);
  }
  throw new TypeError(
    'An event store is made of a store that was opened with skua/embedded, a client of @kurrent/kurrentdb-client or @eventstore/db-client, or { url } of a node or of functions.',
  );
}
