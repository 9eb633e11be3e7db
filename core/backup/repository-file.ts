import { guidFromUuidBytes, guidToText } from '../guid.ts';
import { isSkuaError, SkuaError } from '../errors.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { damaged } from './damaged.ts';
import { fromHex, toHex } from './hex.ts';
import { decodeObject, encodeObject } from './object-text.ts';
import type { TextCodec } from './object-text.ts';
import type { RepositoryOptions, RepositoryWorld } from './repository-api.ts';
import { SALT_BYTES, Sealer } from './sealing.ts';

/** What makes a place a repository, and says how to read it. */
export const REPOSITORY_KEY = 'skua-repository';
const FORMAT = 1;
/** A creation whose outcome is unknown is looked at so often. */
const LOOKS_MAX = 3;

/** The object itself is never sealed: it holds what the keys are derived with. */
export interface RepositoryFile {
  readonly format: typeof FORMAT;
  /** Text of a UUID. */
  readonly id: string;
  readonly createdMs: number;
  /** In hex. */
  readonly encryption: { readonly salt: string; readonly check: string } | null;
}

/** Reads the repository's object, or makes it. Rejects with `repository_not_found`, `repository_key` and `repository_damaged`. */
export async function openRepositoryFile(objects: ObjectStore, options: RepositoryOptions, world: RepositoryWorld): Promise<{ file: RepositoryFile; sealer: Sealer | null }> {
  const codec: TextCodec = { place: objects.place, digests: world.digests, sealer: null };
  const bytes = (await objects.get(REPOSITORY_KEY)) ?? (await createFile(objects, codec, options, world));
  const file = decodeObject(codec, REPOSITORY_KEY, bytes) as RepositoryFile;
  if (file.format !== FORMAT) throw damaged(objects.place, REPOSITORY_KEY, `is of format ${String(file.format)}, which this version can't read: use a newer one`);
  return { file, sealer: sealerOf(objects.place, file, options, world) };
}

async function createFile(objects: ObjectStore, codec: TextCodec, options: RepositoryOptions, world: RepositoryWorld): Promise<Uint8Array> {
  const { place } = objects;
  if ((await objects.list('', { max: 1 })).objects.length > 0) {
    // Another process may have made it just now.
    const bytes = await objects.get(REPOSITORY_KEY);
    if (bytes !== null) return bytes;
    throw new SkuaError('repository_not_found', `${place} holds objects, but no repository: ${REPOSITORY_KEY} is missing. Name another place, or put that object back if it was lost.`, { place });
  }
  if (!options.create) throw new SkuaError('repository_not_found', `There is no backup repository in ${place}. Check the name; \`skua backup create\` makes one.`, { place });
  const made = encodeObject(codec, REPOSITORY_KEY, newFile(options, world));
  for (let look = 0; look < LOOKS_MAX; look++) {
    try {
      await objects.create(REPOSITORY_KEY, made);
    } catch (error) {
      if (!isSkuaError(error, 'outcome_unknown')) throw error;
    }
    // Another process may have been first: what is there counts.
    const bytes = await objects.get(REPOSITORY_KEY);
    if (bytes !== null) return bytes;
  }
  throw new SkuaError('storage_unreachable', `The repository in ${place} could not be created: the store does not say whether it was. Try again.`, { place });
}

function newFile(options: RepositoryOptions, world: RepositoryWorld): RepositoryFile {
  const id = guidToText(guidFromUuidBytes(world.ids.uuidBytes()), 0);
  const createdMs = Math.floor(world.clock.nowMs());
  if (options.key === null) return { format: FORMAT, id, createdMs, encryption: null };
  const salt = world.keys.randomBytes(SALT_BYTES);
  return { format: FORMAT, id, createdMs, encryption: { salt: toHex(salt), check: toHex(new Sealer(world.keys, options.key, salt).check) } };
}

function sealerOf(place: string, file: RepositoryFile, options: RepositoryOptions, world: RepositoryWorld): Sealer | null {
  const wrongKey = (message: string) => new SkuaError('repository_key', message, { place });
  if (file.encryption === null) {
    if (options.key !== null) throw wrongKey(`The repository in ${place} is not encrypted: leave the key file out, or name another place for an encrypted one.`);
    return null;
  }
  if (options.key === null) throw wrongKey(`The repository in ${place} is encrypted: give its key file.`);
  const salt = fromHex(file.encryption.salt);
  const check = fromHex(file.encryption.check);
  if (salt === null || check === null) throw damaged(place, REPOSITORY_KEY, 'has a salt that is none');
  const sealer = new Sealer(world.keys, options.key, salt);
  if (!sealer.isSame(check)) throw wrongKey(`The key file is not the one of the repository in ${place}: give the one that it was made with.`);
  return sealer;
}
