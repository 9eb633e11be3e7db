import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import type { StreamHasher } from '../base/stream-hash.ts';
import type { EventStore, NewEvent, TextMatcher } from '../streams/api.ts';
import type { EngineLimits, Held } from './group-limits.ts';

/** What groups read, and wait for. */
export type GroupStore = Pick<
  EventStore,
  | 'end'
  | 'redactions'
  | 'readStream'
  | 'readEvent'
  | 'readAll'
  | 'streamInfo'
  | 'streamInfoNow'
  | 'waitForStream'
  | 'waitForLog'
>;

export interface EngineParts {
  readonly store: GroupStore;
  /** Writes of the node as the leader: they reject where it leads no more. */
  readonly writes: Pick<EventStore, 'append' | 'deleteStream'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly hasher: StreamHasher;
  /**
   * The matcher of a regular expression. Errors: `invalid_expression`, `unsupported_expression`,
   * `expression_too_large`.
   */
  readonly matcherOf: (expression: string) => Promise<TextMatcher>;
  readonly limits?: Partial<EngineLimits>;
}

/** What each group gets. */
export interface GroupParts extends Omit<EngineParts, 'limits'> {
  readonly limits: EngineLimits;
  readonly held: Held;
  /** The group has something to look at in time. */
  readonly onWork: () => void;
}

const NO_BYTES = new Uint8Array(0);

/** A new event of the engine's own. */
export function ownEvent(
  { ids }: Pick<EngineParts, 'ids'>,
  type: string,
  isJson: boolean,
  data: Uint8Array,
  metadata: Uint8Array = NO_BYTES,
): NewEvent {
  return { id: guidToText(guidFromUuidBytes(ids.uuidBytes()), 0), type, isJson, data, metadata };
}

/** Codes with which a stream has nothing to read. */
export const ABSENT: ReadonlySet<string> = new Set([
  'stream_not_found',
  'stream_deleted',
  'event_not_found',
  'invalid_stream_name',
]);
