import type { Json } from '../../../grpc/codec.ts';
import { FakeSubscriptions } from '../../../support/fake-subscriptions.ts';
import { AS } from '../../secured.ts';
import { audited } from '../audited.ts';

export const AT = '/event_store.client.persistent_subscriptions.PersistentSubscriptions';
export const DENIED = { status: 7, message: 'Access Denied', trailers: { exception: 'access-denied' }, received: [] };
export const UNHANDLED = { status: 2, message: 'Exception was thrown by handler.', trailers: {}, received: [] };
export const DONE = { status: 0, message: '', trailers: {}, received: [{}] };

/** A stream as messages name it. */
export function streamNamed(name: string): Json {
  return { stream_name: Buffer.from(name, 'utf8').toString('base64') };
}

/** As the recordings have them. */
export const SETTINGS = {
  max_retry_count: 2,
  min_checkpoint_count: 1,
  max_checkpoint_count: 5,
  live_buffer_size: 50,
  read_batch_size: 10,
  history_buffer_size: 40,
  consumer_strategy: 'RoundRobin',
  message_timeout_ms: 1500,
  checkpoint_after_ms: 500,
};

/** gRPC over groups that do what a test says. */
export function kit() {
  const subscriptions = new FakeSubscriptions();
  const h = audited({ subscriptions });
  const ask = (method: string, options: Json | undefined, who: Record<string, string> = AS.ops) =>
    h.call(`${AT}/${method}`, options === undefined ? {} : { options }, who);
  const create = (options: Json, who?: Record<string, string>) => ask('Create', options, who);
  /** A group of a stream from its start. */
  const group = (stream: string, name: string, more: Json = {}) =>
    create({
      stream: { stream_identifier: streamNamed(stream), start: {} },
      group_name: name,
      settings: { ...SETTINGS, ...more },
    });
  const open = (options: Json, who: Record<string, string> = AS.ops) =>
    h.open(`${AT}/Read`, [{ options: { buffer_size: 3, uuid_option: { string: {} }, ...options } }], {
      metadata: who,
      isOpen: true,
    });
  return { ...h, subscriptions, ask, create, group, open, openCall: h.open };
}
