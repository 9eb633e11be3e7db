import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import type { AllPosition, EventAccess, StreamPage } from '../../../core/streams/api.ts';
import { GrpcError, STATUS } from '../call.ts';
import type { GrpcCall } from '../call.ts';
import { writeReadResp } from '../messages/streams.ts';
import type {
  ReadReqOptionsAllOptions,
  ReadReqOptionsFilterOptions,
  ReadReqOptionsStreamOptions,
} from '../messages/streams.ts';
import { ALL_ONES, frame } from '../messages/wire.ts';
import { filterOf } from './filter.ts';
import { unhandled } from './proposed.ts';
import { joined, PAGE_BYTES, PAGE_EVENTS } from './read-reply.ts';
import type { Reply } from './read-reply.ts';

export interface StreamRead {
  readonly isForward: boolean;
  readonly count: number;
  readonly compatibility: number;
  /** Of a view. */
  readonly access: EventAccess | undefined;
}

/** Numbers that the recorded node looks at for its first page. */
const FIRST_PAGE_NUMBERS = 32;

/** Events of a stream from a number on, as many as are asked for or there are. */
export async function readStream(
  name: string,
  options: ReadReqOptionsStreamOptions,
  { isForward, count, compatibility, access }: StreamRead,
  { app }: GrpcCall,
  reply: Reply,
): Promise<void> {
  let from = revisionOf(options);
  if (count === 0 || (isForward && from === 'end'))
    throw new GrpcError(STATUS.unknown, 'Unexpected ReadStreamResult: Error');
  const direction = isForward ? 'forward' : 'backward';
  /** Where reading was to begin, until it is clear whether there is something. */
  let asked = compatibility > 0 && isForward ? from : null;
  let pageEvents = asked === null ? PAGE_EVENTS : FIRST_PAGE_NUMBERS;
  for (let left = count, isFirst = true; ; isFirst = false) {
    const page = await app.store.readStream(name, {
      direction,
      from,
      count: Math.min(left, pageEvents),
      resolveLinks: reply.form.resolvesLinks,
      access,
      ...reply.pageOptions,
    });
    const found = page.events.length;
    left -= found;
    const isLast = page.isEnd || left <= 0;
    const blocks: Uint8Array[] = [];
    if (asked !== null && (found > 0 || isLast)) {
      const first = firstOf(page);
      if (!(isFirst && found > 0) && first !== asked) blocks.push(frame({ firstStreamPosition: first }, writeReadResp));
      asked = null;
    }
    if (found > 0) blocks.push(await reply.block(page.events));
    if (isLast && compatibility > 0) blocks.push(frame({ lastStreamPosition: page.lastEventNumber }, writeReadResp));
    const block = joined(blocks);
    if (blocks.length > 0) await reply.send(block);
    if (isLast) return;
    from = page.nextEventNumber;
    // A page that has no room for all that it was to hold was looked for in vain behind that, and backward it was read
    // twice.
    if (page.isCut) pageEvents = Math.max(1, found);
    else if (2 * block.length < PAGE_BYTES) pageEvents = Math.min(PAGE_EVENTS, 2 * pageEvents);
    await reply.goOn(blocks.length > 0);
  }
}

/** Number of the first event that there is, or that there will be. */
function firstOf({ events, lastEventNumber }: StreamPage): number {
  const first = events[0];
  return first === undefined ? lastEventNumber + 1 : (first.link ?? first).number;
}

/** Where a read of a stream begins, or behind what a subscription does. */
export function revisionOf({ revision, start, end }: ReadReqOptionsStreamOptions): number | 'end' {
  if (revision !== undefined && !Number.isNaN(revision)) return revision === ALL_ONES ? 'end' : revision;
  if (start !== undefined) return 0;
  if (end !== undefined) return 'end';
  throw unhandled();
}

/** What of `$all` is wanted, and may be seen. */
export interface AllWanted {
  readonly filter: ReadReqOptionsFilterOptions | undefined;
  readonly access: EventAccess | undefined;
}

interface AllRead {
  readonly isForward: boolean;
  readonly count: number;
}

/** Events of `$all` from a position on, as many as are asked for or there are. */
export async function readAll(
  options: ReadReqOptionsAllOptions,
  { filter: filterOptions, access }: AllWanted,
  { isForward, count }: AllRead,
  { app }: GrpcCall,
  reply: Reply,
): Promise<void> {
  let from = positionOf(options);
  const filter = filterOptions === undefined ? undefined : (await filterOf(filterOptions, app)).filter;
  // The recorded node neither answers nor ends the call.
  if (count === 0) throw new SkuaError('invalid_count', 'A read of 0 events returns nothing: ask for 1 or more.');
  const direction = isForward ? 'forward' : 'backward';
  for (let left = count; ;) {
    const page = await app.store
      .readAll({
        direction,
        from,
        count: Math.min(left, PAGE_EVENTS),
        resolveLinks: reply.form.resolvesLinks,
        ...(filter && { filter, access }),
        ...reply.pageOptions,
      })
      .catch(translated);
    left -= page.events.length;
    const hasEvents = page.events.length > 0;
    if (hasEvents) await reply.send(await reply.block(page.events));
    if (page.isEnd || left <= 0) return;
    from = page.next;
    await reply.goOn(hasEvents);
  }
}

function translated(error: unknown): never {
  throw isSkuaError(error, 'invalid_position')
    ? new GrpcError(STATUS.unknown, 'Unexpected ReadAllResult: Error', {}, error)
    : error;
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
