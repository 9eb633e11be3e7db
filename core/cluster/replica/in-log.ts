import { SkuaError } from '../../base/errors.ts';
import type { ObjectWorld } from '../../shared-log/api.ts';
import { type LastCommit, whyNotInLog } from '../../shared-log/head/head.ts';
import type { ObjectManifest } from '../../shared-log/format/manifest.ts';

/**
 * Looks whether the last commit that a copy has taken in still is what the log has under its number, or lies below the boundary of a log that reaches
 * at least as far. Throws `log_diverged`.
 */
export async function checkInLog({ objects, digests }: Pick<ObjectWorld, 'objects' | 'digests'>, manifest: ObjectManifest, last: LastCommit): Promise<void> {
  const why = await whyNotInLog(objects, digests, manifest, last);
  if (why !== null) throw new SkuaError('log_diverged', `The replica and the log at ${objects.place} diverge at commit ${last.number}: ${why}. Find out which of the two was restored or replaced; \`skua cluster reset\` starts a new log from a replica.`, { number: last.number, place: objects.place });
}
