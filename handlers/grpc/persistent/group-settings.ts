import { ALL_STREAM } from '../../../core/persistent/api.ts';
import type { GroupFilter, GroupSettings, StartFrom } from '../../../core/persistent/api.ts';
import { decodeText } from '../../../core/base/text.ts';
import { targetOf } from '../../persistent/group-changes.ts';
import type { Group } from '../../persistent/group-changes.ts';
import { GrpcError, STATUS } from '../call.ts';
import { ConsumerStrategy } from '../messages/persistent-subscriptions.ts';
import type {
  CreateReqOptions,
  CreateReqSettings,
  UpdateReqOptions,
  UpdateReqSettings,
} from '../messages/persistent-subscriptions.ts';
import type { StreamIdentifier } from '../messages/shared.ts';
import type { ReadReqOptionsFilterOptions } from '../messages/streams.ts';
import { ALL_ONES, MalformedMessage } from '../messages/wire.ts';

/** What requests about groups say. */

interface Named {
  readonly groupName: string;
  readonly streamIdentifier?: StreamIdentifier | undefined;
  readonly all?: object | undefined;
}

/** The group that a request names. Throws MalformedMessage where it names no stream, nor `$all`. */
export function groupOf({ groupName, streamIdentifier, all }: Named): Group {
  if (all !== undefined) return { stream: ALL_STREAM, group: groupName };
  return { stream: streamOf(streamIdentifier), group: groupName };
}

/** What the audit calls what a request is about, also where it is not let in, or says not enough. */
export function labelOf(
  options:
    | (Named & { readonly stream?: { readonly streamIdentifier?: StreamIdentifier | undefined } | undefined })
    | undefined,
): string | null {
  if (options === undefined) return null;
  const { groupName: group, all, stream: { streamIdentifier = options.streamIdentifier } = {} } = options;
  if (all !== undefined) return targetOf({ stream: ALL_STREAM, group });
  return streamIdentifier === undefined ? group : targetOf({ stream: decodeText(streamIdentifier.streamName), group });
}

/** Bytes that are no UTF-8 stand for the replacement character, as wherever a stream is named. */
export function streamOf(identifier: StreamIdentifier | undefined): string {
  if (identifier === undefined) throw new MalformedMessage('no stream is named');
  const stream = decodeText(identifier.streamName);
  if (stream === ALL_STREAM)
    throw new GrpcError(STATUS.unknown, 'No stream is named $all: choose the option all instead of a stream.');
  return stream;
}

/** A group with where it begins. */
export interface GroupStart {
  readonly named: Group;
  readonly from: StartFrom;
}

/**
 * Of a request to create or to change a group. Clients of long ago name only the stream, and begin at the revision of
 * the settings.
 */
export function startOf({
  groupName,
  stream,
  all,
  streamIdentifier,
  settings,
}: CreateReqOptions | UpdateReqOptions): GroupStart {
  if (all !== undefined)
    return {
      named: { stream: ALL_STREAM, group: groupName },
      from: choiceOf(all, all.position === undefined ? undefined : positionOf(all.position)),
    };
  if (stream !== undefined)
    return {
      named: { stream: streamOf(stream.streamIdentifier), group: groupName },
      from: choiceOf(stream, numberOf(stream.revision)),
    };
  return { named: { stream: streamOf(streamIdentifier), group: groupName }, from: numberOf(settings?.revision ?? 0)! };
}

function choiceOf(
  { start, end }: { readonly start?: object | undefined; readonly end?: object | undefined },
  place: StartFrom | undefined,
): StartFrom {
  if (place !== undefined) return place;
  if (start !== undefined) return 'start';
  if (end !== undefined) return 'end';
  throw new MalformedMessage('the position to start from is not set');
}

function numberOf(revision: number | undefined): StartFrom | undefined {
  if (Number.isNaN(revision)) throw new MalformedMessage('no event has this number');
  return revision === ALL_ONES ? 'end' : revision;
}

function positionOf({
  commitPosition: commit,
  preparePosition: prepare,
}: {
  readonly commitPosition: number;
  readonly preparePosition: number;
}): StartFrom {
  if (commit === ALL_ONES && prepare === ALL_ONES) return 'end';
  if (!(commit >= 0 && prepare >= 0 && prepare <= commit)) throw new MalformedMessage('no record has this position');
  return { commit, prepare };
}

/** Undefined where everything is taken. */
export function filterOf(options: ReadReqOptionsFilterOptions | undefined): GroupFilter | undefined {
  if (options === undefined) return undefined;
  const { streamIdentifier, eventType, max, count } = options;
  const expression = streamIdentifier ?? eventType;
  if (expression === undefined) throw unset('filter');
  if (max === undefined && count === undefined) throw unset('window');
  const on = streamIdentifier === undefined ? 'type' : 'stream';
  return expression.regex === '' ? { on, prefixes: expression.prefix } : { on, expression: expression.regex };
}

function unset(what: string): GrpcError {
  return new GrpcError(STATUS.invalidArgument, `'None' is not a valid ${what}`);
}

const TICKS_PER_MS = 10_000;
/** Where nothing is said, checkpoints are written by their count alone. */
const NEVER_MS = 2_147_483_647;
const NAMES = new Map<number, string>(Object.entries(ConsumerStrategy).map(([name, number]) => [number, name]));

export function settingsOf(settings: CreateReqSettings | UpdateReqSettings): GroupSettings {
  const { namedConsumerStrategy } = settings;
  const consumerStrategy = 'consumerStrategy' in settings ? settings.consumerStrategy : '';
  return {
    resolveLinks: settings.resolveLinks,
    extraStatistics: settings.extraStatistics,
    messageTimeoutMs: settings.messageTimeoutMs ?? msOf(settings.messageTimeoutTicks) ?? 0,
    checkpointAfterMs: settings.checkpointAfterMs ?? msOf(settings.checkpointAfterTicks) ?? NEVER_MS,
    maxRetryCount: settings.maxRetryCount,
    minCheckpointCount: settings.minCheckpointCount,
    maxCheckpointCount: settings.maxCheckpointCount,
    maxSubscriberCount: settings.maxSubscriberCount,
    liveBufferSize: settings.liveBufferSize,
    readBatchSize: settings.readBatchSize,
    historyBufferSize: settings.historyBufferSize,
    strategy:
      consumerStrategy === '' ? (NAMES.get(namedConsumerStrategy) ?? String(namedConsumerStrategy)) : consumerStrategy,
  };
}

function msOf(ticks: number | bigint | undefined): number | undefined {
  return ticks === undefined ? undefined : Math.trunc(Number(ticks) / TICKS_PER_MS);
}
