import { equalBytes } from '../bytes.ts';
import { isSkuaError, SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { manifestKey, manifestNumberOf, MANIFEST_PREFIX } from './keys.ts';
import { LOADS_MAX, UNDECIDED_WAIT_FIRST_MS, UNDECIDED_WAIT_MAX_MS } from './limits.ts';
import { decodeManifest, encodeManifest } from './manifest-text.ts';
import type { ObjectManifest } from './manifest.ts';

/** Number of the newest manifest: one LIST of one key. Null when there is none. */
export async function newestManifestNumber(objects: ObjectStore): Promise<number | null> {
  const page = await objects.list(MANIFEST_PREFIX, { max: 1 });
  const first = page.objects[0];
  if (first === undefined) return null;
  const number = manifestNumberOf(first.key);
  if (number === null) throw new SkuaError('manifest_invalid', `${objects.place} has the object ${first.key} among its manifests: remove it, nothing of the store has that name.`, { key: first.key });
  return number;
}

/** The newest manifest; null when there is none, and the prefix holds no store. Throws `manifest_invalid`. */
export async function newestManifest(objects: ObjectStore, digests: Digests): Promise<ObjectManifest | null> {
  for (let tries = 0; tries < LOADS_MAX; tries++) {
    const number = await newestManifestNumber(objects);
    if (number === null) return null;
    // An old one may be swept away between the two requests; the newest never is.
    const manifest = await readManifest(objects, number, digests);
    if (manifest !== null) return manifest;
  }
  throw new SkuaError('manifest_invalid', `The newest manifest under ${objects.place} is listed and can't be read: check that the store lists what it holds.`, {});
}

/** Null when there is none with this number (any more). */
export async function readManifest(objects: ObjectStore, number: number, digests: Digests): Promise<ObjectManifest | null> {
  const key = manifestKey(number);
  const bytes = await objects.get(key);
  return bytes === null ? null : decodeManifest(key, number, bytes, digests);
}

/**
 * Puts a manifest in force under its number, unless another took that number: then `lost`, and whoever made it
 * discards its work. When the store does not say what became of it the same bytes are put there again; two manifests never
 * have the same bytes, since the keys of their files are drawn anew. Rejects with `outcome_unknown` after `deadlineMs`.
 */
export async function createManifest(world: { readonly objects: ObjectStore; readonly clock: Clock; readonly digests: Digests }, manifest: ObjectManifest, deadlineMs = 60_000): Promise<'created' | 'lost'> {
  const { objects, clock, digests } = world;
  const key = manifestKey(manifest.number);
  const bytes = encodeManifest(manifest, digests);
  const untilMs = clock.monotonicMs() + deadlineMs;
  let isUndecided = false;
  for (let waitMs = UNDECIDED_WAIT_FIRST_MS; ; waitMs = Math.min(2 * waitMs, UNDECIDED_WAIT_MAX_MS)) {
    try {
      if (await objects.create(key, bytes) === 'created') return 'created';
      const there = await objects.get(key);
      return there !== null && there.length === bytes.length && equalBytes(there, 0, bytes, 0, bytes.length) ? 'created' : 'lost';
    } catch (error) {
      if (!isUndecided && !isSkuaError(error, 'outcome_unknown')) throw error;
      isUndecided = true;
      if (clock.monotonicMs() >= untilMs) throw new SkuaError('outcome_unknown', `It could not be found out whether the manifest ${key} was written: ${objects.place} does not answer.`, { key }, error);
      await clock.sleep(waitMs);
    }
  }
}
