import { HIT, untilHit } from '../../base/step.ts';
import { COMMIT, decodeCommit, parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../../log/format/records.ts';
import type { AllFilter, AllPosition } from '../api.ts';
import { Candidates } from '../candidates.ts';
import { isBoundary, nextRecord } from '../read-all.ts';
import type { StoreContext } from '../store-context.ts';

/**
 * Numbers of views and places in the order of all events. The number of an event is the position of its own record. One
 * of an explicit transaction comes where that was committed: its number says where the record lies, and its commit is
 * looked for behind that.
 */

/** Records at which the commit of a transaction is looked for at most. */
const COMMIT_RECORDS_MAX = 65_536;

/** A record that numbers can name. */
interface NumberedRecord {
  readonly position: number;
  readonly next: number;
  /** Where the explicit transaction began whose commit shows the record; -1 for any other record. */
  readonly transaction: number;
}

/** Where a forward read begins whose first event may have this number. */
export async function placeFrom(context: StoreContext, filter: AllFilter, number: number): Promise<AllPosition> {
  const { end } = context.lookup.reader;
  if (number === 0) return { commit: 0, prepare: 0 };
  if (number >= end) return { commit: end, prepare: 0 };
  const here = await recordAt(context, number);
  if (here !== null) return placeOf(context, filter, here, here.position);
  const before = await recordAt(context, number - 1);
  if (before !== null) return placeOf(context, filter, before, before.next);
  return { commit: await nextRecord(context, number), prepare: 0 };
}

/** Where a backward read begins whose first event may have this number: events before it are read. */
export async function placeBefore(context: StoreContext, filter: AllFilter, number: number): Promise<AllPosition> {
  const { end } = context.lookup.reader;
  if (number >= end) return { commit: end, prepare: 0 };
  const here = (await recordAt(context, number)) ?? (number > 0 ? await recordAt(context, number - 1) : null);
  if (here !== null) return placeOf(context, filter, here, here.next);
  return { commit: await nextRecord(context, number), prepare: 0 };
}

/** Where `position`, at one of the ends of the record, lies in the order of all events. */
async function placeOf(
  context: StoreContext,
  filter: AllFilter,
  record: NumberedRecord,
  position: number,
): Promise<AllPosition> {
  const commit = record.transaction < 0 ? null : await commitOf(context, filter, record);
  if (commit === null) return between(context, position);
  // Behind its last record the transaction has nothing more.
  if (position >= commit.position) return between(context, commit.next);
  return { commit: commit.position, prepare: position };
}

async function between(context: StoreContext, position: number): Promise<AllPosition> {
  return {
    commit: (await isBoundary(context, position)) ? position : await nextRecord(context, position),
    prepare: 0,
  };
}

/** The record that begins at the position; null where none does. */
async function recordAt(context: StoreContext, position: number): Promise<NumberedRecord | null> {
  const { reader } = context.lookup;
  if (position >= reader.end || !(await isBoundary(context, position))) return null;
  const frame = new RecordFrame();
  return (await untilHit(() => reader.readAt(position, frame))) === HIT ? described(frame) : null;
}

function described(frame: RecordFrame): NumberedRecord {
  const { position, next } = frame;
  let transaction = -1;
  if (frame.type === PREPARE) {
    const fields = new PrepareFields();
    parsePrepare(frame, fields);
    if (!fields.isCommitted) transaction = fields.transactionPosition;
  }
  return { position, next, transaction };
}

/** The record that commits the transaction of a record; null where none is found within the limit. */
async function commitOf(
  context: StoreContext,
  { query }: AllFilter,
  { next, transaction }: NumberedRecord,
): Promise<NumberedRecord | null> {
  const {
    lookup: { reader },
    clock,
    options: { readSliceEvents },
  } = context;
  const candidates = query === undefined ? null : Candidates.of(query, context.attributes);
  const frame = new RecordFrame();
  let at = next;
  for (let looked = 1; looked <= COMMIT_RECORDS_MAX; looked++) {
    if (candidates !== null) {
      const found = await untilHit(() => candidates.find(at, true));
      if (found !== HIT) return null;
      at = candidates.at;
    }
    if (at >= reader.end || (await untilHit(() => reader.readForward(at, frame))) !== HIT) return null;
    if (frame.type === COMMIT && decodeCommit(frame).transactionPosition === transaction) return described(frame);
    at = frame.next;
    if (looked % readSliceEvents === 0) await clock.yield();
  }
  return null;
}

/**
 * A number from which a read goes on at a place where an earlier one ended, which need be that of no event; -1 where
 * nothing lies before the place. Records of explicit transactions stand for the places of their commits: where a read
 * ended between others, they are passed.
 */
export async function numberAt(context: StoreContext, place: AllPosition, isForward: boolean): Promise<number> {
  const { reader } = context.lookup;
  let outside = place.commit;
  if (place.prepare > 0 && place.prepare < place.commit) {
    const commit = await commitAt(context, place.commit);
    const inner =
      commit === null
        ? null
        : await walk(context, place.prepare, isForward, (record) =>
            record.position >= place.commit || record.position < commit.transaction
              ? 'stop'
              : record.transaction === commit.transaction
                ? 'take'
                : 'pass',
          );
    if (inner !== null) return inner.position;
    if (isForward && commit !== null) outside = commit.next;
  }
  const record = await walk(context, outside, isForward, ({ transaction }) => (transaction < 0 ? 'take' : 'pass'));
  return record?.position ?? (isForward ? reader.end : -1);
}

/** A number after which a subscription goes on behind the record that it has seen last. */
export async function numberOf(context: StoreContext, { commit, prepare }: AllPosition): Promise<number> {
  if (prepare < commit) return prepare;
  const record = await recordAt(context, commit);
  return record === null || record.transaction < 0
    ? commit
    : numberAt(context, { commit: record.position, prepare: 0 }, false);
}

/** The commit record at a position, with the beginning of its transaction; null where there is none. */
async function commitAt(context: StoreContext, position: number): Promise<NumberedRecord | null> {
  const frame = new RecordFrame();
  if ((await untilHit(() => context.lookup.reader.readAt(position, frame))) !== HIT || frame.type !== COMMIT)
    return null;
  return { ...described(frame), transaction: decodeCommit(frame).transactionPosition };
}

async function walk(
  { lookup: { reader }, clock, options: { readSliceEvents } }: StoreContext,
  from: number,
  isForward: boolean,
  judge: (record: NumberedRecord) => 'take' | 'pass' | 'stop',
): Promise<NumberedRecord | null> {
  const frame = new RecordFrame();
  for (let at = from, passed = 1; ; passed++) {
    const outcome = await untilHit(() => (isForward ? reader.readForward(at, frame) : reader.readBackward(at, frame)));
    if (outcome !== HIT) return null;
    const record = described(frame);
    const verdict = judge(record);
    if (verdict !== 'pass') return verdict === 'take' ? record : null;
    at = isForward ? frame.next : frame.position;
    if (passed % readSliceEvents === 0) await clock.yield();
  }
}
