import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { isKey } from '../../core/ports/object-store.ts';
import type { ObjectLocation, ObjectStore } from '../../core/ports/object-store.ts';
import { withoutTrailing } from '../../core/base/text.ts';
import type { S3ObjectsOptions } from '../s3/s3-objects.ts';
import { DirectoryObjects } from './directory-objects.ts';

interface OpenObjectsOptions {
  /** Applies to buckets only. */
  readonly s3?: S3ObjectsOptions;
  /** Applies to directories only: see DirectoryObjectsOptions. */
  readonly isBlocking?: boolean;
}

const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/;

/** Directory buckets of S3 (Express One Zone), and their access points. */
const DIRECTORY_BUCKET = /--xa?-s3$/;

/**
 * Opens an object store. Nothing is asked of it yet, and a directory is made at the first write; the S3 SDK is loaded
 * only for a bucket.
 */
export async function openObjects(location: ObjectLocation, options: OpenObjectsOptions = {}): Promise<ObjectStore> {
  if (location.kind === 'directory')
    return new DirectoryObjects({ root: location.path, isBlocking: options.isBlocking ?? false });
  const { openS3 } = await import('../s3/s3-objects.ts');
  return openS3(location, options.s3);
}

/** Reads `s3://bucket/prefix` or the path of a directory. Throws `bad_option`. */
export function parseLocation(
  text: string,
  s3: { readonly endpoint?: string | null; readonly region?: string | null } = {},
): ObjectLocation {
  if (text === '') throw badLocation(text, 'it is empty');
  if (namesNoBucketRightly(text))
    throw badLocation(text, 'other tools name buckets so; a server is an option of its own');
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) {
    if (text.includes('\0')) throw badLocation(text, 'it has a character that is not allowed in paths');
    return { kind: 'directory', path: path.resolve(text) };
  }
  if (scheme !== 's3') throw badLocation(text, `"${scheme}" is not known`);
  const [bucket = '', ...rest] = text.slice('s3://'.length).split('/');
  if (!BUCKET.test(bucket))
    throw badLocation(text, bucket === '' ? 'the bucket is missing' : `"${bucket}" is not a bucket name`);
  if (DIRECTORY_BUCKET.test(bucket))
    throw new SkuaError(
      'bad_option',
      `"${text}" is a directory bucket (S3 Express One Zone), which lists its objects in no order, and Skua needs them in that of their keys. Give a general purpose bucket.`,
      { value: text },
    );
  const prefix = withoutTrailing(rest.join('/'), '/');
  if (prefix !== '' && (!isKey(prefix) || prefix.length > PREFIX_LENGTH_MAX)) {
    throw badLocation(
      text,
      `the prefix may have up to ${PREFIX_LENGTH_MAX} letters, digits and the characters . _ - in parts joined by single slashes`,
    );
  }
  return { kind: 's3', bucket, prefix, endpoint: checkEndpoint(s3.endpoint ?? null), region: s3.region ?? null };
}

/**
 * Whether a text begins with `s3:` but not with `s3://`, as restic has it (`s3:https://server/bucket`). It would be the
 * name of a directory here, and nothing of it would be in a bucket.
 */
function namesNoBucketRightly(text: string): boolean {
  return /^s3:(?!\/\/)/i.test(text);
}

/** Characters: what a key of S3 may have, 1 024, less the longest key below it. */
const PREFIX_LENGTH_MAX = 500;

function checkEndpoint(endpoint: string | null): string | null {
  if (endpoint === null) return null;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (
    url === null ||
    (url.protocol !== 'http:' && url.protocol !== 'https:') ||
    url.username !== '' ||
    url.password !== ''
  ) {
    throw new SkuaError(
      'bad_option',
      'The S3 endpoint must be a URL such as https://s3.example.com or http://127.0.0.1:9000, without credentials.',
      { option: 's3-endpoint' },
    );
  }
  return endpoint;
}

function badLocation(text: string, why: string): SkuaError {
  return new SkuaError(
    'bad_option',
    `"${text}" is not an object storage location: ${why}. Give a directory, or s3://bucket/prefix.`,
    { value: text },
  );
}

/**
 * Whether one of two places lies in the other, or they are the same: what removes the data of a store would remove its
 * backups too. Buckets are distinguished by their names alone, since one server may have several addresses.
 */
export function overlap(a: ObjectLocation, b: ObjectLocation): boolean {
  if (a.kind === 'directory' && b.kind === 'directory')
    return isWithin(a.path, b.path, path.sep) || isWithin(b.path, a.path, path.sep);
  if (a.kind !== 's3' || b.kind !== 's3' || a.bucket !== b.bucket) return false;
  return isWithin(a.prefix, b.prefix, '/') || isWithin(b.prefix, a.prefix, '/');
}

function isWithin(inner: string, outer: string, separator: string): boolean {
  return outer === '' || inner === outer || inner.startsWith(outer.endsWith(separator) ? outer : outer + separator);
}
