import type { ConnectionInfo, GroupInfo } from '../../core/persistent/api.ts';
import type { LinkDocument } from './link.ts';

/** Documents of persistent subscriptions as they are sent: types alone. */

/** The settings of a group, as they are taken, too. */
export interface GroupConfigDocument {
  readonly resolveLinktos: boolean;
  /** The start as a number; of groups of streams. */
  readonly startFrom?: number;
  /** The number of an event, `-1` for the end; of groups of `$all` a position. */
  readonly startPosition: string;
  readonly messageTimeoutMilliseconds: number;
  readonly extraStatistics: boolean;
  readonly maxRetryCount: number;
  readonly liveBufferSize: number;
  readonly bufferSize: number;
  readonly readBatchSize: number;
  /** As clients of long ago name a strategy. */
  readonly preferRoundRobin: boolean;
  readonly checkPointAfterMilliseconds: number;
  readonly minCheckPointCount: number;
  readonly maxCheckPointCount: number;
  readonly maxSubscriberCount: number;
  readonly namedConsumerStrategy: string;
}

/** What both a list and the details of a group tell. */
export interface GroupMembers extends Pick<GroupInfo, 'status'> {
  /** `$all` or the stream. */
  readonly eventStreamId: string;
  readonly groupName: string;
  readonly parkedMessageUri: string;
  readonly getMessagesUri: string;
  readonly averageItemsPerSecond: number;
  readonly totalItemsProcessed: number;
  /** -1 while it is unknown, and of groups of `$all`. */
  readonly lastProcessedEventNumber: number;
  readonly lastCheckpointedEventPosition: string | null;
  readonly lastKnownEventNumber: number;
  readonly lastKnownEventPosition: string | null;
}

/** A group in a list. */
export interface SummaryDocument extends GroupMembers, Pick<GroupInfo, 'totalInFlightMessages' | 'parkedMessageCount'> {
  readonly links: readonly LinkDocument[];
  readonly connectionCount: number;
  /** As the settings have it. */
  readonly startPosition: string;
}

/** GET `/subscriptions` where `offset` or `count` are given; else it is the list alone. */
export interface GroupPageDocument {
  readonly links: readonly LinkDocument[];
  readonly offset: number;
  readonly count: number;
  readonly total: number;
  readonly subscriptions: readonly SummaryDocument[];
}

/** GET `/subscriptions/{stream}/{group}/info`. */
export interface DetailsDocument
  extends
    GroupMembers,
    Pick<
      GroupInfo,
      | 'countSinceLastMeasurement'
      | 'readBufferCount'
      | 'liveBufferCount'
      | 'retryBufferCount'
      | 'totalInFlightMessages'
      | 'outstandingMessagesCount'
      | 'parkedMessageCount'
    > {
  readonly links: readonly LinkDocument[];
  readonly config: GroupConfigDocument;
  readonly connections: readonly ConnectionDocument[];
  readonly connectionCount: number;
}

/** A consumer. */
export interface ConnectionDocument extends Omit<ConnectionInfo, 'totalItems' | 'observedMeasurements'> {
  readonly totalItemsProcessed: number;
  readonly extraStatistics: ConnectionInfo['observedMeasurements'];
}

/** What changes a group is answered with. */
export interface GroupDoneDocument {
  readonly reason: string;
  readonly result: 'Success';
}
