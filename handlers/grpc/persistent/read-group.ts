import type { Delivery, GroupConsumer, NackAction, PersistentSubscriptions } from '../../../core/persistent/api.ts';
import type { RedactionView, StoredEvent } from '../../../core/streams/api.ts';
import { mayProcess } from '../../persistent/group-changes.ts';
import { checkReader, withoutForbidden } from '../../streams/access.ts';
import { send } from '../call.ts';
import type { GrpcCall, GrpcTransport } from '../call.ts';
import { eventBlock } from '../events/event-block.ts';
import { writeReadResp } from '../messages/persistent-subscriptions.ts';
import type { ReadReq, ReadReqOptions } from '../messages/persistent-subscriptions.ts';
import { MalformedMessage } from '../messages/wire.ts';
import type { Uuid } from '../messages/wire.ts';
import { dashed } from '../streams/proposed.ts';
import { groupOf } from './group-settings.ts';

/** One consumer of a group, as long as its call lasts. */
export async function read(
  groups: PersistentSubscriptions,
  call: GrpcCall,
  next: () => Promise<ReadReq | null>,
): Promise<void> {
  const options = (await next())?.options;
  if (options === undefined) throw new MalformedMessage('a call must start with its options');
  const { stream, group } = groupOf(options);
  await mayProcess(call.call, call.app, stream);
  const isStructured = isStructuredOf(options);
  const consumer = await connected(groups, call, stream, group, options.bufferSize);
  try {
    const room = send(call, { subscriptionConfirmation: { subscriptionId: consumer.subscriptionId } }, writeReadResp);
    if (room !== null) await room;
    const delivered = deliver(consumer, call, stream, isStructured);
    // The client's half-close ends nothing: what it does not answer any more comes again after the message timeout.
    const answered = answers(consumer, next).then(() => delivered);
    answered.catch(() => {});
    await Promise.race([delivered, answered]);
  } finally {
    consumer.close();
  }
}

function isStructuredOf({ uuidOption }: ReadReqOptions): boolean {
  if (uuidOption === undefined) throw new MalformedMessage('the form of ids is not set');
  return uuidOption.string === undefined;
}

/** Longest name of a connection that is kept, in characters. */
const CONNECTION_NAME_LENGTH_MAX = 256;
/** What connections without a name are called. */
const UNNAMED = '<unknown>';

function connected(
  groups: PersistentSubscriptions,
  { app, call, signal }: GrpcCall,
  stream: string,
  group: string,
  bufferSize: number,
): Promise<GroupConsumer> {
  const connectionName = call.request.headers.get('connection-name')?.slice(0, CONNECTION_NAME_LENGTH_MAX) ?? UNNAMED;
  return groups.connect(stream, group, {
    bufferSize: Math.max(0, bufferSize),
    username: call.principal.name ?? '',
    connectionName,
    from: app.server.addressOf?.(call.request) ?? '',
    signal,
  });
}

/**
 * Sends what the group has for this consumer, until it is closed. A client that takes nothing holds one block, and what
 * it has not answered is bounded by its buffer.
 */
async function deliver(consumer: GroupConsumer, call: GrpcCall, stream: string, isStructured: boolean): Promise<void> {
  for (;;) {
    const deliveries = await consumer.next();
    if (deliveries.length === 0) return;
    await checkReader(call.call, call.app, stream);
    for (const block of await deliveryBlocks(call, deliveries, isStructured)) {
      const room = call.transport.send(block);
      if (room !== null) await room;
    }
  }
}

/** Bytes of data and metadata with which a block is sent; the event that it ends with may make it longer. */
const BLOCK_BYTES = 65_536;

/**
 * Messages for a consumer, many in a block, each made when it is asked for. Links stay links where the caller may not
 * read what they point to. What was delivered is others' too, and is not changed.
 */
async function deliveryBlocks(
  { call, app, transport }: GrpcCall,
  deliveries: readonly Delivery[],
  isStructured: boolean,
): Promise<Iterable<Uint8Array>> {
  const events: StoredEvent[] = deliveries.map(({ event }) => event);
  const links = events.map((event) => event.link !== null || event.linkTargetMissing);
  if (links.includes(true)) {
    for (let i = 0; i < events.length; i++) if (links[i]) events[i] = { ...events[i]! };
    await withoutForbidden(call, app, events);
  }
  // A link that leads to nothing for this caller is sent as a link, also by groups that resolve none: what they park is
  // resolved.
  return blocks(
    transport,
    events,
    deliveries,
    isStructured,
    events.map((event, i) => links[i]! && event.link === null),
    app.store.redactions,
  );
}

/** As it reads now: the client may have taken its time. A resolved event has the positions of its link. */
function sentEvent(read: StoredEvent, redactions: RedactionView): StoredEvent {
  const event = redactions.shown(read);
  if (event.link === null) return event;
  const { position, preparePosition } = event.link;
  return { ...event, position, preparePosition };
}

function* blocks(
  transport: GrpcTransport,
  events: readonly StoredEvent[],
  deliveries: readonly Delivery[],
  isStructured: boolean,
  isLinkOnly: readonly boolean[],
  redactions: RedactionView,
): Generator<Uint8Array, void, undefined> {
  for (let from = 0; from < events.length;) {
    const resolvesLinks = isLinkOnly[from]!;
    let to = from;
    for (let bytes = 0; to < events.length && isLinkOnly[to] === resolvesLinks && bytes < BLOCK_BYTES; to++)
      bytes += bytesOf(events[to]!);
    yield eventBlock(
      events.slice(from, to).map((event) => sentEvent(event, redactions)),
      { isStructured, resolvesLinks },
      deliveries.slice(from, to).map(({ retryCount }) => retryCount),
      (count) => transport.memory(count),
    );
    from = to;
  }
}

function bytesOf({ data, metadata, link }: StoredEvent): number {
  return data.length + metadata.length + (link === null ? 0 : link.data.length + link.metadata.length);
}

const ACTIONS: readonly NackAction[] = ['Unknown', 'Park', 'Retry', 'Skip', 'Stop'];

/** Hears what the client says of what it was sent, until it says nothing more. Further options are not looked at. */
async function answers(consumer: GroupConsumer, next: () => Promise<ReadReq | null>): Promise<void> {
  for (;;) {
    const message = await next();
    if (message === null) return;
    const { ack, nack } = message;
    if (ack !== undefined) consumer.ack(ack.ids.map(idOf));
    else if (nack !== undefined) consumer.nack(nack.ids.map(idOf), ACTIONS[nack.action] ?? 'Unknown', nack.reason);
  }
}

/** What is no id at all names nothing that was sent. */
function idOf({ text }: Uuid): string {
  return dashed(text);
}
