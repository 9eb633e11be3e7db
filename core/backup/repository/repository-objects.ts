import { equalBytes } from '../../base/bytes.ts';
import { isSkuaError, SkuaError, type SkuaErrorOf } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import { fromHex, toHex } from '../../base/hex.ts';
import type { Digests } from '../../ports/digests.ts';
import { AES_GCM_NONCE_BYTES, AES_GCM_TAG_BYTES } from '../../ports/keys.ts';
import type { Keys } from '../../ports/keys.ts';
import { listAll } from '../../ports/object-store.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { isSystemPath } from '../../ports/system-names.ts';
import { hexDigits, moment, oneOf, orNull, record, uuid, wrongText } from '../../base/shape.ts';
import type { Shape } from '../../base/shape.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { RepositoryOptions, RepositoryWorld } from './api.ts';
import { REPOSITORY_KEY } from '../format/repository-keys.ts';
import { checkClock } from '../format/snapshot-manifest.ts';

/** Bytes that sealing adds: the nonce in front and the tag behind. */
export const SEAL_BYTES = AES_GCM_NONCE_BYTES + AES_GCM_TAG_BYTES;
const SALT_BYTES = 32;
const KEY_BYTES = 32;

/** The keys of an encrypted repository, each derived for one purpose from the key file and the repository's salt. */
export class Sealer {
  readonly #keys: Keys;
  readonly #idKey: Uint8Array;
  readonly #contentKey: Uint8Array;
  /** Tells a right key from a wrong one and nothing else about it. */
  readonly check: Uint8Array;

  constructor(keys: Keys, key: Uint8Array, salt: Uint8Array) {
    if (key.length !== KEY_BYTES)
      throw new SkuaError(
        'repository_key',
        `The key of a repository has ${KEY_BYTES} bytes, this one has ${key.length}. Give the key file that the repository was created with.`,
        { limit: KEY_BYTES },
      );
    const derive = (purpose: string) => keys.hkdfSha256(key, salt, encodeText(`skua repository ${purpose}`), KEY_BYTES);
    this.#keys = keys;
    this.#idKey = derive('blob id');
    this.#contentKey = derive('content');
    this.check = derive('check');
  }

  /** Name of content: without the key it can't be told whether some known content is in the repository. */
  idOf(sha256: Uint8Array): Uint8Array {
    return this.#keys.hmac('sha256', this.#idKey, sha256);
  }

  /**
   * Nonce, ciphertext and tag. Nonces are random: 96 bits are enough for far more frames than a repository can hold.
   */
  seal(plain: Uint8Array, context: Uint8Array): Uint8Array {
    const nonce = this.#keys.randomBytes(AES_GCM_NONCE_BYTES);
    const sealed = this.#keys.sealAesGcm(this.#contentKey, nonce, plain, context);
    const out = new Uint8Array(AES_GCM_NONCE_BYTES + sealed.length);
    out.set(nonce);
    out.set(sealed, AES_GCM_NONCE_BYTES);
    return out;
  }

  /** Null when it was not sealed here, in this context, or any byte has changed. */
  open(sealed: Uint8Array, context: Uint8Array): Uint8Array | null {
    if (sealed.length < SEAL_BYTES) return null;
    return this.#keys.openAesGcm(
      this.#contentKey,
      sealed.subarray(0, AES_GCM_NONCE_BYTES),
      sealed.subarray(AES_GCM_NONCE_BYTES),
      context,
    );
  }

  isSame(check: Uint8Array): boolean {
    return this.#keys.equal(check, this.check);
  }
}

/**
 * An object of a repository that is not what was written, from `offset` on where that is known. `what` completes "The
 * object ...".
 */
export function damaged(
  location: string,
  key: string,
  what: string,
  cause?: unknown,
  offset?: number,
): SkuaErrorOf<'repository_damaged'> {
  return new SkuaError(
    'repository_damaged',
    `The object ${key} in ${location} ${what}. Run \`skua backup verify\` to find all damage, make a new backup, and restore from one that does not need this object.`,
    { key, place: location, isMissing: what.startsWith('is missing'), ...(offset !== undefined && { offset }) },
    cause,
  );
}

/** Ends work on a repository, of which nothing is lost by that. Throws `aborted`. */
export function endWhenAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new SkuaError('aborted', 'The operation was interrupted. Repeat it to continue.');
}

/** Stands before what is sealed; a JSON text can't begin so. */
export const SEALED_MAGIC = encodeText('SkuaSeal');
const LINE_END = 10;
const CHECKSUM_BYTES = 64;

export interface TextCodec {
  readonly place: string;
  readonly digests: Digests;
  /** Null where nothing is encrypted. */
  readonly sealer: Sealer | null;
}

/**
 * A small object of a repository: one line of JSON, and a line with its SHA-256 in hex; in an encrypted repository that
 * text, sealed for its key, so that no object can take the place of another.
 */
export function encodeObject(codec: TextCodec, key: string, value: unknown): Uint8Array {
  const json = encodeText(JSON.stringify(value));
  const text = new Uint8Array(json.length + CHECKSUM_BYTES + 2);
  text.set(json);
  text[json.length] = LINE_END;
  text.set(checksum(codec.digests, key, json), json.length + 1);
  text[text.length - 1] = LINE_END;
  if (codec.sealer === null) return text;
  const sealed = codec.sealer.seal(text, encodeText(key));
  const out = new Uint8Array(SEALED_MAGIC.length + sealed.length);
  out.set(SEALED_MAGIC);
  out.set(sealed, SEALED_MAGIC.length);
  return out;
}

/**
 * The value that was encoded, which has that shape. Throws `repository_damaged` (data: member, where it has another
 * one).
 */
export function decodeObject<T>(codec: TextCodec, key: string, bytes: Uint8Array, shape: Shape<T>): T {
  const text = codec.sealer === null ? bytes : openSealed(codec, codec.sealer, key, bytes);
  const end = text.length - CHECKSUM_BYTES - 2;
  if (end < 1 || text[end] !== LINE_END || text[text.length - 1] !== LINE_END)
    throw damaged(codec.place, key, 'is cut short or changed');
  const json = text.subarray(0, end);
  if (!equalBytes(text, end + 1, checksum(codec.digests, key, json), 0, CHECKSUM_BYTES))
    throw damaged(codec.place, key, 'does not match its checksum');
  let value: unknown;
  try {
    value = JSON.parse(decodeText(json));
  } catch (error) {
    throw damaged(codec.place, key, 'is not JSON', error);
  }
  const wrong = shape(value, '');
  if (wrong === null) return value as T;
  throw new SkuaError(
    'repository_damaged',
    `The object ${key} in ${codec.place} ${wrongText(wrong)}. It is not used. Its checksum matches, so another program or a newer version wrote it: find out what writes to the repository.`,
    { key, place: codec.place, member: wrong.member, isMissing: false },
  );
}

function openSealed(codec: TextCodec, sealer: Sealer, key: string, bytes: Uint8Array): Uint8Array {
  const isSealed = bytes.length > SEALED_MAGIC.length && equalBytes(bytes, 0, SEALED_MAGIC, 0, SEALED_MAGIC.length);
  const text = isSealed ? sealer.open(bytes.subarray(SEALED_MAGIC.length), encodeText(key)) : null;
  if (text === null) throw damaged(codec.place, key, 'was not sealed with the key of the repository, or was changed');
  return text;
}

/** The key is part of it, so that an object that stands under another's key is found out. */
function checksum(digests: Digests, key: string, json: Uint8Array): Uint8Array {
  const digest = digests.sha256();
  digest.update(encodeText(`${key}\n`));
  digest.update(json);
  return encodeText(toHex(digest.finish()));
}

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
  readonly encryption: Encryption | null;
}

interface Encryption {
  readonly salt: string;
  readonly check: string;
}

export const repositoryShape = record<RepositoryFile>({
  format: oneOf(FORMAT),
  id: uuid,
  createdMs: moment,
  encryption: orNull(record<Encryption>({ salt: hexDigits(2 * SALT_BYTES), check: hexDigits(2 * KEY_BYTES) })),
});

/**
 * Why what lies in a store is not this repository, or is an older copy of it; null where it is. `written` is the last
 * object that this process has written there, null before the first.
 */
export async function whyAnotherRepository(
  there: ObjectStore,
  digests: Digests,
  id: string,
  written: string | null,
): Promise<string | null> {
  const bytes = await there.get(REPOSITORY_KEY);
  if (bytes === null) return `it holds no repository, but the repository ${id} was in use`;
  const file = decodeObject({ place: there.place, digests, sealer: null }, REPOSITORY_KEY, bytes, repositoryShape);
  if (file.id !== id) return `it holds the repository ${file.id}, but ${id} was in use`;
  return written !== null && (await there.head(written)) === null
    ? `it is an older copy: ${written}, which was written to it, is missing`
    : null;
}

/**
 * Reads the repository's object, or makes it. Rejects with `repository_not_found`, `repository_key` and
 * `repository_damaged`.
 */
export async function openRepositoryFile(
  objects: ObjectStore,
  options: RepositoryOptions,
  world: RepositoryWorld,
): Promise<{ file: RepositoryFile; sealer: Sealer | null }> {
  const codec: TextCodec = { place: objects.place, digests: world.digests, sealer: null };
  const bytes = (await objects.get(REPOSITORY_KEY)) ?? (await createFile(objects, codec, options, world));
  const file = decodeObject(codec, REPOSITORY_KEY, bytes, repositoryShape);
  return { file, sealer: sealerOf(objects.place, file, options.key, world.keys) };
}

async function createFile(
  objects: ObjectStore,
  codec: TextCodec,
  options: RepositoryOptions,
  world: RepositoryWorld,
): Promise<Uint8Array> {
  const { place } = objects;
  if (await holdsObjects(objects)) {
    // Another process may have made it just now.
    const bytes = await objects.get(REPOSITORY_KEY);
    if (bytes !== null) return bytes;
    throw new SkuaError(
      'repository_not_found',
      `${place} holds objects, but no repository: ${REPOSITORY_KEY} is missing. Name another place, or put that object back if it was lost.`,
      { place },
    );
  }
  if (!options.create)
    throw new SkuaError(
      'repository_not_found',
      `There is no backup repository in ${place}. Check the name; \`skua backup create\` makes one.`,
      { place },
    );
  checkClock(world.clock.nowMs());
  await objects.begin?.();
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
  throw new SkuaError(
    'storage_unreachable',
    `The repository in ${place} may or may not have been created: the store did not answer. Try again.`,
    { place },
  );
}

/**
 * Whether there is anything that did not come from a system or a file manager: a repository is made in a place of its
 * own.
 */
async function holdsObjects(objects: ObjectStore): Promise<boolean> {
  for await (const { key } of listAll(objects, '')) if (!isSystemPath(key)) return true;
  return false;
}

function newFile(options: RepositoryOptions, world: RepositoryWorld): RepositoryFile {
  const id = guidToText(guidFromUuidBytes(world.ids.uuidBytes()), 0);
  const createdMs = Math.floor(world.clock.nowMs());
  if (options.key === null) return { format: FORMAT, id, createdMs, encryption: null };
  const salt = world.keys.randomBytes(SALT_BYTES);
  return {
    format: FORMAT,
    id,
    createdMs,
    encryption: { salt: toHex(salt), check: toHex(new Sealer(world.keys, options.key, salt).check) },
  };
}

/**
 * What opens the objects of a repository; null where they are not sealed. Throws `repository_key` for a wrong, missing
 * or unwanted key.
 */
export function sealerOf(location: string, file: RepositoryFile, key: Uint8Array | null, keys: Keys): Sealer | null {
  const wrongKey = (message: string) => new SkuaError('repository_key', message, { place: location });
  if (file.encryption === null) {
    if (key !== null)
      throw wrongKey(
        `The repository in ${location} is not encrypted: leave the key file out, or name another place for an encrypted one.`,
      );
    return null;
  }
  if (key === null) throw wrongKey(`The repository in ${location} is encrypted: give its key file.`);
  const sealer = new Sealer(keys, key, fromHex(file.encryption.salt)!);
  if (!sealer.isSame(fromHex(file.encryption.check)!))
    throw wrongKey(`The key file is not that of the repository in ${location}: give the one it was created with.`);
  return sealer;
}
