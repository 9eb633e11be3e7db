import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import type { AllPosition } from '../../../core/streams/api.ts';
import { GrpcError, STATUS } from '../call.ts';
import type { GrpcCall } from '../call.ts';
import type { ReadReqOptionsAllOptions, ReadReqOptionsFilterOptions } from '../messages/streams.ts';
import { ALL_ONES } from '../messages/wire.ts';
import { filterOf } from './filter.ts';
import { unhandled } from './proposed.ts';
import { PAGE_EVENTS } from './reply.ts';
import type { Reply } from './reply.ts';

export interface AllRead {
  readonly isForward: boolean;
  readonly count: number;
}

/** Events of `$all` from a position on, as many as are asked for or there are. */
export async function readAll(options: ReadReqOptionsAllOptions, filterOptions: ReadReqOptionsFilterOptions | undefined, { isForward, count }: AllRead, { app }: GrpcCall, reply: Reply): Promise<void> {
  let from = positionOf(options);
  const filter = filterOptions === undefined ? undefined : (await filterOf(filterOptions, app)).filter;
  // The recorded node neither answers nor ends the call.
  if (count === 0) throw new SkuaError('invalid_count', 'A read of 0 events returns nothing: ask for 1 or more.');
  const direction = isForward ? 'forward' : 'backward';
  for (let left = count; ;) {
    const page = await app.store.readAll({ direction, from, count: Math.min(left, PAGE_EVENTS), resolveLinks: reply.form.resolvesLinks, ...(filter && { filter }), ...reply.pageOptions }).catch(translated);
    left -= page.events.length;
    const hasEvents = page.events.length > 0;
    if (hasEvents) await reply.send(await reply.block(page.events));
    if (page.isEnd || left <= 0) return;
    from = page.next;
    await reply.goOn(hasEvents);
  }
}

function translated(error: unknown): never {
  throw isSkuaError(error, 'invalid_position') ? new GrpcError(STATUS.unknown, 'Unexpected ReadAllResult: Error', {}, error) : error;
}

/** Where a read of `$all` begins, or behind what a subscription does. */
export function positionOf({ position, start, end }: ReadReqOptionsAllOptions): AllPosition | 'start' | 'end' {
  if (start !== undefined) return 'start';
  if (end !== undefined) return 'end';
  if (position === undefined) throw unhandled();
  const { commitPosition: commit, preparePosition: prepare } = position;
  if (commit === ALL_ONES && prepare === ALL_ONES) return 'end';
  // What is no position at all, too: it compares with nothing.
  if (!(commit >= 0 && prepare >= 0 && prepare <= commit)) throw unhandled();
  return { commit, prepare };
}
