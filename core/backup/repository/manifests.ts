import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { isOfKind, listKind } from '../../ports/object-kinds.ts';
import type { OnStrangers } from '../../ports/object-kinds.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { wrongText } from '../../base/shape.ts';
import { MANIFESTS } from '../format/repository-keys.ts';
import { manifestShape } from '../format/manifest-shape.ts';
import { madeMsOf } from '../format/snapshot-manifest.ts';
import type { Manifest, ManifestKey } from '../format/snapshot-manifest.ts';
import { damaged, decodeObject, encodeObject } from './repository-objects.ts';
import type { TextCodec } from './repository-objects.ts';

const TIME_DIGITS = 15;
/** Manifests that are kept in memory: one of a large store takes some MiB. They never change. */
const CACHED_MAX = 4;

export function manifestKey(manifest: Pick<Manifest, 'id' | 'createdMs'>): string {
  return `${MANIFESTS.prefix}${String(Math.floor(manifest.createdMs)).padStart(TIME_DIGITS, '0')}-${manifest.id}`;
}

/** Of a key of that kind. */
function keyOf(key: string): ManifestKey {
  const idAt = MANIFESTS.prefix.length + TIME_DIGITS + 1;
  return { key, id: key.slice(idAt), createdMs: Number(key.slice(MANIFESTS.prefix.length, idAt - 1)) };
}

/** The manifests of a repository. */
export class Manifests {
  readonly #objects: ObjectStore;
  readonly #codec: TextCodec;
  readonly #onStrangers: OnStrangers | undefined;
  /** The newest last. */
  readonly #cached = new Map<string, Manifest>();

  constructor(objects: ObjectStore, codec: TextCodec, onStrangers?: OnStrangers) {
    this.#objects = objects;
    this.#codec = codec;
    this.#onStrangers = onStrangers;
  }

  /** Oldest first. */
  async keys(): Promise<ManifestKey[]> {
    const keys: ManifestKey[] = [];
    for await (const { key } of listKind(this.#objects, MANIFESTS, { onStrangers: this.#onStrangers }))
      keys.push(keyOf(key));
    return keys;
  }

  /** Ids from this manifest's key on, oldest first. */
  async idsFrom(manifest: Pick<Manifest, 'id' | 'createdMs'>): Promise<string[]> {
    const first = manifestKey(manifest);
    const ids: string[] = [];
    // A listing gives what lies behind a key, and the key itself lies behind all but its last character.
    for await (const { key } of listKind(this.#objects, MANIFESTS, {
      after: first.slice(0, -1),
      onStrangers: this.#onStrangers,
    }))
      if (key >= first) ids.push(keyOf(key).id);
    return ids;
  }

  /** Null when there is none. Throws `repository_damaged`. */
  async read(key: ManifestKey): Promise<Manifest | null> {
    const cached = this.#cached.get(key.id);
    if (cached !== undefined) return cached;
    const manifest = await this.readAnew(key);
    if (manifest !== null) this.#keep(manifest);
    return manifest;
  }

  /** As `read`, whatever is known of it: nothing of a manifest is believed that is not as the shape of one has it. */
  async readAnew({ key, id, createdMs }: ManifestKey): Promise<Manifest | null> {
    const bytes = await this.#objects.get(key);
    if (bytes === null) return null;
    const manifest = decodeObject(this.#codec, key, bytes, manifestShape);
    if (manifest.id !== id || Math.floor(manifest.createdMs) !== createdMs)
      throw damaged(this.#objects.place, key, `holds the manifest of another backup, ${manifest.id}`);
    return manifest;
  }

  /**
   * `latest` is the newest: of the newest ones of all nodes the one that was made last. Rejects with
   * `backup_not_found`.
   */
  async find(id: string): Promise<Manifest> {
    const keys = await this.keys();
    const key = id === 'latest' ? keys.at(-1) : keys.find((other) => other.id === id);
    const found = key === undefined ? null : await this.read(key);
    const manifest = found !== null && id === 'latest' ? await this.#madeLast(found, keys) : found;
    if (manifest === null) throw backupNotFound(this.#objects.place, id);
    return manifest;
  }

  /**
   * Where the clock of a node was ahead for a while, its keys are later than those of other nodes, and than its
   * backups.
   */
  async #madeLast(last: Manifest, keys: readonly ManifestKey[]): Promise<Manifest> {
    let best = last;
    const seen = new Set([last.nodeId]);
    for (const key of keys.slice(0, -1).reverse()) {
      if (key.createdMs <= madeMsOf(best)) break;
      const manifest = await this.read(key).catch((error: unknown) => {
        if (isSkuaError(error, 'repository_damaged')) return null;
        throw error;
      });
      if (manifest === null || seen.has(manifest.nodeId)) continue;
      seen.add(manifest.nodeId);
      if (madeMsOf(manifest) > madeMsOf(best)) best = manifest;
    }
    return best;
  }

  /** Gives the key under which it lies. */
  async put(manifest: Manifest): Promise<string> {
    const key = manifestKey(manifest);
    if (!isOfKind(MANIFESTS, key))
      throw new SkuaError(
        'bad_option',
        `A manifest can't have the id ${manifest.id} and the time ${manifest.createdMs}.`,
        { key },
      );
    // What could not be read again must not count as a backup.
    const wrong = manifestShape(manifest, '');
    if (wrong !== null)
      throw new SkuaError(
        'backup_failed',
        `The manifest of this backup ${wrongText(wrong)}. Run \`skua verify\` on the directory that is backed up, and repair it.`,
        { key, member: wrong.member },
      );
    await this.#objects.put(key, encodeObject(this.#codec, key, manifest));
    this.#keep(manifest);
    return key;
  }

  async remove(key: ManifestKey): Promise<void> {
    this.#cached.delete(key.id);
    await this.#objects.remove([key.key]);
  }

  #keep(manifest: Manifest): void {
    this.#cached.delete(manifest.id);
    this.#cached.set(manifest.id, manifest);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > CACHED_MAX && oldest !== undefined) this.#cached.delete(oldest);
  }
}

export function backupNotFound(location: string, id: string): SkuaError {
  return new SkuaError(
    'backup_not_found',
    id === 'latest'
      ? `There is no backup in ${location} yet: make one with \`skua backup create\`.`
      : `There is no backup ${id} in ${location}: \`skua backup list\` shows the backups.`,
    { id, place: location },
  );
}
