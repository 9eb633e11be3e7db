import {
  type Damage,
  type Description,
  type Fields,
  Payload,
  type RecordPart,
  type Value,
} from '../../core/ports/file-format.ts';
import { withoutSecrets } from '../../core/security/format.ts';
import { toHex } from '../../core/base/hex.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { coloursFor, line, shown, tableLines } from '../../infra/runtime/io.ts';
import type { Column, Io } from '../../infra/runtime/io.ts';
import { utf8Text } from '../cli/input.ts';
import { bytesText } from '../cli/progress.ts';

/** Lines of a table that are put together before they are written: so wide are its columns. */
const ROWS_AT_ONCE = 100;
/**
 * Characters of a cell of a list, and bytes of what a client has written in a record that stands alone, unless all of
 * it is asked for.
 */
const CELL_LENGTH_MAX = 64;
const PAYLOAD_BYTES_MAX = 4_096;
const NOT_SHOWN = '(not shown: it may hold secrets)';
/** 2^63 - 1, for which TOMBSTONE stands, as the value of a member. In a text its quote would be escaped. */
const TOMBSTONE_VALUE = /(?<=[^\\]":)9007199254740991\b/g;

export interface PrintOptions {
  readonly json: boolean;
  /** Show what clients have written as a whole. */
  readonly data: boolean;
}

/** Writes what is found in a file, as lines of JSON or for people. */
export class Printer {
  readonly #io: Io;
  readonly #wish: PrintOptions;
  #group = '';
  #rows: (readonly string[])[] = [];
  #columns: Column[] = [];
  /** Lines of the table end in what clients have written, and are cut to the width of a terminal. */
  #isOfPayloads = false;

  constructor(io: Io, wanted: PrintOptions) {
    this.#io = io;
    this.#wish = wanted;
  }

  /** A line of JSON; nothing where people read. */
  object(value: object): void {
    if (this.#wish.json)
      line(this.#io.stdout, JSON.stringify(value).replaceAll(TOMBSTONE_VALUE, '9223372036854775807'));
  }

  /** A line for people; nothing where programs read. */
  text(text = ''): void {
    if (this.#wish.json) return;
    this.flush();
    line(this.#io.stdout, text);
  }

  section(title: string, fields: Fields): void {
    this.object({ kind: 'section', title, fields: jsonOf(fields, true) });
    if (this.#wish.json) return;
    const { bold } = coloursFor(this.#io.stdout, this.#io.env);
    this.text();
    this.text(bold(shown(title)));
    this.#facts(fields);
  }

  note(message: string): void {
    this.object({ kind: 'note', message });
    this.text(shown(message));
  }

  damage({ offset, error }: Damage): void {
    this.object({ kind: 'damage', offset, code: error.code, message: error.message });
    const { red } = coloursFor(this.#io.stdout, this.#io.env);
    this.text(
      `${red('damaged')} ${offset === null ? '' : `at offset ${placeText(offset)}, `}${error.code}: ${shown(error.message)}`,
    );
  }

  /** A record of a list. */
  row(record: RecordPart): void {
    const { fields, more = {} } = record.describe();
    if (this.#wish.json) {
      this.object(this.#document(record, { fields, more }));
      return;
    }
    const places = {
      ...(record.position !== undefined && !('position' in fields) && { position: record.position }),
      ...(record.offset !== null && { offset: record.offset }),
    };
    const cells: Fields = { ...places, ...fields };
    const group = `${record.group} ${Object.keys(cells).join(' ')}`;
    if (group !== this.#group) {
      this.flush();
      this.#group = group;
      this.#isOfPayloads = false;
      this.#columns = Object.keys(cells).map((name) => ({ title: wordsOf(name), align: 'left' }));
      this.text();
      this.text(coloursFor(this.#io.stdout, this.#io.env).bold(record.group));
    }
    for (const [i, [name, value]] of Object.entries(cells).entries())
      if (typeof value === 'number' && !name.endsWith('Ms'))
        this.#columns[i] = { title: this.#columns[i]!.title, align: 'right' };
    if (Object.values(cells).at(-1) instanceof Payload) this.#isOfPayloads = true;
    this.#rows.push(Object.entries(cells).map(([name, value]) => this.#cell(name, value)));
    if (this.#rows.length === ROWS_AT_ONCE) this.flush();
  }

  /** A record by itself, with all that is known of it. */
  whole(record: RecordPart): void {
    const description = record.describe();
    if (this.#wish.json) {
      this.object(this.#document(record, description));
      return;
    }
    this.text();
    this.text(coloursFor(this.#io.stdout, this.#io.env).bold(`one of the ${record.group}`));
    this.#facts({
      ...(record.position !== undefined && { position: record.position }),
      ...(record.offset !== null && { offset: record.offset }),
      ...description.fields,
      ...description.more,
    });
  }

  /** Writes the lines that wait. */
  flush(): void {
    const rows = this.#rows;
    this.#rows = [];
    if (rows.length === 0) return;
    const { isTTY, columns = Infinity } = this.#io.stdout;
    const width = isTTY === true && this.#isOfPayloads && !this.#wish.data ? columns : Infinity;
    for (const each of tableLines(this.#columns, rows))
      line(this.#io.stdout, `  ${each}`.slice(0, width).toWellFormed());
  }

  #document({ group, offset, position }: RecordPart, { fields, more = {} }: Description): object {
    return {
      kind: 'record',
      group,
      ...(position !== undefined && { position }),
      ...(offset !== null && { offset }),
      fields: { ...jsonOf(fields, this.#wish.data), ...jsonOf(more, this.#wish.data) },
    };
  }

  #facts(fields: Fields): void {
    const entries = Object.entries(fields).map(([name, value]) => [wordsOf(name), this.#fact(name, value)] as const);
    const width = Math.max(0, ...entries.map(([name]) => name.length));
    for (const [name, value] of entries) this.text(`  ${name.padEnd(width)}  ${value}`);
  }

  /** On a line of its own. */
  #fact(name: string, value: Value): string {
    if (value instanceof Payload) return shown(payloadText(value, this.#wish.data ? Infinity : PAYLOAD_BYTES_MAX));
    if (typeof value === 'number' && /[pP]osition$|[oO]ffset$/.test(name)) return placeText(value);
    if (typeof value === 'number' && name.endsWith('Bytes'))
      return value < 1_024 ? `${value} bytes` : `${value} bytes (${bytesText(value)})`;
    return shown(plainText(name, value));
  }

  /** In a column. */
  #cell(name: string, value: Value): string {
    if (name === 'offset') return hexText(value as number);
    const text =
      value instanceof Payload
        ? payloadText(value, this.#wish.data ? Infinity : CELL_LENGTH_MAX)
        : plainText(name, value);
    const isLong =
      text.length > CELL_LENGTH_MAX &&
      !this.#wish.data &&
      !/^[0-9a-f/-]+$/.test(text) &&
      !text.startsWith('files/') &&
      !text.startsWith('index/');
    return isLong ? `${text.slice(0, CELL_LENGTH_MAX).toWellFormed()}…` : text;
  }
}

/** `chunkSizeBytes` as `chunk size`, `dataBytes` as `data size`. */
function wordsOf(name: string): string {
  if (name === 'lengthBytes') return 'bytes';
  return name
    .replace(/(?<=[a-z])Ms$/, '')
    .replace(/(?<=[sS]ize)Bytes$/, '')
    .replace(/Bytes$/, 'Size')
    .replace(/(?<=[a-z\d])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** A position or an offset: decimal and hexadecimal. */
function placeText(value: number): string {
  return value < 0 ? String(value) : `${value} (${hexText(value)})`;
}

function hexText(value: number): string {
  return `0x${value.toString(16)}`;
}

function plainText(name: string, value: Value): string {
  if (value === null) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value instanceof Uint8Array) return toHex(value);
  if (typeof value === 'string') return value;
  if (typeof value !== 'number') return Array.isArray(value) ? value.join(' ') : '';
  if (name.endsWith('Ms') && Number.isFinite(value) && Math.abs(value) < DATE_MS_MAX)
    return new Date(value).toISOString();
  return value === TOMBSTONE ? '9223372036854775807' : String(value);
}

/** Of the latest moment that has a text. */
const DATE_MS_MAX = 8_640_000_000_000_000;

/** Text where it is text, else hexadecimal digits. */
function payloadText(payload: Payload, bytesMax: number): string {
  const bytes = withoutSecrets(payload.stream, payload.bytes);
  if (bytes === null) return NOT_SHOWN;
  const isText = utf8Text(bytes) !== null;
  const cut = bytes.subarray(0, isText ? bytesMax : bytesMax / 2);
  const text = !isText ? toHex(cut) : new TextDecoder().decode(cut, { stream: true });
  return cut.length < bytes.length ? `${text}… (${bytes.length} bytes)` : text;
}

function jsonOf(fields: Fields, isWhole: boolean): object {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (!(value instanceof Payload)) out[name] = value instanceof Uint8Array ? toHex(value) : value;
    else {
      const bytes = withoutSecrets(value.stream, value.bytes);
      if (bytes === null) out[`${name}NotShown`] = true;
      else Object.assign(out, payloadJson(name, bytes, isWhole ? Infinity : PAYLOAD_BYTES_MAX));
    }
  }
  return out;
}

function payloadJson(name: string, bytes: Uint8Array, bytesMax: number): object {
  const cut = bytes.subarray(0, bytesMax);
  const isCut = cut.length < bytes.length && { [`${name}IsCut`]: true };
  return utf8Text(bytes) === null
    ? { [`${name}Base64`]: Buffer.from(cut).toString('base64'), ...isCut }
    : { [name]: new TextDecoder().decode(cut, { stream: true }), ...isCut };
}
