import { listAll, type ObjectInfo, type ObjectStore } from '../../ports/object-store.ts';
import type { ObjectWorld } from '../api.ts';
import { commitKey, commitNumberOf, FAILURES_PREFIX, FILES_PREFIX, LOG_PREFIX, manifestNumberOf, MANIFEST_PREFIX } from '../keys.ts';
import { keysOf, type ObjectManifest, readManifest } from '../manifest.ts';
import { CONTROL_PREFIX, isOldNote } from './control.ts';

/** Objects removed by one tick at most; the rest goes with the next. */
const REMOVE_MAX = 10_000;
/** Keys in one request. */
const BATCH_KEYS = 1_000;
/** Manifests that stay, however old they are. */
const MANIFESTS_KEPT = 4;
/** Objects that no manifest names, old notes and old failures of logins are looked for every this many manifests. */
export const LEFTOVERS_EVERY = 64;

/**
 * Which objects nobody reads any more. A manifest that was written `removeAfterMs` before another one is so old that
 * everybody has taken in a newer one: what it had dropped by then may go, and the commits before its boundary. Both times are those that the
 * store gave the manifests, so no clock of a process counts.
 */
interface Horizon {
  /** The newest manifest that is old enough; null when there is none. */
  readonly old: ObjectManifest | null;
  /** Keys of manifests before it. */
  readonly manifests: readonly string[];
}

/** All manifests, the newest first. */
export async function listManifests(objects: ObjectStore): Promise<ObjectInfo[]> {
  const found: ObjectInfo[] = [];
  for await (const info of listAll(objects, MANIFEST_PREFIX)) if (manifestNumberOf(info.key) !== null) found.push(info);
  return found;
}

export async function horizonOf({ objects, digests }: Pick<ObjectWorld, 'objects' | 'digests'>, manifests: readonly ObjectInfo[], removeAfterMs: number): Promise<Horizon> {
  const newest = manifests[0];
  const place = newest === undefined ? -1 : manifests.findIndex(({ modifiedMs }) => newest.modifiedMs - modifiedMs >= removeAfterMs);
  if (place < 0) return { old: null, manifests: [] };
  const old = await readManifest(objects, manifestNumberOf(manifests[place]!.key)!, digests);
  return { old, manifests: manifests.slice(Math.max(place + 1, MANIFESTS_KEPT)).map(({ key }) => key) };
}

/**
 * Removes what lies behind the horizon. To be called only by whoever has just put a newer manifest in force, which is given as
 * `newest` with its time in the store. A crash anywhere leaves objects that a later sweep finds. Gives the number of objects removed.
 */
export async function sweep(world: Pick<ObjectWorld, 'objects'>, { old, manifests }: Horizon, newest: ObjectManifest, newestMs: number, removeAfterMs: number): Promise<number> {
  const { objects } = world;
  const gone = new Gone(objects);
  if (old !== null) {
    const named = keysOf(newest);
    for (const { key } of old.dropped) if (!named.has(key)) await gone.add(key);
    for await (const { key } of listAll(objects, LOG_PREFIX)) {
      const number = commitNumberOf(key);
      if (number === null || number >= old.boundary || gone.isFull) break;
      await gone.add(commitKey(number));
    }
    for (const key of manifests) await gone.add(key);
  }
  if (newest.number % LEFTOVERS_EVERY === 0) await leftovers(gone, objects, newest, newestMs - removeAfterMs);
  await gone.flush();
  return gone.count;
}

/** Files that ticks uploaded and never named, notes that nobody looks at, and failed logins of long ago. */
async function leftovers(gone: Gone, objects: ObjectStore, newest: ObjectManifest, beforeMs: number): Promise<void> {
  const named = keysOf(newest);
  for (const { key } of newest.dropped) named.add(key);
  for await (const { key, modifiedMs } of listAll(objects, FILES_PREFIX)) if (modifiedMs <= beforeMs && !named.has(key)) await gone.add(key);
  for await (const { key, modifiedMs } of listAll(objects, CONTROL_PREFIX)) if (modifiedMs <= beforeMs && isOldNote(key, newest)) await gone.add(key);
  for await (const { key, modifiedMs } of listAll(objects, FAILURES_PREFIX)) {
    if (gone.isFull) return;
    if (modifiedMs <= beforeMs) await gone.add(key);
  }
}

/** Collects keys and removes them by the thousand. */
class Gone {
  readonly #objects: ObjectStore;
  #keys: string[] = [];
  count = 0;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  get isFull(): boolean { return this.count >= REMOVE_MAX; }

  async add(key: string): Promise<void> {
    if (this.isFull) return;
    this.#keys.push(key);
    this.count++;
    if (this.#keys.length === BATCH_KEYS) await this.flush();
  }

  async flush(): Promise<void> {
    const keys = this.#keys;
    this.#keys = [];
    if (keys.length > 0) await this.#objects.remove(keys);
  }
}
