/**
 * The notation in which the tables of scenarios are written:
 *
 *   log := chunk { '|' chunk }    chunk := ['!'] record { ',' record } | '∅' | '='
 *   a0    event 0 of stream a; a0..a3 four of them; a0' another record with the same number
 *   M2(a){mc=1, tb=3, age=60}    event 2 of $$a with that metadata; M2 alone means M2(a); tb=MAX is a soft delete;
 *         age alone is two days
 *   T(a)  tombstone; T32(a) one with the number 2147483647; T(a)#2 one that is transaction 2 by itself;
 *         T(a)+#2 one within transaction 2
 *   SP, SP0, SP{th=5}    scavenge points, numbered in order of the log
 *   tb#1, tp#1, te#1, c#1    begin, data, end and commit of transaction 1; tp#1(begin) data that also begins it;
 *         tb#1($$a) of another stream; 3×tp#1 three
 *   D0(a){mc=1}    event of type $metadata in stream a itself; N1($$a) event of another type, not JSON
 *   @old, @fresh, @cutoff, @cutoff-1s, @25m    when it was written: E - 3 days, E - 1 day, E - 2 days, ...,
 *         25 minutes before E; without a mark later than E
 *   !     before the records of a chunk: they are gone, and their index entries are still there
 */

/** 2022-01-05T00:00:00Z, EffectiveNow of every scavenge point. */
export const E_MS = Date.UTC(2022, 0, 5);
const SECOND = 1_000;
const DAY = 86_400_000;
export const AGE_DEFAULT_S = 172_800;
const CUTOFF_MS = E_MS - AGE_DEFAULT_S * SECOND;

export type RecordKind =
  | 'event'
  | 'metadata'
  | 'metadata-typed'
  | 'not-json'
  | 'tombstone'
  | 'tombstone-32'
  | 'point'
  | 'begin'
  | 'data'
  | 'end'
  | 'commit';

export interface RecordSpec {
  /** As it is written, without braces and marks; in expectations this is all there is. */
  readonly label: string;
  readonly kind: RecordKind;
  readonly stream: string;
  /** Event number; -1 where the record has none of its own. */
  readonly number: number;
  /** Number of the explicit transaction, or null for a record that is committed by itself. */
  readonly transaction: number | null;
  /** The record begins its transaction. */
  readonly begins: boolean;
  /** The record is the whole of its transaction. */
  readonly isWhole: boolean;
  readonly timeMs: number;
  /** Content of the braces. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface ChunkSpec {
  readonly isEmptied: boolean;
  readonly records: readonly RecordSpec[];
}

export function parseLog(text: string): ChunkSpec[] {
  const points = { next: 0 };
  return text.split('|').map((part) => {
    const chunk = part.trim();
    const isEmptied = chunk.startsWith('!');
    return {
      isEmptied,
      records: splitRecords(isEmptied ? chunk.slice(1) : chunk).flatMap((token) => parseRecords(token, points)),
    };
  });
}

/** Labels of each chunk of an expectation. `=` stands for what the log had there, `=` alone for the whole log. */
export function parseExpected(text: string, log: readonly (readonly string[])[]): string[][] {
  if (text.trim() === '=') return log.map((labels) => [...labels]);
  return text.split('|').map((part, chunk) => (part.trim() === '=' ? [...(log[chunk] ?? [])] : parseLabels(part)));
}

/** Labels of a list without chunks. */
export function parseLabels(text: string): string[] {
  return splitRecords(text).flatMap((token) => parseRecords(token, { next: 0 }).map((record) => record.label));
}

/** Commas inside braces separate settings, not records. */
function splitRecords(text: string): string[] {
  const trimmed = text.trim();
  return trimmed === '' || trimmed === '∅' ? [] : trimmed.split(/,(?![^{]*\})/).map((token) => token.trim());
}

const TOKEN = /^(?:(\d+)×)?(.*?)(?:\{(.*)\})?(?:@([^{]+))?(?:\{(.*)\})?$/;

function parseRecords(token: string, points: { next: number }): RecordSpec[] {
  const match = TOKEN.exec(token)!;
  const [, times, body, braces, mark, lateBraces] = match;
  const common = { timeMs: timeOf(mark), settings: settingsOf(braces ?? lateBraces ?? '') };
  const range = /^([a-z]+)(\d+)\.\.([a-z]+)(\d+)$/.exec(body!);
  if (range !== null) {
    const [, stream, from, , to] = range;
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, i) => ({
      ...common,
      ...parseBody(`${stream}${Number(from) + i}`, points)!,
    }));
  }
  return Array.from({ length: Number(times ?? 1) }, () => {
    const record = parseBody(body!, points);
    if (record === null) throw new Error(`"${token}" is no record of the notation.`);
    return { ...common, ...record };
  });
}

type Body = Omit<RecordSpec, 'timeMs' | 'settings'>;

function parseBody(body: string, points: { next: number }): Body | null {
  const record = (kind: RecordKind, stream: string, number: number, more: Partial<Body> = {}): Body => ({
    label: body,
    kind,
    stream,
    number,
    transaction: null,
    begins: false,
    isWhole: false,
    ...more,
  });
  let m = /^([a-z]+)(\d+)'*$/.exec(body);
  if (m !== null) return record('event', m[1]!, Number(m[2]));
  m = /^([MDN])(\d+)(?:\((.+)\))?$/.exec(body);
  if (m !== null) {
    const stream = m[3] ?? 'a';
    const label = `${m[1]}${m[2]}(${stream})`;
    if (m[1] === 'M') return record('metadata', `$$${stream}`, Number(m[2]), { label });
    return record(m[1] === 'D' ? 'metadata-typed' : 'not-json', stream, Number(m[2]), { label });
  }
  m = /^T(32)?\((.+)\)(?:(\+?)#(\d+))?$/.exec(body);
  if (m !== null)
    return record(m[1] === undefined ? 'tombstone' : 'tombstone-32', m[2]!, m[3] === '+' ? -1 : Infinity, {
      transaction: m[4] === undefined ? null : Number(m[4]),
      isWhole: m[3] !== '+',
      begins: m[3] !== '+',
    });
  m = /^SP(\d*)$/.exec(body);
  if (m !== null)
    return record('point', '$scavengePoints', m[1] === '' ? points.next++ : (points.next = Number(m[1]) + 1) - 1);
  m = /^(tb|tp|te|tm|c)#(\d+)(?:\((.+)\))?$/.exec(body);
  if (m === null) return null;
  const kinds: Record<string, RecordKind> = { tb: 'begin', tp: 'data', te: 'end', tm: 'data', c: 'commit' };
  const begins = m[1] === 'tb' || m[3] === 'begin';
  return record(kinds[m[1]!]!, m[3] === undefined || m[3] === 'begin' ? 'a' : m[3], -1, {
    transaction: Number(m[2]),
    begins,
  });
}

function settingsOf(text: string): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const part of text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')) {
    const [key, value] = part.split('=') as [string, string | undefined];
    settings[key] = value ?? '';
  }
  return settings;
}

function timeOf(mark: string | undefined): number {
  if (mark === undefined) return E_MS + 3_600_000;
  if (mark === 'old') return E_MS - 3 * DAY;
  if (mark === 'fresh') return E_MS - DAY;
  const near = /^cutoff(?:([+-]\d+)(s|ms))?$/.exec(mark);
  if (near !== null) return CUTOFF_MS + Number(near[1] ?? 0) * (near[2] === 'ms' ? 1 : SECOND);
  const aged = /^(\d+)m$/.exec(mark);
  if (aged !== null) return E_MS - Number(aged[1]) * 60 * SECOND;
  throw new Error(`"@${mark}" is no time of the notation.`);
}

/** The JSON of a metadata record with these settings. */
export function metadataJson(settings: Readonly<Record<string, string>>): string {
  const members: string[] = [];
  if (settings['mc'] !== undefined) members.push(`"$maxCount":${settings['mc']}`);
  if (settings['tb'] !== undefined)
    members.push(`"$tb":${settings['tb'] === 'MAX' ? '9223372036854775807' : settings['tb']}`);
  if (settings['age'] !== undefined)
    members.push(`"$maxAge":${settings['age'] === '' ? AGE_DEFAULT_S : ageSeconds(settings['age'])}`);
  return `{${members.join(',')}}`;
}

function ageSeconds(text: string): number {
  const minutes = /^(\d+) min$/.exec(text);
  return minutes === null ? Number(text) : Number(minutes[1]) * 60;
}
