import { equalBytes, i32, i64, u16 } from '../../base/bytes.ts';
import { HEADER_BYTES } from '../../index/format/table-format.ts';
import { isSkuaError } from '../../base/errors.ts';
import {
  eventNumber64,
  FLAG_COMMITTED,
  FLAG_DATA,
  FLAG_REDACTED,
  FLAG_STREAM_DELETE,
  FRAME_BYTES,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RECORD_BYTES_MAX,
  RecordFrame,
} from '../../log/format/records.ts';
import { isEmptied, isRedacted } from '../../log/format/redaction.ts';
import { type Mark, MARK_REACH_BYTES, markAround } from '../../streams/format/marks.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { FileFacts, FileWindow } from '../format/scavenge-files.ts';
import { type Needle, type PatternSearch, sqliteTextType, textLength } from '../needles/needles.ts';

/** SQLite announces a text this far before it at most: row header and the columns before it. */
const SQLITE_REACH_BYTES = 40;
const LAST_EVENT =
  'the last one, which a scavenge keeps so that event numbers continue; hard-delete the stream and scavenge to remove it too';

/**
 * Where something remains. A `trace` is of an event: its record or its id. `residue` shows that a stream was there, but
 * nothing of what its events held: names in tombstones, metadata, other events and the scavenge database, index
 * entries.
 */
export interface ErasureFinding {
  readonly kind: 'trace' | 'residue';
  readonly file: string;
  readonly offset: number;
  readonly what: string;
  /** Where an event was found by its id: the stream of its record, which the caller need not have known. */
  readonly stream?: string;
  /** The mark that redacts an event, where its id was found in one. */
  readonly mark?: Pick<Mark, 'stream' | 'number' | 'by' | 'reason'>;
}

/** Findings of one kind in one file, which are told as one. */
interface Tally {
  readonly offset: number;
  count: number;
  readonly what: (count: number) => string;
}

/** Says of each match what it is: a trace, residue, or nothing. */
export class ErasureJudge {
  readonly #needles: readonly Needle[];
  readonly #name: string;
  readonly #nameBytes: Uint8Array;
  readonly #ownPrefix: Uint8Array;
  readonly #metaPrefix: Uint8Array;
  readonly #announced: Uint8Array;
  readonly #findingsMax: number;
  readonly #tallies = new Map<string, Tally>();
  #findings: ErasureFinding[] = [];
  #facts: FileFacts = { path: '', table: null, isDatabase: false, leftover: null, dataEnd: Infinity };
  /** The event in force with the highest number so far: known to be the stream's last only at the end. */
  #last: { readonly number: number; readonly record: StrayRecord; readonly file: string } | null = null;
  #isTombstoned = false;
  traces = 0;
  residues = 0;
  /** Places of events that a scavenge has emptied; they are residue. */
  readonly #emptied = new Set<string>();

  constructor(needles: readonly Needle[], stream: string, findingsMax: number) {
    this.#needles = needles;
    this.#name = stream;
    this.#nameBytes = encodeText(stream);
    const { length } = this.#nameBytes;
    this.#ownPrefix = textLength(length);
    this.#metaPrefix = Uint8Array.from([...textLength(length + 2), 36, 36]);
    this.#announced = sqliteTextType(length);
    this.#findingsMax = findingsMax;
  }

  get redacted(): number {
    return this.#emptied.size;
  }

  /** What follows is of this file. */
  begin(facts: FileFacts): void {
    this.#facts = facts;
  }

  async block(window: FileWindow, search: PatternSearch): Promise<void> {
    const matches: number[] = [];
    search.each(window.bytes, window.length, (pattern, offset) => matches.push(pattern, window.start + offset));
    for (let i = 0; i < matches.length; i += 2) await this.#judge(this.#needles[matches[i]!]!, matches[i + 1]!, window);
  }

  /** The file is through. */
  end(): void {
    for (const { offset, count, what } of this.#tallies.values()) this.#add('residue', offset, what(count));
    this.#tallies.clear();
  }

  /** All files are through. */
  finish(): void {
    if (this.#last === null) return;
    const { number, record, file } = this.#last;
    this.#facts = { ...this.#facts, path: file, leftover: null, dataEnd: Infinity };
    this.#add(
      'trace',
      record.offset,
      this.#isTombstoned ? this.#eventText(record) : `event ${number} of '${this.#name}', ${LAST_EVENT}`,
    );
  }

  /** The findings since the last call. */
  take(): ErasureFinding[] {
    const findings = this.#findings;
    if (findings.length > 0) this.#findings = [];
    return findings;
  }

  #add(
    kind: 'trace' | 'residue',
    offset: number,
    what: string,
    more: Pick<ErasureFinding, 'stream' | 'mark'> = {},
  ): void {
    const count = kind === 'trace' ? ++this.traces : ++this.residues;
    if (count > this.#findingsMax) return;
    const { path, leftover, dataEnd, behind } = this.#facts;
    const where = leftover ?? (offset >= dataEnd ? (behind ?? 'after the end of the log') : null);
    this.#findings.push({
      kind,
      file: path,
      offset,
      what: where === null ? what : `${what}, ${where}`,
      ...more,
    });
  }

  #tally(key: string, offset: number, what: (count: number) => string): void {
    const tally = this.#tallies.get(key);
    if (tally === undefined) this.#tallies.set(key, { offset, count: 1, what });
    else tally.count++;
  }

  async #judge(needle: Needle, offset: number, window: FileWindow): Promise<void> {
    switch (needle.kind) {
      case 'id':
        return this.#judgeId(needle.id, needle.form, offset, window);
      case 'name':
        return this.#judgeName(offset + needle.skip, needle.isFree, window);
      case 'table-hash':
        return this.#judgeTableHash(needle.ofMetastream, offset);
      case 'database-hash':
        if (this.#facts.isDatabase)
          this.#tally(
            'rows',
            offset,
            (count) =>
              `${count} ${count === 1 ? 'place' : 'places'} in the scavenge database with the hash of the stream or its metastream`,
          );
    }
  }

  async #judgeId(id: string, form: 'binary' | 'text', offset: number, window: FileWindow): Promise<void> {
    const mark = form === 'text' ? await markAt(id, offset, window) : null;
    if (mark !== null)
      return this.#add('residue', offset, `the id of event ${id}, in the mark that redacts it`, { mark });
    const found = form === 'binary' ? await recordAtEventId(window, offset) : null;
    if (found === null)
      return this.#add('trace', offset, `the id of event ${id}, ${form === 'binary' ? 'in binary' : 'as text'}`);
    const { record, stream } = found;
    if (await isEmptiedRecord(window, record))
      return this.#addEmptied(
        record,
        `the id of event ${id}, number ${record.eventNumber} in stream '${stream}', in its record`,
        { stream },
      );
    const number = record.eventNumber === null ? 'of an explicit transaction' : `number ${record.eventNumber}`;
    this.#add(
      'trace',
      record.offset,
      `the record of event ${id}, ${number} in stream '${stream}'; a scavenge keeps the last event of a stream, unless the stream is hard-deleted`,
      { stream },
    );
  }

  /** `nameAt`: where the stream's name itself begins. */
  async #judgeName(nameAt: number, isFree: boolean, window: FileWindow): Promise<void> {
    const reach = SQLITE_REACH_BYTES;
    const got = window.peek(nameAt - reach, reach);
    const before = got instanceof Uint8Array ? got : await got;
    if (endsWith(before, this.#ownPrefix)) {
      const record = await recordAtStream(window, nameAt - this.#ownPrefix.length);
      if (record !== null)
        return (await isEmptiedRecord(window, record))
          ? this.#addEmptied(record, this.#eventText(record))
          : this.#judgeRecord(record);
    }
    if (endsWith(before, this.#metaPrefix)) {
      const record = await recordAtStream(window, nameAt - this.#metaPrefix.length);
      if (record !== null)
        return this.#add(
          'residue',
          record.offset,
          record.isTombstone ? `a tombstone of the metadata of '${this.#name}'` : `metadata of '${this.#name}'`,
        );
    }
    if (!isFree) return;
    if (this.#facts.isDatabase) {
      if (contains(before, this.#announced))
        this.#tally(
          'database',
          nameAt,
          (count) => `the name '${this.#name}', ${times(count)} in the scavenge database`,
        );
      return;
    }
    const after = await window.peek(nameAt + this.#nameBytes.length, 1);
    if (!isNamePart(before[before.length - 1]) && !isNamePart(after[0]))
      this.#tally('mention', nameAt, (count) => `the name '${this.#name}', ${times(count)} in other data`);
  }

  #addEmptied(record: StrayRecord, what: string, more?: Pick<ErasureFinding, 'stream'>): void {
    this.#emptied.add(`${this.#facts.path} ${record.offset}`);
    this.#add('residue', record.offset, `${what}, whose content a scavenge has removed`, more);
  }

  #judgeRecord(record: StrayRecord): void {
    if (record.isTombstone) {
      this.#isTombstoned = true;
      return this.#add('residue', record.offset, `the tombstone of '${this.#name}'`);
    }
    if (!record.isEvent)
      return this.#add(
        'residue',
        record.offset,
        `a record of an explicit transaction of '${this.#name}' that is not an event`,
      );
    const number = record.eventNumber;
    const { path, leftover, dataEnd } = this.#facts;
    if (number === null || leftover !== null || record.offset >= dataEnd || number < (this.#last?.number ?? 0))
      return this.#add('trace', record.offset, this.#eventText(record));
    const earlier = this.#last;
    this.#last = { number, record, file: path };
    if (earlier === null) return;
    const facts = this.#facts;
    this.#facts = { ...facts, path: earlier.file, leftover: null, dataEnd: Infinity };
    this.#add('trace', earlier.record.offset, this.#eventText(earlier.record));
    this.#facts = facts;
  }

  #eventText(record: StrayRecord): string {
    return record.eventNumber === null
      ? `an event of '${this.#name}' in an explicit transaction`
      : `event ${record.eventNumber} of '${this.#name}'`;
  }

  #judgeTableHash(ofMetastream: boolean, offset: number): void {
    const { table } = this.#facts;
    if (table === null) return;
    const entryAt = offset - HEADER_BYTES - (table.version === 2 ? 4 : 8);
    if (entryAt < 0 || entryAt % table.entryBytes !== 0 || entryAt >= table.entries * table.entryBytes) return;
    const whose = ofMetastream ? 'its metastream' : `'${this.#name}'`;
    this.#tally(
      `entries of ${whose}`,
      entryAt + HEADER_BYTES,
      (count) => `${count} index ${count === 1 ? 'entry' : 'entries'} with the hash of ${whose}`,
    );
  }
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function endsWith(bytes: Uint8Array, end: Uint8Array): boolean {
  return bytes.length >= end.length && equalBytes(bytes, bytes.length - end.length, end, 0, end.length);
}

function contains(bytes: Uint8Array, part: Uint8Array): boolean {
  for (let at = 0; at + part.length <= bytes.length; at++) if (equalBytes(bytes, at, part, 0, part.length)) return true;
  return false;
}

/** Letters, digits, hyphen and underscore: a name inside a longer one is another stream's. */
function isNamePart(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  return (
    (byte >= 48 && byte <= 57) ||
    (byte >= 65 && byte <= 90) ||
    (byte >= 97 && byte <= 122) ||
    byte === 45 ||
    byte === 95 ||
    byte >= 128
  );
}

/** Bytes of a frame before the stream field: length, and the fixed fields of version 1 and 0. */
const BEFORE_STREAM_V1 = 36;
const BEFORE_STREAM_V0 = 32;
/** Flags that are in use, and the two that never were. */
const FLAGS_KNOWN = 0x07ff;
/** Longer names are not recognised from an event's id alone. */
const NAME_BYTES_MAX = 4_096;
const POSITION_HIGH_MAX = 0x001f_ffff;

/** A prepare record, or its beginning, found among bytes that need not be a log. */
interface StrayRecord {
  /** File offset of its frame. */
  readonly offset: number;
  readonly position: number;
  /** Of the payload, as its frame says. */
  readonly length: number;
  readonly flags: number;
  /** Null for a record of an explicit transaction, whose number is not its own. */
  readonly eventNumber: number | null;
  readonly isTombstone: boolean;
  /** It is an event, with or without data. */
  readonly isEvent: boolean;
}

/**
 * Whether a scavenge has left nothing of the event but position, number, id, type, and of a redacted one the metadata
 * that stay: asked of its very bytes, all of which must be there.
 */
async function isEmptiedRecord(window: FileWindow, { offset, length, flags }: StrayRecord): Promise<boolean> {
  if ((flags & FLAG_REDACTED) === 0) return false;
  const bytes = await window.peek(offset, length + FRAME_BYTES);
  if (bytes.length < length + FRAME_BYTES || i32(bytes, FRAME_BYTES / 2 + length) !== length) return false;
  const frame = new RecordFrame();
  frame.bytes = bytes;
  frame.at = FRAME_BYTES / 2;
  frame.length = length;
  const fields = new PrepareFields();
  try {
    parsePrepare(frame, fields);
  } catch (error) {
    if (isSkuaError(error)) return false;
    throw error;
  }
  return isEmptied(frame, fields) || isRedacted(frame, fields);
}

/** The mark that has the id found at `offset` of the file; null where it stands in none. */
async function markAt(
  id: string,
  offset: number,
  window: FileWindow,
): Promise<NonNullable<ErasureFinding['mark']> | null> {
  const from = Math.max(0, offset - MARK_REACH_BYTES);
  const before = decodeText(await window.peek(from, offset - from));
  const behind = decodeText(await window.peek(offset + id.length, MARK_REACH_BYTES));
  const mark = markAround(before, id, behind);
  return mark === null ? null : { stream: mark.stream, number: mark.number, by: mark.by, reason: mark.reason };
}

/**
 * The record whose stream field, which begins with its length, lies at `offset` of the file; null when there is none.
 */
async function recordAtStream(window: FileWindow, offset: number): Promise<StrayRecord | null> {
  if (offset < BEFORE_STREAM_V1) return null;
  const got = window.peek(offset - BEFORE_STREAM_V1, BEFORE_STREAM_V1);
  const bytes = got instanceof Uint8Array ? got : await got;
  return bytes.length < BEFORE_STREAM_V1 ? null : recordBefore(bytes, BEFORE_STREAM_V1, offset);
}

/** `at`: where the stream field begins in `bytes`, `offset`: where in the file. */
function recordBefore(bytes: Uint8Array, at: number, offset: number): StrayRecord | null {
  return (
    ofVersion(bytes, at - BEFORE_STREAM_V1, 1, offset - BEFORE_STREAM_V1) ??
    ofVersion(bytes, at - BEFORE_STREAM_V0, 0, offset - BEFORE_STREAM_V0)
  );
}

function ofVersion(b: Uint8Array, at: number, version: number, offset: number): StrayRecord | null {
  const length = i32(b, at);
  const flags = u16(b, at + 14);
  if (
    b[at + 4] !== PREPARE ||
    b[at + 5] !== version ||
    length < 64 ||
    length > RECORD_BYTES_MAX ||
    (flags & ~FLAGS_KNOWN) !== 0
  )
    return null;
  const isPosition = (p: number) => i32(b, p + 4) >= 0 && i32(b, p + 4) <= POSITION_HIGH_MAX;
  if (!isPosition(at + 6) || !isPosition(at + 16) || i32(b, at + 24) < -1) return null;
  const expected = version === 1 ? eventNumber64(b, at + 28) : i32(b, at + 28);
  if (expected < -2) return null;
  const isTombstone = (flags & FLAG_STREAM_DELETE) !== 0;
  return {
    offset,
    position: i64(b, at + 6),
    length,
    flags,
    eventNumber: (flags & FLAG_COMMITTED) !== 0 ? expected + 1 : null,
    isTombstone,
    isEvent: !isTombstone && (flags & FLAG_DATA) !== 0,
  };
}

/** The record whose event id lies at `offset` of the file, with the name of its stream; null when there is none. */
async function recordAtEventId(
  window: FileWindow,
  offset: number,
): Promise<{ readonly record: StrayRecord; readonly stream: string } | null> {
  const reach = Math.min(offset, NAME_BYTES_MAX + BEFORE_STREAM_V1 + 5);
  const bytes = await window.peek(offset - reach, reach);
  for (let nameAt = reach - 1; nameAt >= BEFORE_STREAM_V1 + 1; nameAt--) {
    const length = textLength(reach - nameAt);
    const fieldAt = nameAt - length.length;
    if (fieldAt < BEFORE_STREAM_V1 || !length.every((byte, i) => byte === bytes[fieldAt + i])) continue;
    const record = recordBefore(bytes, fieldAt, offset - reach + fieldAt);
    if (record !== null) return { record, stream: decodeText(bytes.slice(nameAt)) };
  }
  return null;
}
