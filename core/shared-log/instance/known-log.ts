import { equalBytes } from '../../base/bytes.ts';
import type { Digests } from '../../ports/digests.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { type Commit, decodeCommitObject } from '../format/commit-object.ts';
import { commitKey } from '../format/keys.ts';
import { newestManifest, type ObjectManifest } from '../format/manifest.ts';

export type LastCommit = Pick<Commit, 'number' | 'end' | 'nonce'>;

/** What a process knows of a log: its newest manifest and its last commit, null where that has only been seen in files. */
export interface KnownLog {
  readonly manifest: Pick<ObjectManifest, 'storeId' | 'number'>;
  readonly last: LastCommit | null;
}

/**
 * Why what lies in a store is not the log that is known, or is an older copy of it; null where it is that log. `known` is asked last: what is committed
 * while the store is read counts.
 */
export async function whyAnotherLog(there: ObjectStore, digests: Digests, known: () => KnownLog): Promise<string | null> {
  const newest = await newestManifest(there, digests);
  const { manifest, last } = known();
  if (newest === null) return `it holds no log, and the log ${manifest.storeId} was in use`;
  if (newest.storeId !== manifest.storeId) return `it holds the log ${newest.storeId}, and the log ${manifest.storeId} was in use`;
  if (newest.number < manifest.number) return `it is an older copy: its newest manifest is ${newest.number}, and ${manifest.number} is known`;
  const why = last === null ? null : await whyNotInLog(there, digests, newest, last);
  return why === null ? null : `it is an older copy, or went another way: commit ${last!.number} was seen, and ${why}`;
}

/** Why a commit that was in the log is not in it as far as this manifest reaches, or behind it: a store that was put back to an older state would let numbers be won again. Null where it is. */
export async function whyNotInLog(objects: ObjectStore, digests: Digests, manifest: ObjectManifest, last: LastCommit): Promise<string | null> {
  if (manifest.boundary > last.number) return manifest.logEnd >= last.end ? null : `its files end at ${manifest.logEnd}, and this commit at ${last.end}`;
  const key = commitKey(last.number);
  const bytes = await objects.get(key);
  if (bytes === null) return 'it has no such commit';
  const { commit } = decodeCommitObject(key, last.number, bytes, digests);
  return equalBytes(commit.nonce, 0, last.nonce, 0, 16) ? null : 'it has another commit under that number';
}
