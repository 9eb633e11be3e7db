import { isSkuaError } from '../../../core/base/errors.ts';
import { ANY, NO_STREAM, STREAM_EXISTS } from '../../../core/streams/api.ts';
import { internText } from '../../../core/base/text.ts';
import { refusal } from '../../http/authorization.ts';
import type { Call } from '../../http/context.ts';
import { GrpcError, STATUS } from '../call.ts';
import type { StreamIdentifier } from '../messages/shared.ts';
import { ALL_ONES } from '../messages/wire.ts';
import { unhandled } from './proposed.ts';

/** The choice that every request to write has, whatever the field of a number is called. */
interface Expected {
  readonly noStream?: object | undefined;
  readonly any?: object | undefined;
  readonly streamExists?: object | undefined;
}

/**
 * What a request expects of its stream, as the core has it. A number that is none ends the call; `none` says which type
 * had no choice at all.
 */
export function expectedOf(options: Expected, revision: number | undefined, none: string): number {
  if (revision !== undefined) {
    if (Number.isNaN(revision)) throw unhandled();
    return revision === ALL_ONES ? NO_STREAM : revision;
  }
  if (options.any !== undefined) return ANY;
  if (options.noStream !== undefined) return NO_STREAM;
  if (options.streamExists !== undefined) return STREAM_EXISTS;
  throw new GrpcError(STATUS.invalidArgument, noneText(none));
}

/** What the recorded server says of a choice that was not made. */
export function noneText(type: string): string {
  return `'None' is not a valid EventStore.Client.Streams.${type}`;
}

/** The name in an identifier; what is no UTF-8 is taken with U+FFFD. */
export function nameOf(identifier: StreamIdentifier | undefined): string {
  if (identifier === undefined) throw unhandled();
  const { streamName } = identifier;
  return internText(streamName, 0, streamName.length);
}

/** Refuses names that no caller may write to, also without security. */
export function checkTarget(call: Call, stream: string): void {
  if (stream === '' || stream === '$all')
    throw refusal(call.principal, 'Nothing can be written to $all, or to no stream at all. Name the stream.', {
      stream,
    });
}

/** The version that was expected and the one that was found, where an error says so; null for every other error. */
export function conflictOf(error: unknown): { readonly expected: number; readonly actual: number } | null {
  if (!isSkuaError(error, 'wrong_expected_version')) return null;
  const { expected, actual } = error.data;
  return { expected, actual };
}
