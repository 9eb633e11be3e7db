import { categoryOf } from '../../attributes/format/attribute-keys.ts';
import { equalBytes } from '../../base/bytes.ts';
import { HEADER_BYTES, POSITION_TABLE_VERSION } from '../../index/format/table-format.ts';
import { isInMarksTable } from '../../streams/format/marks-table.ts';
import { encodeText } from '../../base/text.ts';
import type { FileFacts, FileWindow } from '../format/scavenge-files.ts';
import { type Needle, type PatternSearch, sqliteTextType, textLength } from '../needles/needles.ts';
import {
  AUDITED_BEFORE,
  auditedAt,
  isEmptiedRecord,
  isSoftDelete,
  markAt,
  recordAtEventId,
  recordAtStream,
  type StrayRecord,
  timeOf,
  type AuditedDelete,
  type FoundDelete,
  type FoundMark,
} from './stray-records.ts';

/** SQLite announces a text this far before it at most: row header and the columns before it. */
const SQLITE_REACH_BYTES = 40;
/** What stands before the name of a stream in an entry of the audit. */
const AUDITED = encodeText(AUDITED_BEFORE);
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
  readonly mark?: FoundMark;
  /** What deletes the stream, where it was found: a tombstone, or else its metadata. */
  readonly deletion?: FoundDelete;
  /** The entry of the audit that says who deleted it, where the log has that. */
  readonly audited?: AuditedDelete;
}

type MoreOfFinding = Pick<ErasureFinding, 'stream' | 'mark' | 'deletion' | 'audited'>;

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
  /** Ids that were not found so far. */
  readonly #unknown = new Set<string>();
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
    for (const needle of needles) if (needle.kind === 'id') this.#unknown.add(needle.id);
  }

  get unknownEvents(): readonly string[] {
    return [...this.#unknown];
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

  #add(kind: 'trace' | 'residue', offset: number, what: string, more: MoreOfFinding = {}): void {
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
    this.#unknown.delete(id);
    const mark = form === 'text' ? await markAt(id, offset, window) : null;
    if (mark !== null)
      return this.#add('residue', offset, `the id of event ${id}, in the mark that redacts it`, { mark });
    if (form === 'binary' && isInMarksTable(await window.peek(0, 8), offset))
      return this.#add('residue', offset, `the id of event ${id}, in a table of redactions`);
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
    this.#add('trace', record.offset, `the record of event ${id}, ${number} in stream '${stream}'`, { stream });
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
          : this.#judgeRecord(record, window);
    }
    if (endsWith(before, this.#metaPrefix)) {
      const record = await recordAtStream(window, nameAt - this.#metaPrefix.length);
      if (record !== null) {
        const what = record.isTombstone ? 'a tombstone of the metadata' : 'metadata';
        const isDelete = !record.isTombstone && (await isSoftDelete(window, record));
        return this.#add('residue', record.offset, `${what} of '${this.#name}'${isDelete ? ', which delete it' : ''}`, {
          ...(isDelete && { deletion: { isHard: false, time: await timeOf(window, record) } }),
        });
      }
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
    const audited = endsWith(before, AUDITED) ? await auditedAt(this.#nameBytes, nameAt, window) : null;
    if (audited !== null)
      return this.#add('residue', nameAt, `the name '${this.#name}', in the audit of its deletion`, { audited });
    if (!isNamePart(before[before.length - 1]) && !isNamePart(after[0]))
      this.#tally('mention', nameAt, (count) => `the name '${this.#name}', ${times(count)} in other data`);
  }

  #addEmptied(record: StrayRecord, what: string, more?: Pick<ErasureFinding, 'stream'>): void {
    this.#emptied.add(`${this.#facts.path} ${record.offset}`);
    this.#add('residue', record.offset, `${what}, whose content a scavenge has removed`, more);
  }

  async #judgeRecord(record: StrayRecord, window: FileWindow): Promise<void> {
    if (record.isTombstone) {
      this.#isTombstoned = true;
      return this.#add('residue', record.offset, `the tombstone of '${this.#name}'`, {
        deletion: { isHard: true, time: await timeOf(window, record) },
      });
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
    const ofPositions = table.version === POSITION_TABLE_VERSION;
    const entryAt = offset - HEADER_BYTES - (ofPositions ? 0 : table.version === 2 ? 4 : 8);
    if (entryAt < 0 || entryAt % table.entryBytes !== 0 || entryAt >= table.entries * table.entryBytes) return;
    // Of all keys of attributes only a category can be a stream's whole name.
    if (ofPositions && (ofMetastream || categoryOf(this.#name) !== this.#name)) return;
    const whose = ofMetastream ? 'its metastream' : `'${this.#name}'`;
    this.#tally(
      `entries of ${whose}`,
      entryAt + HEADER_BYTES,
      (count) =>
        `${count} index ${count === 1 ? 'entry' : 'entries'} with the hash of ${ofPositions ? `the category ${whose}, which other streams may be of` : whose}`,
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
