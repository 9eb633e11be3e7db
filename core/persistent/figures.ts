import { TOMBSTONE } from '../log/format/records.ts';
import { ALL_STREAM } from './api.ts';
import type { ConnectionInfo, GroupInfo } from './api.ts';
import type { Consumer } from './consumer.ts';
import type { CheckpointWriter } from './checkpoints.ts';
import type { Intake } from './intake.ts';
import type { ParkedMessages } from './parked.ts';
import type { GroupStore } from './parts.ts';
import { placeText } from './positions.ts';
import type { Place } from './positions.ts';
import type { Sender } from './sender.ts';
import type { KeptGroup } from './stored-forms.ts';

interface FiguresParts {
  readonly kept: KeptGroup;
  readonly sender: Sender;
  readonly intake: Intake;
  readonly parked: ParkedMessages;
  readonly checkpoints: CheckpointWriter;
  readonly parkedByClient: number;
  readonly parkedByRetries: number;
}

/** What a group is at; `isAsked`: the next measurement begins now. */
export function figuresOf(of: FiguresParts, store: GroupStore, isAsked: boolean, oldestParkedMs: number | null): GroupInfo {
  const { kept: { stream, group, settings, filter, startPosition }, sender, intake, parked, checkpoints } = of;
  const isAll = stream === ALL_STREAM;
  const { total, sinceLast, perSecond } = sender.measurement.figures(isAsked);
  const number = isAll || !intake.isLoaded ? null : store.streamInfoNow?.(stream)?.lastEventNumber ?? null;
  const last = number === TOMBSTONE ? null : number;
  // The reference keeps the last events that came while the group was loaded, sent or not.
  const live = last === null ? intake.liveCount : Math.max(0, last - intake.endAtLoad);
  const known = live > 0 && last !== null ? { commit: last, prepare: 0 } : intake.lastKnown;
  const textOf = (place: Place | null) => (place === null ? null : placeText(place, isAll));
  const state = intake.isLive ? 'Live' : 'Behind';
  const connections = [...sender.consumers].map((consumer) => connectionOf(consumer, isAsked));
  return {
    stream, group, settings, filter, startFrom: startPosition, connections, status: !intake.isLoaded ? 'NotReady' : intake.isReading && state === 'Behind' ? 'Behind, OutstandingPageRequest' : state,
    averagePerSecond: perSecond, totalItems: total, countSinceLastMeasurement: sinceLast, lastCheckpointedPosition: textOf(checkpoints.last), lastKnownPosition: textOf(known), readBufferCount: sender.backlog.count,
    liveBufferCount: Math.min(live, Math.max(0, settings.liveBufferSize)), retryBufferCount: sender.retries.count + parked.toReplay, totalInFlightMessages: connections.reduce((sum, { inFlightMessages }) => sum + inFlightMessages, 0),
    outstandingMessagesCount: sender.sent.count, parkedMessageCount: parked.count, oldestParkedMs, parkedReplays: parked.replays, parkedTruncations: parked.truncations, parkedByClient: of.parkedByClient, parkedByRetries: of.parkedByRetries,
  };
}

function connectionOf({ options, measurement, bufferSize, inFlight }: Consumer, isAsked: boolean): ConnectionInfo {
  const { total, sinceLast, perSecond } = measurement.figures(isAsked);
  return {
    from: options.from, username: options.username, connectionName: options.connectionName, averageItemsPerSecond: perSecond, totalItems: total, countSinceLastMeasurement: sinceLast,
    availableSlots: Math.max(0, bufferSize - inFlight), inFlightMessages: inFlight, observedMeasurements: measurement.observed(),
  };
}
