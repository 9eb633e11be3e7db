import type { ConnectionInfo, GroupInfo } from '../../../core/persistent/api.ts';
import type { SubscriptionInfo, SubscriptionInfoConnectionInfo } from '../messages/persistent-subscriptions.ts';

/** A group as clients are told of it. */
export function infoMessage(info: GroupInfo): SubscriptionInfo {
  const { settings } = info;
  return {
    eventSource: info.stream, groupName: info.group, status: info.status, connections: info.connections.map(connectionMessage),
    averagePerSecond: Math.trunc(info.averagePerSecond), totalItems: info.totalItems, countSinceLastMeasurement: info.countSinceLastMeasurement,
    lastCheckpointedEventPosition: info.lastCheckpointedPosition ?? '', lastKnownEventPosition: info.lastKnownPosition ?? '', startFrom: info.startFrom,
    resolveLinkTos: settings.resolveLinks, messageTimeoutMilliseconds: settings.messageTimeoutMs, extraStatistics: settings.extraStatistics, maxRetryCount: settings.maxRetryCount,
    liveBufferSize: settings.liveBufferSize, bufferSize: settings.historyBufferSize, readBatchSize: settings.readBatchSize, checkPointAfterMilliseconds: settings.checkpointAfterMs,
    minCheckPointCount: settings.minCheckpointCount, maxCheckPointCount: settings.maxCheckpointCount, namedConsumerStrategy: settings.strategy, maxSubscriberCount: settings.maxSubscriberCount,
    readBufferCount: info.readBufferCount, liveBufferCount: info.liveBufferCount, retryBufferCount: info.retryBufferCount, totalInFlightMessages: info.totalInFlightMessages,
    outstandingMessagesCount: info.outstandingMessagesCount, parkedMessageCount: info.parkedMessageCount,
  };
}

function connectionMessage({ averageItemsPerSecond, ...connection }: ConnectionInfo): SubscriptionInfoConnectionInfo {
  return { ...connection, averageItemsPerSecond: Math.trunc(averageItemsPerSecond) };
}
