import { ALL_STREAM, notFoundError } from '../../../core/persistent/api.ts';
import type { ConnectionInfo, GroupInfo, PersistentSubscriptions } from '../../../core/persistent/api.ts';
import type { AuditAction } from '../../../core/ports/audit.ts';
import { noteForAudit } from '../../http/context.ts';
import type { App } from '../../http/context.ts';
import { ACTIONS, create, remove, replayParked, truncateParked, update } from '../../persistent/group-changes.ts';
import type { Group } from '../../persistent/group-changes.ts';
import { streaming, unary } from '../call.ts';
import type { GrpcCall, GrpcMethod, GrpcService, MethodRule } from '../call.ts';
import { PersistentSubscriptionsService } from '../messages/persistent-subscriptions.ts';
import type {
  CreateReq,
  DeleteReq,
  GetInfoReq,
  GetInfoResp,
  ListReq,
  ListResp,
  ReplayParkedReq,
  SubscriptionInfo,
  SubscriptionInfoConnectionInfo,
  UpdateReq,
} from '../messages/persistent-subscriptions.ts';
import { MalformedMessage } from '../messages/wire.ts';
import { read } from './read-group.ts';
import { filterOf, groupOf, labelOf, settingsOf, startOf, streamOf } from './group-settings.ts';

const { methods, name } = PersistentSubscriptionsService;
const EMPTY = {};

/**
 * Groups whose consumers share out the events of a stream among themselves. Null where there are none. Only the leader
 * has them.
 */
export function persistentSubscriptions({ features: { subscriptions } }: App): GrpcService | null {
  return subscriptions === null || subscriptions === undefined ? null : { name, methods: methodsOf(subscriptions) };
}

const FOR_USERS: MethodRule = { place: 'leader-only', access: 'authenticated' };

function forOperators(audit: AuditAction): MethodRule {
  return { place: 'leader-only', access: 'operators', audit };
}

/** Of two services. */
export const RESTART = forOperators(ACTIONS.restart);

function methodsOf(groups: PersistentSubscriptions): readonly GrpcMethod[] {
  return [
    unary(methods.Create, forOperators(ACTIONS.create), (request, call) => created(groups, request, call)),
    unary(methods.Update, forOperators(ACTIONS.update), (request, call) => updated(groups, request, call)),
    unary(methods.Delete, forOperators(ACTIONS.remove), (request, call) => deleted(groups, request, call)),
    streaming(methods.Read, FOR_USERS, (call, next) => read(groups, call, next)),
    unary(methods.GetInfo, FOR_USERS, (request) => info(groups, request)),
    unary(methods.ReplayParked, forOperators(ACTIONS.replay), (request, call) =>
      parked(request, call, (group, stopAt) => replayParked(call.call, groups, group, stopAt)),
    ),
    unary(methods.List, FOR_USERS, (request) => list(groups, request)),
    unary(methods.RestartSubsystem, RESTART, () => restart(groups)),
    unary(methods.TruncateParked, forOperators(ACTIONS.truncate), (request, call) =>
      parked(request, call, (group, stopAt) => truncateParked(call.call, groups, group, stopAt)),
    ),
  ];
}

/** What has to be set in every request. */
function isSet<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new MalformedMessage(`${what} are not set`);
  return value;
}

async function created(groups: PersistentSubscriptions, request: CreateReq, call: GrpcCall): Promise<object> {
  noteForAudit(call.call, { target: labelOf(request.options) });
  const options = isSet(request.options, 'options');
  const { named, from } = startOf(options);
  await create(call.call, groups, named, {
    settings: settingsOf(isSet(options.settings, 'settings')),
    from,
    filter: filterOf(options.all?.filter),
  });
  return EMPTY;
}

async function updated(groups: PersistentSubscriptions, request: UpdateReq, call: GrpcCall): Promise<object> {
  noteForAudit(call.call, { target: labelOf(request.options) });
  const options = isSet(request.options, 'options');
  const { named, from } = startOf(options);
  await update(call.call, groups, named, { settings: settingsOf(isSet(options.settings, 'settings')), from });
  return EMPTY;
}

async function deleted(groups: PersistentSubscriptions, { options }: DeleteReq, call: GrpcCall): Promise<object> {
  noteForAudit(call.call, { target: labelOf(options) });
  await remove(call.call, groups, groupOf(isSet(options, 'options')));
  return EMPTY;
}

async function info(groups: PersistentSubscriptions, { options }: GetInfoReq): Promise<GetInfoResp> {
  const { stream, group } = groupOf(isSet(options, 'options'));
  return { subscriptionInfo: infoMessage(await groups.info(stream, group)) };
}

/** Of one stream that has none: as if a group without a name were missing. */
async function list(groups: PersistentSubscriptions, { options }: ListReq): Promise<ListResp> {
  const { listAllSubscriptions, listForStream } = isSet(options, 'options');
  if (listAllSubscriptions !== undefined) return { subscriptions: (await groups.list()).map(infoMessage) };
  const { all, stream: identifier } = isSet(listForStream, 'options');
  const stream = all === undefined ? streamOf(identifier) : ALL_STREAM;
  const found = await groups.list(stream);
  if (found.length === 0) throw notFoundError(stream, '');
  return { subscriptions: found.map(infoMessage) };
}

async function parked(
  { options }: ReplayParkedReq,
  call: GrpcCall,
  work: (group: Group, stopAt: number | null) => Promise<void>,
): Promise<object> {
  noteForAudit(call.call, { target: labelOf(options) });
  const chosen = isSet(options, 'options');
  const named = groupOf(chosen);
  if (chosen.stopAt === undefined && chosen.noLimit === undefined)
    throw new MalformedMessage('the position to stop at is not set');
  await work(named, chosen.stopAt === undefined ? null : Number(chosen.stopAt));
  return EMPTY;
}

/** Of two services: it is answered when all groups have begun anew. */
export async function restart(groups: PersistentSubscriptions): Promise<object> {
  await groups.restart();
  return EMPTY;
}

/** A group as clients are told of it. */
function infoMessage(info: GroupInfo): SubscriptionInfo {
  const { settings } = info;
  return {
    eventSource: info.stream,
    groupName: info.group,
    status: info.status,
    connections: info.connections.map(connectionMessage),
    averagePerSecond: Math.trunc(info.averagePerSecond),
    totalItems: info.totalItems,
    countSinceLastMeasurement: info.countSinceLastMeasurement,
    lastCheckpointedEventPosition: info.lastCheckpointedPosition ?? '',
    lastKnownEventPosition: info.lastKnownPosition ?? '',
    startFrom: info.startFrom,
    resolveLinkTos: settings.resolveLinks,
    messageTimeoutMilliseconds: settings.messageTimeoutMs,
    extraStatistics: settings.extraStatistics,
    maxRetryCount: settings.maxRetryCount,
    liveBufferSize: settings.liveBufferSize,
    bufferSize: settings.historyBufferSize,
    readBatchSize: settings.readBatchSize,
    checkPointAfterMilliseconds: settings.checkpointAfterMs,
    minCheckPointCount: settings.minCheckpointCount,
    maxCheckPointCount: settings.maxCheckpointCount,
    namedConsumerStrategy: settings.strategy,
    maxSubscriberCount: settings.maxSubscriberCount,
    readBufferCount: info.readBufferCount,
    liveBufferCount: info.liveBufferCount,
    retryBufferCount: info.retryBufferCount,
    totalInFlightMessages: info.totalInFlightMessages,
    outstandingMessagesCount: info.outstandingMessagesCount,
    parkedMessageCount: info.parkedMessageCount,
  };
}

function connectionMessage({ averageItemsPerSecond, ...connection }: ConnectionInfo): SubscriptionInfoConnectionInfo {
  return { ...connection, averageItemsPerSecond: Math.trunc(averageItemsPerSecond) };
}
