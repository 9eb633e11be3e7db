import { equalBytes } from '../bytes.ts';
import { HEADER_BYTES } from '../index/table-format.ts';
import { encodeText } from '../text.ts';
import type { FileFacts } from './erasure-files.ts';
import { sqliteTextType, textLength, type Needle } from './erasure-needles.ts';
import type { FileWindow } from './file-window.ts';
import type { PatternSearch } from './pattern-search.ts';
import { recordAtEventId, recordAtStream, type StrayRecord } from './stray-record.ts';

/** SQLite announces a text this far before it at most: row header and the columns before it. */
const SQLITE_REACH_BYTES = 40;
const LAST_EVENT = 'the last one, which a scavenge keeps so that the stream\'s numbers go on; hard-delete the stream and scavenge to remove it too';

/**
 * Where something remains. A `trace` is of an event: its record or its id. `residue` tells that a stream was there, but
 * nothing of what its events held: names in tombstones, metadata, other events and the scavenge database, index entries.
 */
export interface ErasureFinding {
  readonly kind: 'trace' | 'residue';
  readonly file: string;
  readonly offset: number;
  readonly what: string;
}

/** Findings of one kind in one file, which are told as one. */
interface Tally { readonly offset: number; count: number; readonly what: (count: number) => string }

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
    this.#add('trace', record.offset, this.#isTombstoned ? this.#eventText(record) : `event ${number} of '${this.#name}', ${LAST_EVENT}`);
  }

  /** The findings since the last call. */
  take(): ErasureFinding[] {
    const findings = this.#findings;
    if (findings.length > 0) this.#findings = [];
    return findings;
  }

  #add(kind: 'trace' | 'residue', offset: number, what: string): void {
    const count = kind === 'trace' ? ++this.traces : ++this.residues;
    if (count > this.#findingsMax) return;
    const { path, leftover, dataEnd } = this.#facts;
    const where = leftover ?? (offset >= dataEnd ? 'behind the end of the log' : null);
    this.#findings.push({ kind, file: path, offset, what: where === null ? what : `${what}, ${where}` });
  }

  #tally(key: string, offset: number, what: (count: number) => string): void {
    const tally = this.#tallies.get(key);
    if (tally === undefined) this.#tallies.set(key, { offset, count: 1, what });
    else tally.count++;
  }

  async #judge(needle: Needle, offset: number, window: FileWindow): Promise<void> {
    switch (needle.kind) {
      case 'id': return this.#judgeId(needle.id, needle.form, offset, window);
      case 'name': return this.#judgeName(offset + needle.skip, needle.isFree, window);
      case 'table-hash': return this.#judgeTableHash(needle.ofMetastream, offset);
      case 'database-hash':
        if (this.#facts.isDatabase) this.#tally('rows', offset, (count) => `${count} ${count === 1 ? 'place' : 'places'} in the scavenge database with the hash of the stream or its metastream`);
    }
  }

  async #judgeId(id: string, form: 'binary' | 'text', offset: number, window: FileWindow): Promise<void> {
    const found = form === 'binary' ? await recordAtEventId(window, offset) : null;
    if (found === null) return this.#add('trace', offset, `the id of event ${id}, ${form === 'binary' ? 'in binary' : 'as text'}`);
    const { record, stream } = found;
    const number = record.eventNumber === null ? 'of an explicit transaction' : `number ${record.eventNumber}`;
    this.#add('trace', record.offset, `the record of event ${id}, ${number} in stream '${stream}'; a scavenge keeps the last event of a stream, unless the stream is hard-deleted`);
  }

  /** `nameAt`: where the stream's name itself begins. */
  async #judgeName(nameAt: number, isFree: boolean, window: FileWindow): Promise<void> {
    const reach = SQLITE_REACH_BYTES;
    const got = window.peek(nameAt - reach, reach);
    const before = got instanceof Uint8Array ? got : await got;
    if (endsWith(before, this.#ownPrefix)) {
      const record = await recordAtStream(window, nameAt - this.#ownPrefix.length);
      if (record !== null) return this.#judgeRecord(record);
    }
    if (endsWith(before, this.#metaPrefix)) {
      const record = await recordAtStream(window, nameAt - this.#metaPrefix.length);
      if (record !== null) return this.#add('residue', record.offset, record.isTombstone ? `a tombstone of the metadata of '${this.#name}'` : `metadata of '${this.#name}'`);
    }
    if (!isFree) return;
    if (this.#facts.isDatabase) {
      if (contains(before, this.#announced)) this.#tally('database', nameAt, (count) => `the name '${this.#name}', ${times(count)} in the scavenge database`);
      return;
    }
    const after = await window.peek(nameAt + this.#nameBytes.length, 1);
    if (!isNamePart(before[before.length - 1]) && !isNamePart(after[0])) this.#tally('mention', nameAt, (count) => `the name '${this.#name}', ${times(count)} in other data`);
  }

  #judgeRecord(record: StrayRecord): void {
    if (record.isTombstone) {
      this.#isTombstoned = true;
      return this.#add('residue', record.offset, `the tombstone of '${this.#name}'`);
    }
    if (!record.isEvent) return this.#add('residue', record.offset, `a record of an explicit transaction of '${this.#name}' that is no event`);
    const number = record.eventNumber;
    const { path, leftover, dataEnd } = this.#facts;
    if (number === null || leftover !== null || record.offset >= dataEnd || number < (this.#last?.number ?? 0)) return this.#add('trace', record.offset, this.#eventText(record));
    const earlier = this.#last;
    this.#last = { number, record, file: path };
    if (earlier === null) return;
    const facts = this.#facts;
    this.#facts = { ...facts, path: earlier.file, leftover: null, dataEnd: Infinity };
    this.#add('trace', earlier.record.offset, this.#eventText(earlier.record));
    this.#facts = facts;
  }

  #eventText(record: StrayRecord): string {
    return record.eventNumber === null ? `an event of '${this.#name}' in an explicit transaction` : `event ${record.eventNumber} of '${this.#name}'`;
  }

  #judgeTableHash(ofMetastream: boolean, offset: number): void {
    const { table } = this.#facts;
    if (table === null) return;
    const entryAt = offset - HEADER_BYTES - (table.version === 2 ? 4 : 8);
    if (entryAt < 0 || entryAt % table.entryBytes !== 0 || entryAt >= table.entries * table.entryBytes) return;
    const whose = ofMetastream ? 'its metastream' : `'${this.#name}'`;
    this.#tally(`entries of ${whose}`, entryAt + HEADER_BYTES, (count) => `${count} index ${count === 1 ? 'entry' : 'entries'} with the hash of ${whose}`);
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
  return (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122) || byte === 45 || byte === 95 || byte >= 128;
}
