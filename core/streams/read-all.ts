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

/** Where a subscription goes on, and what it wants there. */
interface NextPart {
  readonly from: AllPosition;
  /** The event at `from` is not wanted. */
  readonly isAfter: boolean;
  readonly filter: AllFilter | undefined;
}

/** The next part of a subscription, and whether the log ends behind it. A filtered one looks at a limited number of records. */
export async function readPart(context: StoreContext, { from, isAfter, filter }: NextPart): Promise<{ readonly part: ForwardScan; readonly isEnd: boolean }> {
  const { subscriptionPageEvents, checkpointRecords, allScanRecordsMax } = context.options;
  const part = new ForwardScan(context.lookup, from, subscriptionPageEvents, filter, isAfter);
  return { part, isEnd: await runScan(context, part, filter === undefined ? allScanRecordsMax : Math.min(checkpointRecords, allScanRecordsMax)) };
}

/** Steps that the expression of a filter takes for one page: with one as large as may be seconds, and with any other no limit of its own. */
const MATCHING_STEPS_MAX = 67_108_864;

/** Runs a scan until its page is full, the log ends (true), or it has looked at as many records as one page may. */
async function runScan(context: StoreContext, scan: AllScan, recordsMax = context.options.allScanRecordsMax): Promise<boolean> {
  const { readSliceEvents } = context.options;
  for (;;) {
    const outcome = scan.step(Math.min(readSliceEvents, recordsMax - scan.examined));
    if (outcome === HIT) return false;
    if (outcome === END) return true;
    if (isMiss(outcome)) await outcome;
    else {
      if (scan.examined >= recordsMax || scan.matchingSteps >= MATCHING_STEPS_MAX) return false;
      await context.clock.yield();
    }
  }
}

/** Throws `invalid_position` unless records start at the halves that count. */
export async function checkPosition(context: StoreContext, from: AllPosition): Promise<void> {
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
  return await lastBefore(context, context.lookup.reader.end) ?? 0;
}

/** Position of the last record before a place in the log; null where there is none. */
export async function lastBefore(context: StoreContext, end: number): Promise<number | null> {
  const frame = new RecordFrame();
  return await untilHit(() => context.lookup.reader.readBackward(end, frame)) === HIT ? frame.position : null;
}
