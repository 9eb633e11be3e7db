import { ALL_STREAM, parkedStreamOf } from '../../core/persistent/api.ts';
import type { ConnectionInfo, GroupInfo } from '../../core/persistent/api.ts';
import type { Call } from '../http/context.ts';
import { baseOf, escapeName, streamUrl } from '../http/url.ts';
import type { ConnectionDocument, DetailsDocument, GroupMembers, SummaryDocument } from '../documents/subscriptions.ts';
import { configDocument } from './config.ts';

/** Groups as JSON. */

export function groupUrl(call: Call, stream: string, group: string): string {
  return `${baseOf(call)}/subscriptions/${escapeName(stream)}/${escapeName(group)}`;
}

/**
 * A group in a list. `parkedMessageCount` and `startPosition` are ours: operators look at a list for what is parked,
 * and for how far groups are behind, which counts from their start until there is a checkpoint.
 */
export function summaryDocument(call: Call, info: GroupInfo): SummaryDocument {
  return {
    links: [{ href: `${groupUrl(call, info.stream, info.group)}/info`, rel: 'detail' }],
    ...common(call, info),
    connectionCount: info.connections.length,
    totalInFlightMessages: info.totalInFlightMessages,
    parkedMessageCount: info.parkedMessageCount,
    startPosition: info.startFrom,
  };
}

/** All that is known of a group. */
export function detailsDocument(call: Call, info: GroupInfo): DetailsDocument {
  const url = groupUrl(call, info.stream, info.group);
  return {
    links: [
      { href: `${url}/info`, rel: 'detail' },
      { href: `${url}/replayParked`, rel: 'replayParked' },
    ],
    config: configDocument(info.stream, info.startFrom, info.settings),
    ...common(call, info),
    countSinceLastMeasurement: info.countSinceLastMeasurement,
    readBufferCount: info.readBufferCount,
    liveBufferCount: info.liveBufferCount,
    retryBufferCount: info.retryBufferCount,
    totalInFlightMessages: info.totalInFlightMessages,
    outstandingMessagesCount: info.outstandingMessagesCount,
    parkedMessageCount: info.parkedMessageCount,
    connections: info.connections.map(connectionDocument),
    connectionCount: info.connections.length,
  };
}

function common(
  call: Call,
  { stream, group, status, averagePerSecond, totalItems, lastCheckpointedPosition, lastKnownPosition }: GroupInfo,
): GroupMembers {
  return {
    eventStreamId: stream,
    groupName: group,
    parkedMessageUri: streamUrl(call, parkedStreamOf(stream, group)),
    getMessagesUri: `${groupUrl(call, stream, group)}/1`,
    status,
    averageItemsPerSecond: averagePerSecond,
    totalItemsProcessed: totalItems,
    lastProcessedEventNumber: numberOf(stream, lastCheckpointedPosition),
    lastCheckpointedEventPosition: lastCheckpointedPosition,
    lastKnownEventNumber: numberOf(stream, lastKnownPosition),
    lastKnownEventPosition: lastKnownPosition,
  };
}

/** -1 while it is unknown, and of `$all`, whose events are known by their positions. */
function numberOf(stream: string, position: string | null): number {
  return position === null || stream === ALL_STREAM ? -1 : Number(position);
}

function connectionDocument({ totalItems, observedMeasurements, ...connection }: ConnectionInfo): ConnectionDocument {
  const {
    from,
    username,
    averageItemsPerSecond,
    countSinceLastMeasurement,
    availableSlots,
    inFlightMessages,
    connectionName,
  } = connection;
  return {
    from,
    username,
    averageItemsPerSecond,
    totalItemsProcessed: totalItems,
    countSinceLastMeasurement,
    extraStatistics: observedMeasurements,
    availableSlots,
    inFlightMessages,
    connectionName,
  };
}
