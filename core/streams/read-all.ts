import { SkuaError } from '../errors.ts';
import { END, HIT, isMiss, untilHit } from '../cache/step.ts';
import { COMMIT, RecordFrame } from '../log/records.ts';
import type { AllFilter, AllPage, AllPosition, ReadAllOptions } from './api.ts';
import { type AllScan, BackwardScan, ForwardScan } from './all-scan.ts';
import { resolveLinks } from './links.ts';
import type { StoreContext } from './store-context.ts';

const START: AllPosition = { commit: 0, prepare: 0 };

function invalidPosition(position: AllPosition, why: string): SkuaError {
  return new SkuaError('invalid_position', `The position ${position.commit}/${position.prepare} ${why}: use one that a read returned.`, { ...position });
}

function resolvePosition(from: AllPosition | 'start' | 'end', end: number): AllPosition {
  return from === 'start' ? START : from === 'end' ? { commit: end, prepare: end } : from;
}

/** One page of `$all` (api.ts, readAll). Options have been checked. */
export async function readAllPage(context: StoreContext, options: ReadAllOptions): Promise<AllPage> {
  const { lookup } = context;
  const end = lookup.reader.end;
  const from = resolvePosition(options.from, end);
  const isForward = options.direction === 'forward';
  if (from.commit > end) {
    if (!isForward) throw invalidPosition(from, 'lies beyond the end of the log');
    return { events: [], from, next: from, isEnd: true, lastCommitPosition: await lastPosition(context) };
  }
  await checkPosition(context, from);
  const scan = isForward
    ? new ForwardScan(lookup, from, options.count, options.filter, false)
    : new BackwardScan(lookup, from, options.count, options.filter);
  const reachedEnd = await runScan(context, scan);
  if (options.resolveLinks === true) await resolveLinks(context, scan.events);
  const next = scan.next();
  const isEnd = reachedEnd || (isForward ? next.commit >= lookup.reader.end : next.commit === 0);
  return { events: scan.events, from, next, isEnd, lastCommitPosition: await lastPosition(context) };
}

/** The page of events after a position (exclusive), for subscriptions; `next` is inclusive and goes to `readAllPage`. */
export async function readAllAfter(context: StoreContext, after: AllPosition, count: number, filter: AllFilter | undefined): Promise<{ page: AllScan; isEnd: boolean }> {
  await checkPosition(context, after);
  const scan = new ForwardScan(context.lookup, after, count, filter, true);
  return { page: scan, isEnd: await runScan(context, scan) };
}

/** The page of events at or after a position that an earlier page gave. */
export async function readAllFrom(context: StoreContext, from: AllPosition, count: number, filter: AllFilter | undefined): Promise<{ page: AllScan; isEnd: boolean }> {
  const scan = new ForwardScan(context.lookup, from, count, filter, false);
  return { page: scan, isEnd: await runScan(context, scan) };
}

/** Steps that the expression of a filter takes for one page: with one as large as may be seconds, and with any other no limit of its own. */
const MATCHING_STEPS_MAX = 67_108_864;

/** Runs a scan until its page is full, the log ends (true), or it has looked at as many records as one page may. */
async function runScan(context: StoreContext, scan: AllScan): Promise<boolean> {
  const { allScanRecordsMax, readSliceEvents } = context.options;
  for (;;) {
    const outcome = scan.step(Math.min(readSliceEvents, allScanRecordsMax - scan.examined));
    if (outcome === HIT) return false;
    if (outcome === END) return true;
    if (isMiss(outcome)) await outcome;
    else {
      if (scan.examined >= allScanRecordsMax || scan.matchingSteps >= MATCHING_STEPS_MAX) return false;
      await context.clock.yield();
    }
  }
}

/** Throws `invalid_position` unless records start at the halves that count. */
async function checkPosition(context: StoreContext, from: AllPosition): Promise<void> {
  const { reader } = context.lookup;
  await checkBoundary(context, from, from.commit);
  // The prepare half counts only inside an explicit transaction, and then a record starts there.
  if (from.prepare > 0 && from.prepare < from.commit && reader.end > from.commit) await checkInner(context, from);
}

async function checkBoundary(context: StoreContext, from: AllPosition, position: number): Promise<void> {
  if (await untilHit(() => context.lookup.reader.isBoundary(position)) === END) throw invalidPosition(from, 'is not where a record starts');
}

async function checkInner(context: StoreContext, from: AllPosition): Promise<void> {
  const frame = new RecordFrame();
  const outcome = await untilHit(() => context.lookup.reader.readAt(from.commit, frame));
  if (outcome === HIT && frame.type === COMMIT) await checkBoundary(context, from, from.prepare);
}

/** Position of the last record of the log, 0 when it is empty. */
async function lastPosition(context: StoreContext): Promise<number> {
  const { reader } = context.lookup;
  const frame = new RecordFrame();
  return await untilHit(() => reader.readBackward(reader.end, frame)) === HIT ? frame.position : 0;
}
