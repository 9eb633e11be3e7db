import { equalBytes } from '../../bytes.ts';
import { SkuaError } from '../../errors.ts';
import type { ObjectWorld } from '../../object-log/api.ts';
import { type Commit, decodeCommitObject } from '../../object-log/commit-object.ts';
import { commitKey } from '../../object-log/keys.ts';
import type { ObjectManifest } from '../../object-log/manifest.ts';

/**
 * Looks whether the last commit that a copy has taken in still is what the log has under its number, or lies below the boundary of a log that reaches
 * at least as far: a bucket that was put back to an older state would let its numbers be won again. Throws `log_diverged`.
 */
export async function checkInLog({ objects, digests }: Pick<ObjectWorld, 'objects' | 'digests'>, manifest: ObjectManifest, last: Pick<Commit, 'number' | 'end' | 'nonce'>): Promise<void> {
  if (manifest.boundary > last.number) {
    if (manifest.logEnd >= last.end) return;
    throw diverged(objects.place, last, `its files end at ${manifest.logEnd}, and this commit of the copy at ${last.end}`);
  }
  const key = commitKey(last.number);
  const bytes = await objects.get(key);
  if (bytes === null) throw diverged(objects.place, last, 'it has no such commit');
  const { commit } = decodeCommitObject(key, last.number, bytes, digests);
  if (!equalBytes(commit.nonce, 0, last.nonce, 0, 16)) throw diverged(objects.place, last, 'it has another commit under that number');
}

function diverged(place: string, { number }: Pick<Commit, 'number'>, why: string): SkuaError {
  return new SkuaError('log_diverged', `The copy and the log at ${place} have gone apart at commit ${number}: ${why}. Look which of the two was restored or replaced; \`skua cluster reset\` begins a new log from a copy.`, { number, place });
}
