import { SkuaError } from '../base/errors.ts';
import { END, HIT, isMiss, untilHit } from '../base/step.ts';
import { COMMIT, RecordFrame } from '../log/format/records.ts';
import type { AllFilter, AllPage, AllPosition, EventAccess, ReadAllOptions, ScanLimits, StoredEvent } from './api.ts';
import type { AllScan, AllScanPage } from './all-scan.ts';
import { BackwardScan } from './backward-scan.ts';
import { Candidates } from './candidates.ts';
import type { CheckpointCount } from './checkpoint-count.ts';
import { EventJudge } from './event-judge.ts';
import { ForwardScan } from './forward-scan.ts';
import { resolveLinks } from './resolve-links.ts';
import { PlainStreams } from './plain-streams.ts';
import { PageBytes } from '../base/page-bytes.ts';
import { countRead, pageLimits, type StoreContext } from './store-context.ts';

const START: AllPosition = { commit: 0, prepare: 0 };

function invalidPosition(position: AllPosition, why: string): SkuaError {
  return new SkuaError(
    'invalid_position',
    `The position ${position.commit}/${position.prepare} ${why}: use one that a read returned.`,
    { ...position },
  );
}

function resolvePosition(from: AllPosition | 'start' | 'end', end: number): AllPosition {
  return from === 'start' ? START : from === 'end' ? { commit: end, prepare: end } : from;
}

/** One page of `$all` (api.ts, readAll). Options have been checked. */
export async function readAllPage(context: StoreContext, options: ReadAllOptions): Promise<AllPage> {
  const { lookup } = context;
  const end = lookup.reader.end;
  const asked = resolvePosition(options.from, end);
  const isForward = options.direction === 'forward';
  if (asked.commit > end) {
    if (!isForward) throw invalidPosition(asked, 'is beyond the end of the log');
    return { events: [], from: asked, next: asked, isEnd: true, lastCommitPosition: await lastPosition(context) };
  }
  let from = asked;
  if (options.orNext === true && isForward) from = await orNext(context, asked);
  else await checkPosition(context, asked);
  const bytes = new PageBytes(pageLimits(context, options));
  for (;;) {
    const began = options.access?.begin();
    if (began !== undefined) await began;
    const page = pageOf(context, { ...options, bytes }, from);
    const scan = isForward ? new ForwardScan(lookup, from, page, false) : new BackwardScan(lookup, from, page);
    const part = await readPart(
      context,
      scan,
      bytes,
      options.resolveLinks === true,
      isForward,
      limitsOf(context, options.scan),
    );
    if (part === null) {
      await bytes.waitForRoom();
      continue;
    }
    const { events, next } = part;
    const isEnd = part.isEnd || (isForward ? next.commit >= lookup.reader.end : next.commit === 0);
    return { events, from, next, isEnd, lastCommitPosition: await lastPosition(context) };
  }
}

/**
 * Steps that the expression of a filter takes for one page: with one as large as may be seconds, and with any other no
 * limit of its own.
 */
const MATCHING_STEPS_MAX = 67_108_864;

/** Records that are passed between two chances for other work. */
const PASSED_PER_SLICE = 1_024;

/** What is asked of a page. */
interface AskedPage {
  readonly count: number;
  readonly filter?: AllFilter | undefined;
  readonly access?: EventAccess | undefined;
  readonly bytes: PageBytes;
  readonly checkpoints?: CheckpointCount | undefined;
  readonly direction: 'forward' | 'backward';
}

function pageOf(
  { states, attributes, clock, lookup, options }: StoreContext,
  { count, filter, access, bytes, checkpoints, direction }: AskedPage,
  from: AllPosition,
): AllScanPage {
  const query = filter?.query;
  const isNearEnd = direction === 'forward' && lookup.reader.end - from.commit <= options.readThroughBytes;
  return {
    count,
    judge:
      filter === undefined
        ? null
        : new EventJudge(filter, {
            states,
            plain: new PlainStreams(lookup, attributes),
            access,
            nowMs: clock.nowMs(),
          }),
    candidates: query === undefined || isNearEnd ? null : Candidates.of(query, attributes),
    bytes,
    checkpoints,
  };
}

/** Events of `$all` in a row. */
interface AllPart {
  readonly events: StoredEvent[];
  readonly next: AllPosition;
  readonly isEnd: boolean;
}

/** Where a subscription goes on, and what it wants there. */
interface NextPart {
  readonly from: AllPosition;
  /** The event at `from` is not wanted. */
  readonly isAfter: boolean;
  readonly page: Omit<AskedPage, 'direction'>;
  readonly withLinks: boolean;
}

interface SubscribedPart extends AllPart {
  /** Log records looked at. */
  readonly examined: number;
  /** The position of what was looked at last, so that all behind it is still to come; null before the first record. */
  readonly last: AllPosition | null;
}

/**
 * The next part of a subscription: after a position where `isAfter`, else at or after it, as an earlier part's `next`
 * is meant. A filtered one looks at a limited number of records. Null where the budget lacks room for it: wait, and
 * read it again.
 */
export async function readAllPart(
  context: StoreContext,
  { from, isAfter, page, withLinks }: NextPart,
): Promise<SubscribedPart | null> {
  const { checkpointRecords, allScanRecordsMax, readScanBytesMax } = context.options;
  page.checkpoints?.begin(withLinks);
  const began = page.access?.begin();
  if (began !== undefined) await began;
  const asked = pageOf(context, { ...page, direction: 'forward' }, from);
  const scan = new ForwardScan(context.lookup, from, asked, isAfter);
  const part = await readPart(context, scan, page.bytes, withLinks, true, {
    recordsMax: page.filter === undefined ? allScanRecordsMax : Math.min(checkpointRecords, allScanRecordsMax),
    bytesMax: readScanBytesMax,
  });
  if (part === null) page.checkpoints?.rewind();
  else if (part.isCut) page.checkpoints?.cut(part.events.length);
  // A part that ends early, where there was no room for the target of a link, has come as far as its last event.
  return part === null
    ? null
    : { ...part, examined: scan.examined, last: part.isCut ? placeOf(part.events.at(-1)!) : scan.last() };
}

/** The store's own, or fewer. */
function limitsOf(
  { options: { allScanRecordsMax, readScanBytesMax } }: StoreContext,
  scan: ScanLimits | undefined,
): ScanLimits {
  if (scan === undefined) return { recordsMax: allScanRecordsMax, bytesMax: readScanBytesMax };
  return {
    recordsMax: Math.min(scan.recordsMax, allScanRecordsMax),
    bytesMax: Math.min(scan.bytesMax, readScanBytesMax),
  };
}

async function readPart(
  context: StoreContext,
  scan: AllScan,
  bytes: PageBytes,
  withLinks: boolean,
  isForward: boolean,
  limits: ScanLimits,
): Promise<(AllPart & { readonly isCut: boolean }) | null> {
  const isEnd = await runScan(context, scan, bytes, limits);
  if (bytes.lacksRoom) return null;
  const { events } = scan;
  countRead(context.meter, events, bytes.read);
  const cut = withLinks ? await resolveLinks(context, events, bytes) : null;
  if (bytes.lacksRoom) return null;
  bytes.settle();
  return cut === null
    ? { events, next: scan.next(), isEnd, isCut: false }
    : { events, next: isForward ? placeOf(cut) : placeOf(events.at(-1)!), isEnd: false, isCut: true };
}

/**
 * Place of an event, or of the link by which it was reached. Forward it is where reading on begins with the event,
 * backward where it ends behind it.
 */
function placeOf(event: StoredEvent): AllPosition {
  const { position, preparePosition } = event.link ?? event;
  return { commit: position, prepare: preparePosition };
}

/**
 * Runs a scan until its page is full, the log ends (true), or it has looked at as many records, or passed as many
 * bytes, as one page may.
 */
async function runScan(
  context: StoreContext,
  scan: AllScan,
  bytes: PageBytes,
  { recordsMax, bytesMax }: ScanLimits,
): Promise<boolean> {
  const { readSliceEvents } = context.options;
  for (;;) {
    const outcome = scan.step(Math.min(readSliceEvents, recordsMax - scan.examined), bytesMax);
    if (outcome === HIT) return false;
    if (outcome === END) return true;
    if (scan.passedBytes > bytesMax) return false;
    if (isMiss(outcome)) await outcome;
    else {
      if (scan.examined >= recordsMax || scan.matchingSteps >= MATCHING_STEPS_MAX) return false;
      await context.clock.yield();
    }
    bytes.checkReader();
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
  if (!(await isBoundary(context, position))) throw invalidPosition(from, 'is not where a record starts');
}

export async function isBoundary({ lookup: { reader } }: StoreContext, position: number): Promise<boolean> {
  return (await untilHit(() => reader.isBoundary(position))) !== END;
}

/**
 * The position itself where a record begins there, else that of the next record. A half within a transaction that
 * begins nothing stands for the whole of it.
 */
async function orNext(context: StoreContext, from: AllPosition): Promise<AllPosition> {
  if (!(await isBoundary(context, from.commit))) return { commit: await nextRecord(context, from.commit), prepare: 0 };
  return from.prepare === 0 || (await isBoundary(context, from.prepare)) ? from : { commit: from.commit, prepare: 0 };
}

/**
 * Where the first record at or after a position begins, or the log ends: records show where the next one is, so they
 * are passed from that on which begins one byte before, as where a position is one to count from behind, else from the
 * beginning of the chunk on.
 */
export async function nextRecord(
  { lookup: { reader }, clock }: Pick<StoreContext, 'lookup' | 'clock'>,
  position: number,
): Promise<number> {
  // An empty log in a bucket has no chunk to begin at.
  if (position >= reader.end) return reader.end;
  const frame = new RecordFrame();
  const isBehind = position > 0 && (await untilHit(() => reader.isBoundary(position - 1))) !== END;
  let at = isBehind ? position - 1 : reader.chunkStart(position);
  for (let passed = 1; (await untilHit(() => reader.readForward(at, frame))) === HIT; passed++) {
    if (frame.position >= position) return frame.position;
    at = frame.next;
    if (passed % PASSED_PER_SLICE === 0) await clock.yield();
  }
  return reader.end;
}

async function checkInner(context: StoreContext, from: AllPosition): Promise<void> {
  const frame = new RecordFrame();
  const outcome = await untilHit(() => context.lookup.reader.readAt(from.commit, frame));
  if (outcome === HIT && frame.type === COMMIT) await checkBoundary(context, from, from.prepare);
}

/** Position of the last record of the log, 0 when it is empty. */
async function lastPosition(context: StoreContext): Promise<number> {
  return (await lastBefore(context, context.lookup.reader.end)) ?? 0;
}

/** Position of the last record before another in the log; null where there is none. */
export async function lastBefore(context: StoreContext, end: number): Promise<number | null> {
  const frame = new RecordFrame();
  return (await untilHit(() => context.lookup.reader.readBackward(end, frame))) === HIT ? frame.position : null;
}
