import type { StoredEvent, EventStore } from '../../core/streams/api.ts';
import { loadIndexMap } from '../../core/index/format/index-map.ts';
import { readBatches } from '../../core/index/format/table-scan.ts';
import type { StreamHasher } from '../../core/base/stream-hash.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { findFormatErrors } from '../support/check-directory.ts';
import { foldStreams } from '../support/fold.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { readWholeAll, readWholeStream } from '../support/oracle.ts';
import { doomedBy, emptiedBy, type Point, type Reason } from './model.ts';
import { emptiedBytes, type RawRecord } from './raw-log.ts';

/** What readers are given, as text: by stream, and of `$all`. */
export interface Reads {
  readonly all: string;
  readonly streams: ReadonlyMap<string, string>;
}

const EPOCHS = '$epoch-information';

function textOf(events: readonly StoredEvent[] | { readonly error: string }): string {
  return 'error' in events ? events.error : events.map((event) => `${event.number}@${event.position}`).join(' ');
}

export async function readEverything(store: EventStore, streams: Iterable<string>): Promise<Reads> {
  const out = new Map<string, string>();
  for (const stream of [...streams].sort())
    out.set(stream, textOf(await readWholeStream(store, stream, 'forward', 11)));
  return { all: textOf(await readWholeAll(store, 'forward', 50)), streams: out };
}

export function streamsOf(log: Iterable<RawRecord>): Set<string> {
  const names = new Set<string>();
  for (const { prepare } of log) if (prepare !== null && prepare.stream !== EPOCHS) names.add(prepare.stream);
  return names;
}

/** The log as text of `$all` must be, by its records: without what a scavenge emptied. */
function allText(log: readonly RawRecord[]): string {
  return log
    .filter(({ prepare }) => prepare !== null && prepare.stream !== EPOCHS && !prepare.isEmptied)
    .map(({ position, prepare }) => `${prepare!.number}@${position}`)
    .join(' ');
}

/**
 * What is wrong with what readers are given, in view of the log. Of the records in `unsure`, which must go but are
 * still there, the index need not know.
 */
export async function findReadErrors(
  store: EventStore,
  log: readonly RawRecord[],
  unsure: ReadonlySet<number>,
  nowMs: number,
): Promise<string[]> {
  const wrong: string[] = [];
  const all = await readWholeAll(store, 'forward', 37);
  if (textOf(all) !== allText(log)) wrong.push(`$all reads ${textOf(all)}, the log holds ${allText(log)}`);
  if (textOf((await readWholeAll(store, 'backward', 23)).reverse()) !== textOf(all))
    wrong.push('$all backward is not the reverse of $all forward');
  const upper = foldStreams(all, nowMs);
  const lower = foldStreams(
    all.filter((event) => !unsure.has(event.position)),
    nowMs,
  );
  for (const stream of upper.keys()) {
    const most = textOf(upper.get(stream)!);
    const least = lower.get(stream) === undefined ? '' : textOf(lower.get(stream)!);
    const forward = textOf(await readWholeStream(store, stream, 'forward', 5));
    const reverse = await readWholeStream(store, stream, 'backward', 7);
    const backward = textOf('error' in reverse ? reverse : reverse.reverse());
    for (const read of new Set([forward, backward])) {
      const has = new Set(read.split(' '));
      const isMissing = least.split(' ').some((event) => event !== '' && !has.has(event));
      const isTooMuch = read.split(' ').some((event) => event !== '' && !most.split(' ').includes(event));
      if (isMissing || isTooMuch)
        wrong.push(`${stream} reads ${read}, the log says ${least}${most === least ? '' : ` to ${most}`}`);
    }
  }
  return wrong;
}

/** Positions that the tables of the index hold. */
async function indexPositions(storage: Storage): Promise<Set<number>> {
  const positions = new Set<number>();
  const map = await loadIndexMap(storage, nodeDigests);
  for (const name of map?.levels.flat() ?? []) {
    for await (const batch of readBatches(storage, `index/${name}`))
      for (let i = 0; i < batch.count; i++) positions.add(batch.positions[i]!);
  }
  return positions;
}

/** The log at the times that matter to a run, and what the model says of it. */
export interface Judged {
  /** Every record that was there before the run or was written meanwhile. */
  readonly universe: readonly RawRecord[];
  readonly after: readonly RawRecord[];
  readonly point: Point;
  /** Doomed by earlier runs that skipped their chunks. */
  readonly carried: ReadonlyMap<number, Reason>;
  /** No two streams share a hash; every one does; or some. */
  readonly sharing: 'none' | 'all' | 'some';
  /** The last event of a deleted stream keeps its data. */
  readonly keepsDeletedData: boolean;
}

export interface Verdict {
  readonly wrong: string[];
  /** What must go but is still there, since its chunk was skipped. */
  readonly left: Map<number, Reason>;
}

/** Compares what a completed run left with what it should have left. */
export async function judge(
  storage: Storage,
  { universe, after, point, carried, sharing, keepsDeletedData }: Judged,
): Promise<Verdict> {
  const wrong: string[] = [];
  const doomed = new Map([...carried, ...doomedBy(universe, point)]);
  const current = doomedBy(universe, point);
  const emptied = keepsDeletedData ? new Set<number>() : emptiedBy(universe, point);
  const present = new Map(after.map((record) => [record.position, record]));
  const skipped = new Set<number>();
  const executed = new Set<number>();
  for (const record of universe) {
    const { position, bytes, chunk, prepare } = record;
    const what = `${prepare === null ? 'record' : `${prepare.stream}#${prepare.number}`}@${position} of chunk ${chunk}`;
    const still = present.get(position);
    if (still === undefined) {
      if (!doomed.has(position)) wrong.push(`${what} is gone and should be there`);
      executed.add(chunk);
      continue;
    }
    const isEmptied = emptied.has(position) && still.bytes === emptiedBytes(record);
    if (emptied.has(position) && !isEmptied) skipped.add(chunk);
    if (still.bytes === bytes) {
      // It says nothing of this run.
    } else if (isEmptied) executed.add(chunk);
    else wrong.push(`${what} has other bytes`);
    if (isCertain(position)) skipped.add(chunk);
  }
  for (const record of after)
    if (!universe.some((before) => before.position === record.position))
      wrong.push(`a record at ${record.position} came from nowhere`);
  for (const chunk of skipped) {
    if (point.threshold <= 0) wrong.push(`chunk ${chunk} still holds records that must go`);
    else if (executed.has(chunk)) {
      const gone = universe.filter(
        (record) =>
          record.chunk === chunk &&
          present.get(record.position)?.bytes !== record.bytes &&
          (isCertain(record.position) || emptied.has(record.position)),
      );
      if (gone.length > 0) wrong.push(`chunk ${chunk} was rewritten and still holds records that must go`);
    }
  }
  const indexed = await indexPositions(storage);
  for (const [position, reason] of current) {
    if (!indexed.has(position)) continue;
    // Whether an event has expired only its record can tell.
    if (reason !== 'age' || (sharing === 'all' && !present.has(position)))
      wrong.push(`the index still has an entry for ${position}, which went by the rule ${reason}`);
  }
  const left = new Map([...doomed].filter(([position]) => present.has(position)));
  return { wrong, left };

  /** What an earlier run left and had to judge by age may stay when the age was changed since. */
  function isCertain(position: number): boolean {
    return current.has(position) || (carried.has(position) && carried.get(position) !== 'age');
  }
}

/** Checks a closed directory by the program's own verification and by the format checklist. */
export async function checkClosed(storage: Storage, hasher: StreamHasher): Promise<string[]> {
  const wrong: string[] = [];
  for await (const finding of verifyDirectory({ storage, digests: nodeDigests, clock: new ManualClock(), hasher })) {
    if (finding.kind === 'finding') wrong.push(`verification: ${finding.severity} ${finding.code}: ${finding.message}`);
  }
  wrong.push(...(await findFormatErrors(storage)));
  return wrong;
}
