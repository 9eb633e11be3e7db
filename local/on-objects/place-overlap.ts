import * as path from 'node:path';
import type { ObjectPlace } from '../../core/ports/object-store.ts';

/**
 * Whether one of two places lies in the other, or they are the same: what removes the data of a store would remove its backups too. Buckets
 * are told apart by their names alone, since one server may have several addresses.
 */
export function overlap(a: ObjectPlace, b: ObjectPlace): boolean {
  if (a.kind === 'directory' && b.kind === 'directory') return isWithin(a.path, b.path, path.sep) || isWithin(b.path, a.path, path.sep);
  if (a.kind !== 's3' || b.kind !== 's3' || a.bucket !== b.bucket) return false;
  return isWithin(a.prefix, b.prefix, '/') || isWithin(b.prefix, a.prefix, '/');
}

function isWithin(inner: string, outer: string, separator: string): boolean {
  return outer === '' || inner === outer || inner.startsWith(outer.endsWith(separator) ? outer : outer + separator);
}
