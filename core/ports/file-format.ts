import { type ErrorCode, isSkuaError, SkuaError } from '../base/errors.ts';
import { isNestedAtMost } from '../base/json-scanner.ts';
import { decodeText } from '../base/text.ts';
import type { Compression } from './compression.ts';
import type { Digests } from './digests.ts';
import type { Keys } from './keys.ts';
import type { ObjectStore } from './object-store.ts';
import type { StorageFile } from './storage.ts';

/**
 * A kind of file, or object: how it is recognised, and what is in it, record by record, for a program that only looks
 * (`skua inspect`). An area has the kinds that are its own in a `format.ts`, made of the readers with which the store
 * reads them. The readers read as far as a damaged file goes, and report where that ends.
 */
export interface FileFormat {
  /** A word for programs, which stays. */
  readonly kind: string;
  /** In words. */
  readonly title: string;
  /**
   * Its names, with the folders that belong to them: they match the end of a path, from a slash or its beginning on.
   */
  readonly names: readonly RegExp[];
  /** Names that are too common to show a kind, where the beginning of the file shows none. */
  readonly lastNames?: readonly RegExp[];
  /** Whether a file of this length that begins so is one, whatever its name. */
  readonly begins?: (head: Uint8Array, sizeBytes: number) => boolean;
  /**
   * Damage that ends the walk is thrown, what does not end it is a part. The bytes of a record are good until the next
   * part.
   */
  parts(looked: Inspected): AsyncGenerator<Part, void, undefined>;
}

/** Bytes of the beginning by which a kind is recognised. */
export const HEAD_BYTES = 256;

export interface Inspected {
  /** Its name in its place, with the folders that belong to it. */
  readonly key: string;
  readonly file: StorageFile;
  /** Where it is on this machine; null for an object. */
  readonly localPath: string | null;
  /** The record that alone is wanted: a reader that finds it faster than by the walk gives it first. */
  readonly at: RecordPosition | null;
  readonly world: FormatWorld;
}

/** A position in the log, or an offset in the file. */
export interface RecordPosition {
  readonly by: 'position' | 'offset';
  readonly value: number;
}

/** What a kind may look at beside the file itself. */
export interface FormatWorld {
  readonly digests: Digests;
  readonly keys: Keys;
  readonly compression: Compression;
  /** What lies in the same place. */
  readonly objects: ObjectStore;
  /** Of an encrypted repository; null where none was given. */
  readonly repositoryKey: Uint8Array | null;
  /** A file of the same place, to be closed by the caller; null where there is none. */
  open(key: string): Promise<StorageFile | null>;
  /** The kind of content that has this name, or begins as a file of a kind; null for neither. */
  formatOf(key: string, file: StorageFile): Promise<FileFormat | null>;
}

export type Part = Section | RecordPart | Damage | Note;

/** Facts that stand once in the file. */
export interface Section {
  readonly kind: 'section';
  readonly title: string;
  readonly fields: Fields;
}

export interface RecordPart {
  readonly kind: 'record';
  /** Records of one group have the same fields. */
  readonly group: string;
  /** In the file; null where it has no place of its own. */
  readonly offset: number | null;
  /** In the log. */
  readonly position?: number;
  /** Asked for only where the record is shown. */
  describe(): Description;
}

export interface Description {
  readonly fields: Fields;
  /** What is shown of a single record and to programs, and does not fit a line. */
  readonly more?: Fields;
}

/** Damage behind which the walk goes on. */
export interface Damage {
  readonly kind: 'damage';
  readonly offset: number | null;
  readonly error: SkuaError;
}

export interface Note {
  readonly kind: 'note';
  readonly message: string;
}

/**
 * In the order in which they are shown. Names say the unit: `...Bytes`, `...Ms`; positions in the log and offsets in a
 * file end in `osition` and `ffset`.
 */
export type Fields = Readonly<Record<string, Value>>;
export type Value = string | number | boolean | null | Uint8Array | Payload | readonly string[];

/** Bytes that a client has written, of an event of this stream: they may hold secrets. */
export class Payload {
  readonly stream: string;
  readonly bytes: Uint8Array;

  constructor(stream: string, bytes: Uint8Array) {
    this.stream = stream;
    this.bytes = bytes;
  }
}

export function section(title: string, fields: Fields): Section {
  return { kind: 'section', title, fields };
}

export function note(message: string): Note {
  return { kind: 'note', message };
}

/**
 * What was thrown, where it reports damage; else it is thrown on, as an error of the storage is, or a format that is
 * too new. `offset` where the error names none.
 */
export function damageOf(error: unknown, offset: number | null): Damage {
  if (!isSkuaError(error) || !CONTENT.has(error.code)) throw error;
  const { offset: told } = error.data;
  return { kind: 'damage', offset: typeof told === 'number' ? told : offset, error };
}

/** Codes of damage. */
const CONTENT: ReadonlySet<string> = new Set([
  'log_corrupt',
  'checkpoint_corrupt',
  'index_corrupt',
  'manifest_invalid',
  'repository_damaged',
  'proof_damaged',
  'proof_invalid',
  'scavenge_state_invalid',
  'bad_json',
]);

/** Of a document that is read whole. */
export const DOCUMENT_BYTES_MAX = 67_108_864;

/** All bytes of a document; of a longer file as many as one may have. */
export async function wholeOf(file: StorageFile): Promise<Uint8Array> {
  return (await file.read(0, Math.min(file.size, DOCUMENT_BYTES_MAX))).slice();
}

/** Bytes of a line that are shown of a text that can't be understood. */
const LINE_BYTES_MAX = 4_096;
const LINE_END = 10;

/** The lines of a text as they stand. */
export function* lineParts(bytes: Uint8Array): Generator<Part> {
  for (let at = 0; at < bytes.length;) {
    const found = bytes.indexOf(LINE_END, at);
    const end = found < 0 ? bytes.length : found;
    const offset = at;
    yield {
      kind: 'record',
      group: 'lines',
      offset,
      describe: () => ({
        fields: {
          lengthBytes: end - offset,
          text: decodeText(bytes.subarray(offset, Math.min(end, offset + LINE_BYTES_MAX))),
        },
      }),
    };
    at = end + 1;
  }
}

/** Brackets that are open at once in documents of ours, and some more. */
const DEPTH_MAX = 32;

/** The value of a text of JSON; undefined for another one, and for one that is nested deeper than any of ours. */
export function jsonOf(bytes: Uint8Array): unknown {
  try {
    const text = decodeText(bytes);
    return isNestedAtMost(text, DEPTH_MAX) ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** A small object of JSON without a checksum. */
export async function* jsonParts({ file, key }: Inspected, code: ErrorCode): AsyncGenerator<Part, void, undefined> {
  const bytes = await wholeOf(file);
  const value = jsonOf(bytes);
  if (value !== undefined) yield* documentParts(value);
  else {
    yield { kind: 'damage', offset: 0, error: new SkuaError(code, `${key} is not JSON.`, { key, offset: 0 }) };
    yield* lineParts(bytes);
  }
}

/** A document of JSON: its own members as facts, lists as records. */
export function* documentParts(value: unknown, title = 'document', prefix = ''): Generator<Part> {
  if (typeof value !== 'object' || value === null) {
    yield section(title, { value: plain(value) });
    return;
  }
  if (Array.isArray(value)) {
    yield* listParts(value, title);
    return;
  }
  const nested = Object.entries(value).filter(([, member]) => typeof member === 'object' && member !== null);
  yield section(
    title,
    Object.fromEntries(
      Object.entries(value)
        .filter(([, member]) => typeof member !== 'object' || member === null)
        .map(([name, member]) => [name, plain(member)]),
    ),
  );
  for (const [name, member] of nested) yield* documentParts(member, prefix + name, `${prefix}${name}.`);
}

function* listParts(items: readonly unknown[], group: string): Generator<Part> {
  for (const item of items) {
    yield {
      kind: 'record',
      group,
      offset: null,
      ...positionOf(item),
      describe: () => ({ fields: typeof item === 'object' && item !== null ? flat(item) : { value: plain(item) } }),
    };
  }
}

/** Of what speaks of log from one position to another. */
function positionOf(item: unknown): { readonly position?: number } {
  const { position, from } = (typeof item === 'object' && item !== null ? item : {}) as {
    readonly position?: unknown;
    readonly from?: unknown;
  };
  const value = position ?? from;
  return typeof value === 'number' ? { position: value } : {};
}

function flat(item: object): Fields {
  return Object.fromEntries(
    Object.entries(item).map(([name, member]) => [
      name,
      typeof member === 'object' && member !== null ? JSON.stringify(member) : plain(member),
    ]),
  );
}

function plain(value: unknown): Value {
  return typeof value === 'number' || typeof value === 'boolean' || value === null ? value : String(value);
}
