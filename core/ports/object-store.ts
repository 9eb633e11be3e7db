import { SkuaError } from '../base/errors.ts';

/**
 * Objects under one prefix of an object store, or under one directory. Keys are relative to it: parts of `A-Z a-z 0-9 .
 * _ -` joined by `/`, at most 512 characters in all; no part is `.` or `..` or has more than 255, the first is not
 * `.tmp`, and no key is the folder of another (`a` beside `a/b`): a directory can't hold both.
 * `core/ports/object-store.ts` checks them.
 *
 * An object is there whole or not at all, and what a call acknowledged is seen by every later call of every process.
 * Calls that may be repeated without harm (`get`, `head`, `list`, `put`, `upload`, `remove`) are repeated by the
 * implementation, within its limits, when the store is busy or a reply is lost; `create` never is, because a repeat
 * can't know its own success.
 *
 * Errors are SkuaErrors: `storage_unreachable`, `bucket_not_found`, `storage_denied`, `wrong_region`, `clock_skewed`,
 * `disk_full`, `storage_throttled`, `io_error` for the rest, and `outcome_unknown` from `create`; `aborted` when the
 * signal ended the call, for `create` only before anything was sent.
 */
export interface ObjectStore {
  /** Where the objects are, for messages: `s3://bucket/prefix`, or a directory. */
  readonly place: string;
  /** The object, or `length` bytes of it from `from` on (fewer at its end); null when there is none. */
  get(key: string, options?: GetOptions): Promise<Uint8Array | null>;
  /** Null when there is none. */
  head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null>;
  /** Creates or replaces a small object: at most OBJECT_PUT_BYTES_MAX. */
  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>;
  /**
   * Creates a small object; `exists`, with nothing changed, when the key is taken. Exactly one of several that create
   * the same key gets `created`. Rejects with `outcome_unknown` when it can't be known whether this call created the
   * object (a conflict that the store did not decide, a failure inside it, a lost reply): a caller that needs to know
   * puts the same bytes there again and then looks.
   */
  create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'>;
  /**
   * As `create`, for an object that can't be removed or replaced before `untilMs`, by the store's own lock (retention
   * in compliance mode), which its bucket must have been made for. Left out where there is no such lock.
   */
  createLocked?(key: string, bytes: Uint8Array, untilMs: number, signal?: AbortSignal): Promise<'created' | 'exists'>;
  /**
   * Creates or replaces an object of any size. `content` gives exactly `sizeBytes` bytes, in pieces of any length,
   * once; a piece may be used again after the next one was asked for.
   */
  upload(key: string, sizeBytes: number, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /**
   * As `upload`, with a key that follows from the content: `name` is asked for it when all of the content has been
   * given, and null drops what was given. Left out where a key must be known before the first byte.
   */
  uploadNamed?(
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
    name: () => Promise<string | null>,
    signal?: AbortSignal,
  ): Promise<void>;
  /**
   * Objects whose key begins with `prefix` and lies behind `after`, ascending by code unit; at most `max` of them (1
   * 000 where it is left out, and at most).
   */
  list(prefix: string, options?: ListOptions): Promise<ObjectPage>;
  /** Removes objects; those that are absent are no error. */
  remove(keys: readonly string[], signal?: AbortSignal): Promise<void>;
  /**
   * Makes the location itself where it is missing, durably: for code that begins a log or a repository there, once.
   * Without that every change rejects with `storage_unreachable` where the location is missing. Left out where a
   * location is not made by the programs that use it.
   */
  begin?(): Promise<void>;
  /**
   * A directory may be renamed or unmounted, and another one lie where it was. Where that looks so, `why` is asked,
   * with what lies there now, before anything is answered: null means that it is what the caller knows, and not older;
   * else why it is not, and every call rejects with `storage_unreachable` until the right directory is back. Where that
   * can't be decided, the directory is refused. The watch ends with the function that is returned. Left out where a
   * location can't be exchanged.
   */
  recognise?(why: WhyAnother): () => void;
  close(): Promise<void>;
}

export type WhyAnother = (there: ObjectStore) => Promise<string | null>;

export interface GetOptions {
  readonly from?: number;
  readonly length?: number;
  /**
   * Memory of at least `length` bytes, which an implementation may fill and answer a view of: new memory for every one
   * of many long reads keeps a process busy with getting and giving back pages. Until the call has ended nothing else
   * may use that memory.
   */
  readonly into?: Uint8Array;
  readonly signal?: AbortSignal;
}

export interface ListOptions {
  readonly after?: string;
  readonly max?: number;
  readonly signal?: AbortSignal;
}

export interface ObjectInfo {
  readonly key: string;
  readonly sizeBytes: number;
  /** By the clock of the store: milliseconds since 1970. */
  readonly modifiedMs: number;
}

export interface ObjectPage {
  readonly objects: readonly ObjectInfo[];
  /** There are more behind the last one. */
  readonly isMore: boolean;
}

/** Names an object store, so that another thread can open it too; structured-cloneable and without secrets. */
export type ObjectLocation =
  | { readonly kind: 'directory'; readonly path: string }
  | {
      readonly kind: 's3';
      readonly bucket: string;
      readonly prefix: string;
      readonly endpoint: string | null;
      readonly region: string | null;
    };

export const OBJECT_PUT_BYTES_MAX = 67_108_864;
export const OBJECT_LIST_MAX = 1_000;

/** All objects with the prefix, page after page. */
export async function* listAll(
  objects: ObjectStore,
  prefix: string,
  options: ListOptions = {},
): AsyncGenerator<ObjectInfo, void, undefined> {
  let { after } = options;
  for (;;) {
    const page = await objects.list(prefix, { ...options, ...(after !== undefined && { after }) });
    yield* page.objects;
    const last = page.objects.at(-1);
    if (!page.isMore || last === undefined) return;
    after = last.key;
  }
}

/** An upload of at most this many bytes is one request. */
export const SINGLE_UPLOAD_BYTES_MAX = 16_777_216;
/** Parts that an upload may have, as S3 has it. */
export const UPLOAD_PARTS_MAX = 10_000;
/** Bytes of a part, except for uploads that would have too many of them. */
const PART_BYTES = 8_388_608;

/** Bytes of each part but the last: whole MiB. */
export function uploadPartBytes(sizeBytes: number): number {
  return Math.max(PART_BYTES, Math.ceil(sizeBytes / UPLOAD_PARTS_MAX / 1_048_576) * 1_048_576);
}

/** Characters of a key, all parts together. */
export const OBJECT_KEY_LENGTH_MAX = 512;
/** Characters of one part of a key: the longest name that file systems take. */
export const OBJECT_KEY_PART_LENGTH_MAX = 255;

const PART = /^[A-Za-z0-9._-]+$/;
const PREFIX = /^[A-Za-z0-9._/-]*$/;
/** Where a directory keeps objects that are being written: the first part of no key. */
export const TEMPORARY_FOLDER = '.tmp';

/**
 * Throws `io_error` for what is no key. Keys come from our own code, so a bad one is a defect; every implementation
 * refuses the same ones, so that what works in memory works in a directory and a bucket too.
 */
export function checkKey(key: string): void {
  if (!isKey(key)) throw badKey(key);
}

export function isKey(text: string): boolean {
  if (text.length > OBJECT_KEY_LENGTH_MAX) return false;
  const parts = text.split('/');
  return parts[0] !== TEMPORARY_FOLDER && parts.every(isPart);
}

function isPart(part: string): boolean {
  return part !== '.' && part !== '..' && part.length <= OBJECT_KEY_PART_LENGTH_MAX && PART.test(part);
}

/** Throws `io_error` for what no key can begin with. The empty prefix is that of all keys. */
export function checkPrefix(prefix: string): void {
  if (prefix.length > OBJECT_KEY_LENGTH_MAX || !PREFIX.test(prefix)) throw badKey(prefix);
  const parts = prefix.split('/').slice(0, -1);
  if (parts.some((part) => part === '' || part === '.' || part === '..')) throw badKey(prefix);
}

function badKey(key: string): SkuaError {
  return new SkuaError(
    'io_error',
    `"${key.slice(0, OBJECT_KEY_LENGTH_MAX)}" is not a key of an object: this is a defect.`,
    { key },
  );
}

/** Throws `io_error` for an object that has to go through `upload`. */
export function checkSmall(key: string, bytes: Uint8Array): void {
  if (bytes.length > OBJECT_PUT_BYTES_MAX) {
    throw new SkuaError(
      'io_error',
      `The object ${key} has ${bytes.length} bytes, and at most ${OBJECT_PUT_BYTES_MAX} are written at once: this is a defect, upload it instead.`,
      { key, limit: OBJECT_PUT_BYTES_MAX },
    );
  }
}

export function throwIfAborted(signal: AbortSignal | undefined, key: string): void {
  if (signal?.aborted === true) throw objectAborted(key);
}

export function objectAborted(key: string): SkuaError {
  return new SkuaError('aborted', `The work on object ${key} was cancelled.`, { key });
}

/** Content that is not as long as was announced: nothing is stored. */
export function wrongSize(key: string, expected: number, actual: number): SkuaError {
  return new SkuaError(
    'io_error',
    `The object ${key} was announced with ${expected} bytes, and its content has ${actual > expected ? 'more' : `only ${actual}`}: the source changed while it was read. Nothing was stored; try again.`,
    { key, expected, actual },
  );
}
