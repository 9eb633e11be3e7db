import { SkuaError } from '../../errors.ts';
import { listAll } from '../../ports/object-store.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { Manifest } from './manifest.ts';
import { damaged, decodeObject, encodeObject } from './objects.ts';
import type { TextCodec } from './objects.ts';

export const MANIFEST_PREFIX = 'manifests/';
const TIME_DIGITS = 15;
const KEY = /^manifests\/(\d{15})-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;
/** Manifests that are kept in memory: one of a large store takes some MiB. They never change. */
const CACHED_MAX = 4;

interface ManifestKey {
  readonly key: string;
  readonly id: string;
  readonly createdMs: number;
}

export function manifestKey(manifest: Pick<Manifest, 'id' | 'createdMs'>): string {
  return `${MANIFEST_PREFIX}${String(Math.floor(manifest.createdMs)).padStart(TIME_DIGITS, '0')}-${manifest.id}`;
}

/** The manifests of a repository. */
export class Manifests {
  readonly #objects: ObjectStore;
  readonly #codec: TextCodec;
  /** The newest last. */
  readonly #cached = new Map<string, Manifest>();

  constructor(objects: ObjectStore, codec: TextCodec) {
    this.#objects = objects;
    this.#codec = codec;
  }

  /** Oldest first. A key that names no manifest is damage, told to `onDamaged` or thrown. */
  async keys(onDamaged?: (key: string, error: Error) => void): Promise<ManifestKey[]> {
    const keys: ManifestKey[] = [];
    for await (const { key } of listAll(this.#objects, MANIFEST_PREFIX)) {
      const match = KEY.exec(key);
      if (match !== null) keys.push({ key, id: match[2]!, createdMs: Number(match[1]) });
      else {
        const error = damaged(this.#objects.place, key, 'has a name that no manifest has');
        if (onDamaged === undefined) throw error;
        onDamaged(key, error);
      }
    }
    return keys;
  }

  /** Ids from this manifest's key on, oldest first. */
  async idsFrom(manifest: Pick<Manifest, 'id' | 'createdMs'>): Promise<string[]> {
    const first = manifestKey(manifest);
    const ids: string[] = [];
    // A listing gives what lies behind a key, and the key itself lies behind all but its last character.
    for await (const { key } of listAll(this.#objects, MANIFEST_PREFIX, { after: first.slice(0, -1) })) {
      const match = KEY.exec(key);
      if (match !== null && key >= first) ids.push(match[2]!);
    }
    return ids;
  }

  /** Null when there is none. Throws `repository_damaged`. */
  async read({ key, id, createdMs }: ManifestKey): Promise<Manifest | null> {
    const cached = this.#cached.get(id);
    if (cached !== undefined) return cached;
    const bytes = await this.#objects.get(key);
    if (bytes === null) return null;
    const manifest = decodeObject(this.#codec, key, bytes) as Manifest;
    if (manifest.format !== 1) throw damaged(this.#objects.place, key, `is a manifest of format ${String(manifest.format)}, which this version can't read`);
    if (manifest.id !== id || Math.floor(manifest.createdMs) !== createdMs) throw damaged(this.#objects.place, key, `holds the manifest of another backup, ${manifest.id}`);
    this.#keep(manifest);
    return manifest;
  }

  /** `latest` is the newest. Rejects with `backup_not_found`. */
  async find(id: string): Promise<Manifest> {
    const keys = await this.keys(() => {});
    const key = id === 'latest' ? keys.at(-1) : keys.find((other) => other.id === id);
    const manifest = key === undefined ? null : await this.read(key);
    if (manifest === null) throw backupNotFound(this.#objects.place, id);
    return manifest;
  }

  async put(manifest: Manifest): Promise<void> {
    const key = manifestKey(manifest);
    if (!KEY.test(key)) throw new SkuaError('bad_option', `A manifest can't have the id ${manifest.id} and the time ${manifest.createdMs}.`, { key });
    await this.#objects.put(key, encodeObject(this.#codec, key, manifest));
    this.#keep(manifest);
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

export function backupNotFound(place: string, id: string): SkuaError {
  return new SkuaError('backup_not_found', id === 'latest' ? `There is no backup in ${place} yet: make one with \`skua backup create\`.` : `There is no backup ${id} in ${place}: \`skua backup list\` shows what there is.`, { id, place });
}
