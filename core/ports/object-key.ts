import { SkuaError } from '../errors.ts';
import { OBJECT_PUT_BYTES_MAX } from './object-store.ts';

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
  return new SkuaError('io_error', `"${key.slice(0, OBJECT_KEY_LENGTH_MAX)}" is not a key of an object: this is a defect.`, { key });
}

/** Throws `io_error` for an object that has to go through `upload`. */
export function checkSmall(key: string, bytes: Uint8Array): void {
  if (bytes.length > OBJECT_PUT_BYTES_MAX) {
    throw new SkuaError('io_error', `The object ${key} has ${bytes.length} bytes, and at most ${OBJECT_PUT_BYTES_MAX} are written at once: this is a defect, upload it instead.`, { key, limit: OBJECT_PUT_BYTES_MAX });
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
  return new SkuaError('io_error', `The object ${key} was announced with ${expected} bytes, and its content has ${actual > expected ? 'more' : `only ${actual}`}: the source changed while it was read. Nothing was stored; try again.`, { key, expected, actual });
}
