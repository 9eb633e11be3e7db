import { checkReadableName, checkWritableName, metastreamOf } from '../streams/format/names.ts';
import { ALL_STREAM, checkpointStreamOf, failedError, parkedStreamOf, STRATEGIES } from './api.ts';
import type { GroupFilter, GroupSettings, StartFrom } from './api.ts';
import type { GroupStore } from './group-parts.ts';

/**
 * Characters that the prefixes or the expression of a filter may have together: every group's filter stands in each
 * configuration event.
 */
const FILTER_LENGTH_MAX = 4_096;
const I32_MAX = 2_147_483_647;

/**
 * Refuses what no group can have, with the reasons of the reference where it has them. Errors:
 * `persistent_subscription_failed`.
 */
export function checkGroup(stream: string, group: string, settings: GroupSettings, filter: GroupFilter | null): void {
  const refuse = (reason: string) => {
    throw failedError(stream, group, reason);
  };
  const parked = parkedStreamOf(stream, group);
  const name =
    (stream === ALL_STREAM ? null : checkReadableName(stream)) ??
    checkWritableName(parked) ??
    checkWritableName(metastreamOf(parked)) ??
    checkWritableName(metastreamOf(checkpointStreamOf(stream, group)));
  if (name !== null) refuse(name.message);
  if (!(STRATEGIES as readonly string[]).includes(settings.strategy))
    refuse(`Consumer strategy ${settings.strategy} does not exist.`);
  if (settings.readBatchSize >= settings.historyBufferSize)
    refuse(
      "Specified argument was out of the range of valid values. (Parameter 'ReadBatchSize may not be greater than or equal to BufferSize')",
    );
  for (const [key, value] of Object.entries(settings))
    if (typeof value === 'number' && (!Number.isInteger(value) || Math.abs(value) > I32_MAX))
      refuse(`${key} must be a whole number of at most ${I32_MAX}`);
  if (filter === null) return;
  if (stream !== ALL_STREAM) refuse(`Only groups of ${ALL_STREAM} have filters`);
  const data = 'prefixes' in filter ? filter.prefixes.join(',') : filter.expression;
  if (data.length > FILTER_LENGTH_MAX) refuse(`A filter may have at most ${FILTER_LENGTH_MAX} characters`);
  // Prefixes are kept in one text between commas.
  if ('prefixes' in filter && filter.prefixes.some((prefix) => prefix.includes(',')))
    refuse('A filter prefix may not contain a comma');
}

/**
 * Refuses a start that no position of the source can have, as the reference does. One in `$all` where no record begins
 * is taken for the next one. Errors: `persistent_subscription_failed`.
 */
export function checkStart(store: GroupStore, stream: string, group: string, from: StartFrom): void {
  if (typeof from === 'string') return;
  if ((typeof from === 'number') === (stream === ALL_STREAM))
    throw failedError(stream, group, 'A start is an event number for a stream, and a position for $all');
  if (typeof from === 'number') {
    if (!Number.isSafeInteger(from) || from < 0) throw failedError(stream, group, 'A start is a whole number from 0');
    return;
  }
  const { commit, prepare } = from;
  if (prepare > commit)
    throw failedError(
      stream,
      group,
      'Invalid Start From position: prepare position must be less than or equal to the commit position.',
    );
  if (commit > store.end)
    throw failedError(
      stream,
      group,
      'Invalid Start From position: commit position must be less than or equal to the last commit position in the transaction file.',
    );
  if (!(Number.isSafeInteger(commit) && Number.isSafeInteger(prepare) && prepare >= 0))
    throw failedError(
      stream,
      group,
      'Invalid Start From position: prepare and commit positions must be greater than or equal to 0 or both equal to -1.',
    );
}
