import { SkuaError } from '../errors.ts';
import { EntryList } from '../index/entries.ts';
import { FLAG_STREAM_DELETE, FRAME_BYTES, parsePrepare, PREPARE, PrepareFields, RecordFrame, timestampMsAt, timestampTicksAt, TOMBSTONE } from '../log/records.ts';
import type { JobContext } from '../ports/jobs.ts';
import { Hash64 } from '../stream-hash.ts';
import { jsonMembers } from '../json-scanner.ts';
import { METASTREAM_METADATA, NO_METADATA, parseMetadata } from '../streams/metadata.ts';
import { isMetastream, metastreamOf, originalOf } from '../streams/names.ts';
import { keepsTransactionRecord, Retention, type RetentionRule, shownData, TOMBSTONE_I32 } from '../streams/retention.ts';
import { decodeText, encodeText } from '../text.ts';
import type { Explanation } from './api.ts';
import type { IndexKey } from './sources/run-index.ts';
import { type RunFiles, type RunSettings, setRetention } from './sources/run-settings.ts';
import { RunSources } from './sources/run-sources.ts';

/** What a scavenge with the given point would do to one stream, event by event, and why. Reads only. */
export const EXPLAIN_JOB = 'scavenge.explain';

export interface ExplainArgs {
  readonly files: RunFiles;
  readonly settings: RunSettings;
  readonly stream: string;
}

/** Event numbers asked for at a time. */
const SLICE_NUMBERS = 8_192;
/** Events after which it is asked whether to stop. */
const PAUSE_EVENTS = 1_024;
/** 2^63-1 is no safe integer. */
const I64_MAX_TEXT = '9223372036854775807';

/** Throws `stream_not_found` when there are neither events nor metadata. */
export async function explain(args: ExplainArgs, context: JobContext): Promise<Explanation> {
  const sources = await RunSources.open(args.files, args.settings.point.position, context);
  try {
    return await new Explainer(args, sources, context).run();
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
}

const NONE: Metadata = { maxAge: null, maxCount: null, truncateBefore: null, written: null };

class Explainer {
  readonly #args: ExplainArgs;
  readonly #sources: RunSources;
  readonly #context: JobContext;
  readonly #isMetastream: boolean;
  readonly #retention: Retention;
  readonly #ranges = new ExplainRanges();
  readonly #entries = new EntryList();
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  /** Number of the tombstone: nothing behind it is removed. */
  #tombstoneNumber = Infinity;
  #whyWithin = '';

  constructor(args: ExplainArgs, sources: RunSources, context: JobContext) {
    this.#args = args;
    this.#sources = sources;
    this.#context = context;
    this.#isMetastream = isMetastream(args.stream);
    this.#retention = new Retention(this.#isMetastream);
  }

  async run(): Promise<Explanation> {
    const { stream, settings } = this.#args;
    const key = this.#keyOf(stream);
    const lastEventNumber = await this.#sources.index.lastNumber(key);
    const metadata = this.#isMetastream ? { ...NONE, written: { $maxCount: METASTREAM_METADATA.maxCount } } : await this.#metadata();
    if (lastEventNumber < 0 && (this.#isMetastream || metadata.written === null)) throw new SkuaError('stream_not_found', `There is no stream ${JSON.stringify(stream)}: check the name.`, { stream });
    if (this.#isMetastream) {
      const isTombstoned = (await this.#tombstoneOf(this.#keyOf(originalOf(stream)))) < Infinity;
      setRetention(this.#retention, METASTREAM_METADATA, isTombstoned, lastEventNumber, settings);
    } else {
      this.#tombstoneNumber = await this.#tombstoneOf(key);
      setRetention(this.#retention, metadata, this.#tombstoneNumber < Infinity, lastEventNumber, settings);
      this.#retention.staysFrom = Math.min(lastEventNumber, this.#tombstoneNumber);
    }
    const rules = this.#rules(metadata);
    await this.#events(key, lastEventNumber);
    return { stream, lastEventNumber, metadata: metadata.written, rules, removed: this.#ranges.removed, kept: this.#ranges.kept };
  }

  /** A key with the name, so that every entry is confirmed by its record, which is needed anyway. */
  #keyOf(name: string): IndexKey {
    const hash = new Hash64();
    this.#context.hasher.hash(name, hash);
    return { hi: hash.hi, lo: hash.lo, name: encodeText(name) };
  }

  async #metadata(): Promise<Metadata> {
    const key = this.#keyOf(metastreamOf(this.#args.stream));
    const last = await this.#sources.index.lastNumber(key);
    if (last < 0) return NONE;
    await this.#sources.index.slice(key, last, last, 1, this.#entries);
    if (this.#entries.length === 0 || !(await this.#read(this.#entries.positions[0]!))) return NONE;
    const data = shownData(this.#frame, this.#fields);
    const parsed = parseMetadata(data, true, this.#fields.version);
    if (parsed === NO_METADATA) return NONE;
    const { maxAge = null, maxCount = null, truncateBefore = null } = parsed;
    return { maxAge, maxCount, truncateBefore, written: writtenMembers(data) };
  }

  /** Number of the stream's tombstone, Infinity when it has none. */
  async #tombstoneOf(key: IndexKey): Promise<number> {
    const last = await this.#sources.index.lastNumber(key);
    if (last < TOMBSTONE_I32) return Infinity;
    await this.#sources.index.slice(key, TOMBSTONE_I32, TOMBSTONE_I32, 1, this.#entries);
    if (this.#entries.length > 0 && (await this.#read(this.#entries.positions[0]!)) && (this.#fields.flags & FLAG_STREAM_DELETE) !== 0) return TOMBSTONE_I32;
    return last === TOMBSTONE ? TOMBSTONE : Infinity;
  }

  #rules({ maxAge, maxCount, truncateBefore }: Metadata): Explanation['rules'] {
    const rules: { rule: RetentionRule; value: number | string | boolean }[] = [];
    const within: string[] = [];
    if (this.#retention.isTombstoned) rules.push({ rule: 'tombstone', value: true });
    if (this.#isMetastream) rules.push({ rule: 'superseded-metadata', value: true });
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
    let seen = 0;
    for (let from = 0; from <= lastNumber;) {
      from = await this.#sources.index.slice(key, from, lastNumber, SLICE_NUMBERS, this.#entries);
      for (let i = 0; i < this.#entries.length; i++) {
        if (await this.#read(this.#entries.positions[i]!)) this.#event(this.#entries.versions[i]!);
        if (++seen % PAUSE_EVENTS === 0) await this.#context.checkpoint();
      }
      this.#context.progress({ done: seen, total: Math.max(seen, Math.min(lastNumber + 1, TOMBSTONE_I32)), unit: 'entries' });
      await this.#context.checkpoint();
    }
  }

  async #read(position: number): Promise<boolean> {
    if (!(await this.#sources.chunks.record(position, this.#frame)) || this.#frame.type !== PREPARE) return false;
    parsePrepare(this.#frame, this.#fields);
    return true;
  }

  #event(number: number): void {
    const rule = this.#ruleAgainst(number);
    if (rule !== null) this.#ranges.remove(number, this.#frame.length + FRAME_BYTES, rule);
    else this.#ranges.keep(number, this.#whyKept(number));
  }

  /** The first rule that removes the event in `#frame`, or null when it stays; scavenge.md sections 5.3 and 6.2. */
  #ruleAgainst(number: number): RetentionRule | null {
    const fields = this.#fields;
    const { isTombstoned } = this.#retention;
    const dropsTombstones = this.#args.settings.unsafeIgnoreHardDelete;
    if (!fields.isCommitted) return keepsTransactionRecord(fields.flags, isTombstoned, dropsTombstones) ? null : 'tombstone';
    // Not even the last record of a deleted stream's metastream stays.
    if (isTombstoned && (this.#isMetastream || dropsTombstones)) return 'tombstone';
    const { bytes } = this.#frame;
    return this.#retention.ruleAgainst(number, timestampMsAt(bytes, fields.timestampAt), timestampTicksAt(bytes, fields.timestampAt));
  }

  #whyKept(number: number): string {
    const { flags, isCommitted } = this.#fields;
    if ((flags & FLAG_STREAM_DELETE) !== 0) return 'tombstone';
    if (!isCommitted) return this.#retention.isTombstoned ? 'begin of an explicit transaction' : 'part of an explicit transaction';
    if (number > this.#tombstoneNumber) return 'written behind the tombstone';
    return number >= this.#retention.staysFrom ? 'last event of the stream' : this.#whyWithin;
  }
}

/** The members of metadata as they were written, but for numbers that can't be told exactly, which are their text. */
function writtenMembers(data: Uint8Array): Record<string, unknown> {
  const members = (jsonMembers(decodeText(data)) ?? []).map(({ key, raw }): [string, unknown] => {
    const value: unknown = JSON.parse(raw);
    return [key, typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? raw : value];
  });
  return Object.fromEntries(members);
}

/** Ranges of either kind that are told apart; from there on the last range of its kind is extended over what lies between. */
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
