import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import type { AllFilter, CheckpointRule } from '../../../core/streams/api.ts';
import { namesIndex, queryOfIndex } from '../../../core/streams/event-query/event-query.ts';
import type { App } from '../../http/context.ts';
import { FILTER_PREFIXES_MAX } from '../../streams/all-stream.ts';
import { expressionOf } from '../../streams/expression.ts';
import { GrpcError, STATUS } from '../call.ts';
import type { ReadReqOptionsFilterOptions } from '../messages/streams.ts';
import { noneText } from './expectation.ts';
import { unhandled } from './proposed.ts';

/** Events that are looked at together where a filter leaves that to us. */
const WINDOW_EVENTS_DEFAULT = 32;

export interface Filter {
  readonly filter: AllFilter;
  /** Null where the interval would be 0: fine for a read, which has no checkpoints. */
  readonly checkpoints: CheckpointRule | null;
}

/** Whether a filter names an index, so that each event goes by the list of its stream. */
export function readsIndex({ streamIdentifier }: ReadReqOptionsFilterOptions): boolean {
  return streamIdentifier !== undefined && streamIdentifier.regex === '' && namesIndex(streamIdentifier.prefix);
}

/**
 * The filter of a read of `$all`, or of a subscription to it. Asked for only once the caller is known to be allowed to
 * read.
 */
export async function filterOf(options: ReadReqOptionsFilterOptions, app: App): Promise<Filter> {
  const on = options.streamIdentifier !== undefined ? 'stream' : 'type';
  const expression = options.streamIdentifier ?? options.eventType;
  if (expression === undefined)
    throw new GrpcError(
      STATUS.invalidArgument,
      `'${jsonOf(options)}' is not a valid EventStore.Client.Streams.ReadReq+Types+Options+Types+FilterOptions`,
    );
  const { regex, prefix: prefixes } = expression;
  if (prefixes.length > FILTER_PREFIXES_MAX)
    throw new SkuaError(
      'bad_request',
      `A filter takes at most ${FILTER_PREFIXES_MAX} prefixes, and this one has ${prefixes.length}: use fewer, or a regular expression.`,
    );
  const filter: AllFilter = readsIndex(options)
    ? { on, query: queryOfIndex(prefixes) }
    : regex === ''
      ? { on, prefixes }
      : { on, regex: await matcherOf(regex, app) };
  const windowEvents = windowOf(options);
  const intervalEvents = windowEvents * options.checkpointIntervalMultiplier;
  return { filter, checkpoints: intervalEvents === 0 ? null : { windowEvents, intervalEvents } };
}

/** With a window of 0 the recorded node neither answers nor ends the call. */
function windowOf({ max, count }: ReadReqOptionsFilterOptions): number {
  if (max === undefined) {
    if (count !== undefined) return WINDOW_EVENTS_DEFAULT;
    throw new GrpcError(STATUS.invalidArgument, noneText('ReadReq+Types+Options+Types+FilterOptions+WindowOneofCase'));
  }
  if (max === 0)
    throw new SkuaError(
      'bad_request',
      'The window of the filter (max) is 0: give the number of events to look at together, at least 1, or count.',
    );
  return max;
}

async function matcherOf(regex: string, app: App): ReturnType<typeof expressionOf> {
  try {
    return await expressionOf(regex, app);
  } catch (error) {
    throw isSkuaError(error, 'invalid_expression') ? unhandled() : error;
  }
}

/** Options that have no filter, as the recorded node puts them into its message. */
function jsonOf({ max, count, checkpointIntervalMultiplier: multiplier }: ReadReqOptionsFilterOptions): string {
  const members = [
    ...(max === undefined ? [] : [`"max": ${max}`]),
    ...(count === undefined ? [] : ['"count": { }']),
    ...(multiplier === 0 ? [] : [`"checkpointIntervalMultiplier": ${multiplier}`]),
  ];
  return members.length === 0 ? '{ }' : `{ ${members.join(', ')} }`;
}
