import { SkuaError } from '../base/errors.ts';
import { EntryList } from '../index/format/entries.ts';
import {
  FLAG_STREAM_DELETE,
  FRAME_BYTES,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
  timestampMsAt,
  timestampTicksAt,
  TOMBSTONE,
} from '../log/format/records.ts';
import type { JobContext } from '../ports/jobs.ts';
import { Hash64 } from '../base/stream-hash.ts';
import { jsonMembers } from '../base/json-scanner.ts';
import { ignoredMetadata, METASTREAM_METADATA, parseMetadata } from '../streams/format/metadata.ts';
import { isMetastream, metastreamOf, originalOf } from '../streams/format/names.ts';
import { isEmptied, isWholeEvent, keptMetadata, redacted } from '../log/format/redaction.ts';
import { viewAt } from '../base/bytes.ts';
import { type MarkColumns, NO_MARKS } from '../streams/format/mark-columns.ts';
import { Redactions } from '../streams/redactions/redactions.ts';
import {
  isSoftDeleted,
  keepsTransactionRecord,
  Retention,
  type RetentionRule,
  shownData,
  TOMBSTONE_I32,
} from '../streams/format/retention.ts';
import { decodeText, encodeText } from '../base/text.ts';
import type { IgnoredMetadata } from '../streams/format/metadata.ts';
import type { Explanation, ResumedPoint } from './api.ts';
import type { IndexKey } from './sources/run-index.ts';
import { type RunFiles, type RunSettings, setRetention } from './sources/run-settings.ts';
import { RunSources } from './sources/run-sources.ts';

/** What a scavenge with the given point would do to one stream, event by event, and why. Reads only. */
export const EXPLAIN_JOB = 'scavenge.explain';

export interface ExplainArgs {
  readonly files: RunFiles;
  readonly settings: RunSettings;
  readonly stream: string;
  /** To which the next run goes, or null where it writes a new point. */
  readonly olderPoint: ResumedPoint | null;
  /** Those of the log before the point. */
  readonly marks?: MarkColumns;
}

/** Event numbers asked for at a time. */
const SLICE_NUMBERS = 8_192;
/** Events after which it is asked whether to stop. */
const PAUSE_EVENTS = 1_024;
/** 2^63-1 is no safe integer. */
const I64_MAX_TEXT = '9223372036854775807';

/** Throws `stream_not_found` when there are neither events nor metadata. */
export async function explain(args: ExplainArgs, context: JobContext): Promise<Explanation> {
  const { files, settings, olderPoint } = args;
  const sources = await RunSources.open(files, settings.point.position, context);
  try {
    if (olderPoint === null) return await new Explainer(args, sources, null, context).run();
    // What that run sees: nothing from its point on.
    const older = await RunSources.open(files, olderPoint.point.position, context);
    try {
      return await new Explainer(args, sources, older, context).run();
    } finally {
      await older.close();
    }
  } finally {
    await sources.close();
  }
}

/** Metadata as they count, and as they were written. */
interface Metadata {
  readonly maxAge: number | null;
  readonly maxCount: number | null;
  readonly truncateBefore: number | null;
  readonly written: Readonly<Record<string, unknown>> | null;
  readonly ignored: readonly IgnoredMetadata[];
}

const NONE: Metadata = { maxAge: null, maxCount: null, truncateBefore: null, written: null, ignored: [] };

/** The record that is looked at, shared by all that look. */
interface Examined {
  readonly frame: RecordFrame;
  readonly fields: PrepareFields;
  readonly entries: EntryList;
}

/** What a run to one scavenge point makes of the events of one stream. */
class Judge {
  readonly #stream: string;
  readonly #sources: RunSources;
  readonly #settings: RunSettings;
  readonly #context: JobContext;
  readonly #looked: Examined;
  readonly #isMetastream: boolean;
  readonly retention: Retention;
  /** Number of the tombstone: nothing behind it is removed. */
  tombstoneNumber = Infinity;
  lastEventNumber = -1;
  metadata = NONE;
  /**
   * Position of the metadata in force where they delete the stream; -1 where they don't, or a deleted stream's last
   * event keeps its data.
   */
  #deletedAt = -1;

  constructor(stream: string, settings: RunSettings, sources: RunSources, context: JobContext, looked: Examined) {
    this.#stream = stream;
    this.#sources = sources;
    this.#settings = settings;
    this.#context = context;
    this.#looked = looked;
    this.#isMetastream = isMetastream(stream);
    this.retention = new Retention(this.#isMetastream);
  }

  async prepare(key: IndexKey): Promise<void> {
    this.lastEventNumber = await this.#sources.index.lastNumber(key);
    if (this.#isMetastream) {
      this.metadata = { ...NONE, written: { $maxCount: METASTREAM_METADATA.maxCount } };
      const isTombstoned = (await this.#tombstoneOf(this.keyOf(originalOf(this.#stream)))) < Infinity;
      setRetention(this.retention, METASTREAM_METADATA, isTombstoned, this.lastEventNumber, this.#settings);
      return;
    }
    this.metadata = await this.#readMetadata();
    this.tombstoneNumber = await this.#tombstoneOf(key);
    setRetention(this.retention, this.metadata, this.tombstoneNumber < Infinity, this.lastEventNumber, this.#settings);
    // What is left of the metadata of a stream that is deleted for ever is in force no more, and no reader is shown it:
    // its access list went with it.
    if (this.tombstoneNumber < Infinity) this.metadata = NONE;
    this.retention.staysFrom = Math.min(this.lastEventNumber, this.tombstoneNumber);
  }

  /** A key with the name, so that every entry is confirmed by its record, which is needed anyway. */
  keyOf(name: string): IndexKey {
    const hash = new Hash64();
    this.#context.hasher.hash(name, hash);
    return { hi: hash.hi, lo: hash.lo, name: encodeText(name) };
  }

  async #readMetadata(): Promise<Metadata> {
    const key = this.keyOf(metastreamOf(this.#stream));
    const { entries, frame, fields } = this.#looked;
    const last = await this.#sources.index.lastNumber(key);
    if (last < 0) return NONE;
    await this.#sources.index.slice(key, last, last, 1, entries);
    if (entries.length === 0 || !(await this.read(entries.positions[0]!))) return NONE;
    const data = shownData(frame, fields);
    const { maxAge = null, maxCount = null, truncateBefore = null } = parseMetadata(data, true, fields.version);
    if (!this.#settings.keepsDeletedData && isSoftDeleted({ isTombstoned: false, truncateBefore }))
      this.#deletedAt = frame.position;
    return {
      maxAge,
      maxCount,
      truncateBefore,
      written: writtenMembers(data),
      ignored: ignoredMetadata(data, fields.version),
    };
  }

  /** Number of the stream's tombstone, Infinity when it has none. */
  async #tombstoneOf(key: IndexKey): Promise<number> {
    const { entries, fields } = this.#looked;
    const last = await this.#sources.index.lastNumber(key);
    if (last < TOMBSTONE_I32) return Infinity;
    await this.#sources.index.slice(key, TOMBSTONE_I32, TOMBSTONE_I32, 1, entries);
    if (entries.length > 0 && (await this.read(entries.positions[0]!)) && (fields.flags & FLAG_STREAM_DELETE) !== 0)
      return TOMBSTONE_I32;
    return last === TOMBSTONE ? TOMBSTONE : Infinity;
  }

  /** Reads the record there. False when it is gone. */
  async read(position: number): Promise<boolean> {
    const { frame, fields } = this.#looked;
    if (!(await this.#sources.chunks.record(position, frame)) || frame.type !== PREPARE) return false;
    parsePrepare(frame, fields);
    return true;
  }

  /** The first rule that removes the event that was read, or null when it stays. */
  ruleAgainst(number: number): RetentionRule | null {
    const { frame, fields } = this.#looked;
    const { isTombstoned } = this.retention;
    // To a run nothing is there from its point on.
    if (frame.position >= this.#settings.point.position) return null;
    const dropsTombstones = this.#settings.unsafeIgnoreHardDelete;
    if (!fields.isCommitted)
      return keepsTransactionRecord(fields.flags, isTombstoned, dropsTombstones) ? null : 'tombstone';
    // Not even the last record of a deleted stream's metastream stays.
    if (isTombstoned && (this.#isMetastream || dropsTombstones)) return 'tombstone';
    return this.retention.ruleAgainst(
      number,
      timestampMsAt(frame.bytes, fields.timestampAt),
      timestampTicksAt(frame.bytes, fields.timestampAt),
    );
  }

  /**
   * The event that was read, which stays, is the last one of a soft-deleted stream: it loses its data, or has lost
   * them. See DeletedStreams.
   */
  isDeletedLast(number: number): boolean {
    const { frame, fields } = this.#looked;
    return (
      number === this.lastEventNumber &&
      frame.position < this.#deletedAt &&
      !this.retention.isTombstoned &&
      isWholeEvent(fields)
    );
  }
}

class Explainer {
  readonly #args: ExplainArgs;
  readonly #sources: RunSources;
  readonly #context: JobContext;
  readonly #looked: Examined = { frame: new RecordFrame(), fields: new PrepareFields(), entries: new EntryList() };
  readonly #judge: Judge;
  /** Of the run that waits to go on, if there is one. */
  readonly #older: Judge | null;
  readonly #ranges = new ExplainRanges();
  /** What that run leaves of what goes. */
  readonly #left = new ExplainRanges();
  #whyWithin = '';
  #redacted: Explanation['redacted'];
  readonly #marks: Redactions;
  #marked = { count: 0, bytes: 0 };

  constructor(args: ExplainArgs, sources: RunSources, older: RunSources | null, context: JobContext) {
    const { stream, settings, olderPoint, marks = NO_MARKS } = args;
    this.#marks = Redactions.of(marks);
    this.#args = args;
    this.#sources = sources;
    this.#context = context;
    this.#judge = new Judge(stream, settings, sources, context, this.#looked);
    this.#older =
      older === null
        ? null
        : new Judge(stream, { ...settings, point: olderPoint!.point }, older, context, this.#looked);
  }

  async run(): Promise<Explanation> {
    const { stream, olderPoint } = this.#args;
    const judge = this.#judge;
    const key = judge.keyOf(stream);
    await judge.prepare(key);
    const {
      lastEventNumber,
      metadata: { written, ignored },
    } = judge;
    if (lastEventNumber < 0 && (isMetastream(stream) || (written === null && ignored.length === 0)))
      throw new SkuaError('stream_not_found', `There is no stream ${JSON.stringify(stream)}: check the name.`, {
        stream,
      });
    await this.#older?.prepare(key);
    const rules = this.#rules(judge.metadata);
    await this.#events(key, lastEventNumber);
    return {
      stream,
      lastEventNumber,
      metadata: written,
      ...(ignored.length > 0 && { ignored }),
      rules,
      removed: this.#ranges.removed,
      kept: this.#ranges.kept,
      ...(this.#redacted !== undefined && { redacted: this.#redacted }),
      ...(this.#marked.count > 0 && { marked: this.#marked }),
      ...(olderPoint !== null && { waiting: { ...olderPoint, leaves: this.#left.removed } }),
    };
  }

  #rules({ maxAge, maxCount, truncateBefore }: Metadata): Explanation['rules'] {
    const rules: { rule: RetentionRule; value: number | string | boolean }[] = [];
    const within: string[] = [];
    if (this.#judge.retention.isTombstoned) rules.push({ rule: 'tombstone', value: true });
    if (isMetastream(this.#args.stream)) rules.push({ rule: 'superseded-metadata', value: true });
    if (truncateBefore !== null) {
      rules.push({ rule: '$tb', value: truncateBefore === TOMBSTONE ? I64_MAX_TEXT : truncateBefore });
      within.push('not below $tb');
    }
    if (maxCount !== null) {
      rules.push({ rule: '$maxCount', value: maxCount });
      within.push('within $maxCount');
    }
    if (maxAge !== null) {
      rules.push({ rule: '$maxAge', value: maxAge });
      within.push('within $maxAge');
    }
    this.#whyWithin = within.length > 0 ? within.join(', ') : 'no rule applies';
    return rules;
  }

  async #events(key: IndexKey, lastNumber: number): Promise<void> {
    const { entries } = this.#looked;
    let seen = 0;
    for (let from = 0; from <= lastNumber;) {
      from = await this.#sources.index.slice(key, from, lastNumber, SLICE_NUMBERS, entries);
      for (let i = 0; i < entries.length; i++) {
        if (await this.#judge.read(entries.positions[i]!)) this.#event(entries.versions[i]!);
        if (++seen % PAUSE_EVENTS === 0) await this.#context.checkpoint();
      }
      this.#context.progress({
        done: seen,
        total: Math.max(seen, Math.min(lastNumber + 1, TOMBSTONE_I32)),
        unit: 'entries',
      });
      await this.#context.checkpoint();
    }
  }

  #event(number: number): void {
    const rule = this.#judge.ruleAgainst(number);
    if (rule === null) {
      this.#ranges.keep(number, this.#whyKept(number));
      const { frame, fields } = this.#looked;
      if (this.#judge.isDeletedLast(number) && !isEmptied(frame, fields))
        this.#redacted = { number, bytes: fields.dataLength + fields.metadataLength };
      else this.#noteMark();
      return;
    }
    const bytes = this.#looked.frame.length + FRAME_BYTES;
    this.#ranges.remove(number, bytes, rule);
    if (this.#older === null) return;
    if (this.#older.ruleAgainst(number) === null) this.#left.remove(number, bytes, rule);
    else this.#left.keep(number, '');
  }

  /** The event that was read stays; with a mark it may have content to lose. */
  #noteMark(): void {
    const { frame, fields } = this.#looked;
    const mark = this.#marks.count === 0 ? null : this.#marks.of(frame, fields);
    if (mark === null || redacted(frame, fields, mark.keys) === null) return;
    this.#marked.count++;
    this.#marked.bytes +=
      fields.dataLength +
      fields.metadataLength -
      keptMetadata(viewAt(frame.bytes, fields.metadataAt, fields.metadataLength), mark.keys).length;
  }

  #whyKept(number: number): string {
    const { flags, isCommitted } = this.#looked.fields;
    const { retention, tombstoneNumber } = this.#judge;
    if ((flags & FLAG_STREAM_DELETE) !== 0) return 'tombstone';
    if (!isCommitted)
      return retention.isTombstoned ? 'start of an explicit transaction' : 'part of an explicit transaction';
    if (number > tombstoneNumber) return 'written after the tombstone';
    if (number < retention.staysFrom) return this.#whyWithin;
    return this.#judge.isDeletedLast(number)
      ? 'last event of the deleted stream, without its data'
      : 'last event of the stream';
  }
}

/** The members of metadata as they were written, but for numbers that can't be told exactly, which are their text. */
function writtenMembers(data: Uint8Array): Record<string, unknown> | null {
  const found = data.length === 0 ? null : jsonMembers(decodeText(data));
  if (found === null) return null;
  const members = found.map(({ key, raw }): [string, unknown] => {
    const value: unknown = JSON.parse(raw);
    return [key, typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? raw : value];
  });
  return Object.fromEntries(members);
}

/**
 * Ranges of either kind that are told apart; from there on the last range of its kind is extended over what lies
 * between.
 */
const RANGES_MAX = 1_000;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Puts decisions about single events together to ranges of event numbers. Memory does not grow with the stream. */
export class ExplainRanges {
  readonly removed: Mutable<Explanation['removed'][number]>[] = [];
  readonly kept: Mutable<Explanation['kept'][number]>[] = [];
  #isLastRemoved = false;

  remove(number: number, bytes: number, rule: RetentionRule): void {
    const last = this.removed.at(-1);
    if (last !== undefined && last.rule === rule && (this.#isLastRemoved || this.removed.length >= RANGES_MAX)) {
      last.to = number;
      last.count++;
      last.bytes += bytes;
    } else this.removed.push({ from: number, to: number, count: 1, bytes, rule });
    this.#isLastRemoved = true;
  }

  keep(number: number, why: string): void {
    const last = this.kept.at(-1);
    if (last !== undefined && last.why === why && (!this.#isLastRemoved || this.kept.length >= RANGES_MAX)) {
      last.to = number;
      last.count++;
    } else this.kept.push({ from: number, to: number, count: 1, why });
    this.#isLastRemoved = false;
  }
}
