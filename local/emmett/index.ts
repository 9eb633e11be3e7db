import { connect } from '../client/connect.ts';
import { consumerOf } from './emmett-consumer.ts';
import { eventStoreOver } from './event-store.ts';
import { grpcConnection } from './grpc-connection.ts';
import { storeConnection } from './store-connection.ts';
import type { Client } from '../client/api.ts';
import type { Connection } from './emmett-connection.ts';
import type {
  EventSource,
  HttpSource,
  SkuaConsumer,
  SkuaConsumerOptions,
  SkuaEventStore,
  SkuaEventStoreOptions,
  ProjectedEventStore,
} from './api.ts';

export { SkuaEventStoreError } from './emmett-errors.ts';
export { SkuaEventStoreDefaultStreamVersion } from './event-store.ts';
export type * from './api.ts';

/**
 * Emmett's event store over a store of `skua/embedded` or `skua/client`, also one with types (`skua/events`), an
 * official client, or the address of a node or of functions. Nothing is opened, and nothing has to be closed: what it
 * was given stays its maker's.
 *
 * @throws TypeError for what is none of them.
 */
export function getSkuaEventStore(source: EventSource, options?: SkuaEventStoreOptions): SkuaEventStore {
  return eventStoreOver(connectionOf(source), options);
}

/**
 * A consumer of Emmett over a store of `skua/embedded` or `skua/client`, also one with types, or the address of a node
 * or of functions.
 *
 * @throws TypeError for what is none of them.
 */
export function getSkuaConsumer(
  source: ProjectedEventStore | HttpSource,
  options: SkuaConsumerOptions = {},
): SkuaConsumer {
  if (isAddress(source)) {
    const client = connected(source);
    return consumerOf(client, () => client.close(), options);
  }
  if (typeof source === 'object' && source !== null && 'subscribe' in source && 'checkpoint' in source)
    return consumerOf(source, async () => {}, options);
  throw new TypeError(
    'A consumer is made of a store of skua/embedded, skua/client or skua/events, or { url } of a node or of functions.',
  );
}

function connectionOf(source: EventSource): Connection {
  if (isAddress(source)) return storeConnection(connected(source));
  if (typeof source === 'object' && source !== null) {
    if ('appendToStream' in source && 'readStream' in source) return grpcConnection(source);
    if ('append' in source && 'read' in source && 'info' in source) return storeConnection(source);
  }
  throw new TypeError(
    'An event store is made of a store of skua/embedded, skua/client or skua/events, a client of @kurrent/kurrentdb-client or @eventstore/db-client, or { url } of a node or of functions.',
  );
}

function isAddress(source: object): source is HttpSource {
  return typeof source === 'object' && source !== null && ('url' in source || 'urls' in source);
}

/** Nothing is sent yet, and nothing is held that would have to be let go. */
function connected(source: HttpSource): Client {
  return connect('urls' in source ? source : { ...source, url: String(source.url) });
}
