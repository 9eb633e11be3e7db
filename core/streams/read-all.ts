import { SkuaError } from '../errors.ts';
import { END, HIT, isMiss, untilHit } from '../cache/step.ts';
import { COMMIT, RecordFrame } from '../log/records.ts';
import type { AllPage, AllPosition, ReadAllOptions, StoredEvent } from './api.ts';
import { type AllScan, type AllScanPage, BackwardScan, ForwardScan } from './all-scan.ts';
import { resolveLinks } from './links.ts';
import { PageBytes } from './page-bytes.ts';
import { countRead, pageLimits, type StoreContext } from './store-context.ts';

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
  const bytes = new PageBytes(pageLimits(context, options));
  const { count, filter } = options;
  const page = { count, filter, bytes };
  for (;;) {
    const scan = isForward ? new ForwardScan(lookup, from, page, false) : new BackwardScan(lookup, from, page);
    const part = await readPart(context, scan, bytes, options.resolveLinks === true, isForward);
    if (part === null) {
      await bytes.waitForRoom();
      continue;
    }
    const { events, next } = part;
    const isEnd = part.isEnd || (isForward ? next.commit >= lookup.reader.end : next.commit === 0);
    return { events, from, next, isEnd, lastCommitPosition: await lastPosition(context) };
  }
}

/** Events of `$all` in a row. */
interface AllPart {
  readonly events: StoredEvent[];
  readonly next: AllPosition;
  readonly isEnd: boolean;
}

/**
 * The part of events behind a position, for subscriptions: after it where `isAfter`, else at or after it, as an earlier
 * part's `next` is meant. Null where the budget lacks room for it: wait, and read it again.
 */
export async function readAllPart(context: StoreContext, from: AllPosition, isAfter: boolean, page: AllScanPage, withLinks: boolean): Promise<AllPart | null> {
  if (isAfter) await checkPosition(context, from);
  return readPart(context, new ForwardScan(context.lookup, from, page, isAfter), page.bytes, withLinks, true);
}

async function readPart(context: StoreContext, scan: AllScan, bytes: PageBytes, withLinks: boolean, isForward: boolean): Promise<AllPart | null> {
  const isEnd = await runScan(context, scan, bytes);
  if (bytes.lacksRoom) return null;
  const { events } = scan;
  countRead(context.meter, events);
  const cut = withLinks ? await resolveLinks(context, events, bytes) : null;
  if (bytes.lacksRoom) return null;
  bytes.settle();
  return cut === null ? { events, next: scan.next(), isEnd } : { events, next: isForward ? placeOf(cut) : placeOf(events.at(-1)!), isEnd: false };
}

/** Place of an event, or of the link by which it was reached. Forward it is where reading on begins with the event, backward where it ends behind it. */
function placeOf(event: StoredEvent): AllPosition {
  const { position, preparePosition } = event.link ?? event;
  return { commit: position, prepare: preparePosition };
}

/** Runs a scan until its page is full, the log ends (true), or it has looked at as many records, or passed as many bytes, as one page may. */
async function runScan(context: StoreContext, scan: AllScan, bytes: PageBytes): Promise<boolean> {
  const { allScanRecordsMax, readScanBytesMax, readSliceEvents } = context.options;
  for (;;) {
    const outcome = scan.step(Math.min(readSliceEvents, allScanRecordsMax - scan.examined));
    if (outcome === HIT) return false;
    if (outcome === END) return true;
    if (scan.passedBytes > readScanBytesMax) return false;
    if (isMiss(outcome)) await outcome;
    else {
      if (scan.examined >= allScanRecordsMax) return false;
      await context.clock.yield();
    }
    bytes.checkReader();
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
