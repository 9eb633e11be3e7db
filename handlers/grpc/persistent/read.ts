import type { GroupConsumer, NackAction, PersistentSubscriptions } from '../../../core/persistent/api.ts';
import { mayProcess } from '../../persistent/changes.ts';
import { checkReader } from '../../streams/access.ts';
import { send } from '../call.ts';
import type { GrpcCall } from '../call.ts';
import { writeReadResp } from '../messages/persistent-subscriptions.ts';
import type { ReadReq, ReadReqOptions } from '../messages/persistent-subscriptions.ts';
import { MalformedMessage } from '../messages/wire.ts';
import type { Uuid } from '../messages/wire.ts';
import { dashed } from '../streams/proposed.ts';
import { deliveryBlocks } from './deliveries.ts';
import { groupOf } from './settings.ts';

/** One consumer of a group, as long as its call lasts. */
export async function read(groups: PersistentSubscriptions, call: GrpcCall, next: () => Promise<ReadReq | null>): Promise<void> {
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

function connected(groups: PersistentSubscriptions, { app, call, signal }: GrpcCall, stream: string, group: string, bufferSize: number): Promise<GroupConsumer> {
  const connectionName = call.request.headers.get('connection-name')?.slice(0, CONNECTION_NAME_LENGTH_MAX) ?? UNNAMED;
  return groups.connect(stream, group, { bufferSize: Math.max(0, bufferSize), username: call.principal.name ?? '', connectionName, from: app.server.addressOf?.(call.request) ?? '', signal });
}

/** Sends what the group has for this consumer, until it is closed. A client that takes nothing holds one block, and what it has not answered is bounded by its buffer. */
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
