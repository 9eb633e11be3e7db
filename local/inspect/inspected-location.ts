import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { FileFormat, FormatWorld } from '../../core/ports/file-format.ts';
import { OBJECT_LIST_MAX } from '../../core/ports/object-store.ts';
import type {
  GetOptions,
  ListOptions,
  ObjectInfo,
  ObjectPage,
  ObjectLocation,
  ObjectStore,
} from '../../core/ports/object-store.ts';
import type { StorageFile } from '../../core/ports/storage.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { storageError, systemCode } from '../../infra/fs/fs-errors.ts';
import { FilesystemFile } from '../../infra/fs/filesystem-file.ts';
import { openFiles } from '../../infra/fs/open-files.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { infosOf, walkKeys } from '../../infra/objects/directory-walk.ts';
import { openObjects, parseLocation } from '../../infra/objects/open-objects.ts';
import { UsageError } from '../../infra/runtime/failure.ts';
import { formatByContent, formatByName } from './formats.ts';

/**
 * What was named on the command line, opened to be read and for nothing else: no lock is taken, and nothing is written,
 * also not what a store would tidy up.
 */
export type Named = NamedFile | NamedFolder;

export interface NamedFile {
  readonly kind: 'file';
  readonly place: string;
  readonly file: StorageFile;
  /** Null for what is of no kind that is known. */
  readonly format: FileFormat | null;
  readonly key: string;
  readonly isUnfinished: boolean;
  readonly localPath: string | null;
  readonly world: FormatWorld;
  close(): Promise<void>;
}

export interface NamedFolder {
  readonly kind: 'folder';
  readonly place: string;
  readonly objects: ObjectStore;
  close(): Promise<void>;
}

export interface InspectedOptions {
  readonly 's3-endpoint': string | null;
  readonly 's3-region': string | null;
}

/** Opens a file, an object, or a folder of them. Throws `file_not_found`, and what the storage throws. */
export async function openNamed(
  given: string,
  wanted: InspectedOptions,
  repositoryKey: Uint8Array | null,
): Promise<Named> {
  if (/^file:\/\//i.test(given)) return openLocalNamed(pathOfUrl(given), repositoryKey);
  return /^[a-z0-9+.-]+:\/\//i.test(given)
    ? await openObjectNamed(given, wanted, repositoryKey)
    : await openLocalNamed(path.resolve(given), repositoryKey);
}

function pathOfUrl(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw new UsageError(`${url} is not the address of a file: ${(error as Error).message}.`);
  }
}

async function openLocalNamed(place: string, repositoryKey: Uint8Array | null): Promise<Named> {
  if (isFolder(place)) return { kind: 'folder', place, objects: new LocalFiles(place), async close() {} };
  const file = openLocal(place);
  const named = await formatByName(place.split(path.sep).join('/'));
  const root = named === null ? path.dirname(place) : path.resolve(named.root);
  const key = named?.key ?? path.basename(place);
  const objects = new LocalFiles(root);
  const world = worldOf(objects, repositoryKey, async (name) => objects.open(name));
  return {
    kind: 'file',
    place,
    file,
    format: named?.format ?? (await formatByContent(key, file)),
    key,
    isUnfinished: named?.isUnfinished ?? false,
    localPath: place,
    world,
    close: () => file.close(),
  };
}

function isFolder(place: string): boolean {
  try {
    return fs.statSync(place).isDirectory();
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR')
      throw new SkuaError('file_not_found', `${place} does not exist.`, { path: place });
    throw storageError(error, place);
  }
}

/** A pipe would be waited for, for ever, and what a device gives has no end. */
function openLocal(place: string): StorageFile {
  let fd: number;
  try {
    fd = fs.openSync(place, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  } catch (error) {
    throw storageError(error, place);
  }
  const found = fs.fstatSync(fd);
  if (found.isFile())
    return new FilesystemFile({
      path: path.basename(place),
      place,
      fd,
      size: found.size,
      isWritable: false,
      calls: 'offline',
      openFiles,
    });
  fs.closeSync(fd);
  throw new SkuaError('io_error', `${place} is not a file. Name a file, or a folder of files.`, { path: place });
}

async function openObjectNamed(
  given: string,
  { 's3-endpoint': endpoint, 's3-region': region }: InspectedOptions,
  repositoryKey: Uint8Array | null,
): Promise<Named> {
  let place: ObjectLocation & { readonly kind: 's3' };
  try {
    place = parseLocation(given, { endpoint, region }) as typeof place;
  } catch (error) {
    throw isSkuaError(error, 'bad_option') ? new UsageError(error.message) : error;
  }
  const named = given.endsWith('/') ? null : await formatByName(place.prefix);
  const slash = place.prefix.lastIndexOf('/');
  const key = named?.key ?? place.prefix.slice(slash + 1);
  const root = named === null ? place.prefix.slice(0, Math.max(0, slash)) : named.root.replace(/\/$/, '');
  const objects = await openObjects({ ...place, prefix: root });
  const info = key === '' || given.endsWith('/') ? null : await objects.head(key);
  if (info === null) {
    await objects.close();
    if (named !== null) throw new SkuaError('file_not_found', `The object ${given} does not exist.`, { path: given });
    const folder = await openObjects(place);
    return { kind: 'folder', place: folder.place, objects: folder, close: () => folder.close() };
  }
  const { ObjectFileReader } = await import('../../core/shared-log/files/files.ts');
  const open = async (name: string) => {
    const other = await objects.head(name);
    return other === null ? null : new ObjectFileReader(objects, name, name, other.sizeBytes);
  };
  const file = new ObjectFileReader(objects, key, key, info.sizeBytes);
  const world = worldOf(objects, repositoryKey, open);
  return {
    kind: 'file',
    place: given,
    file,
    format: named?.format ?? (await formatByContent(key, file)),
    key,
    isUnfinished: false,
    localPath: null,
    world,
    close: () => objects.close(),
  };
}

function worldOf(objects: ObjectStore, repositoryKey: Uint8Array | null, open: FormatWorld['open']): FormatWorld {
  return {
    digests: nodeDigests,
    keys: nodeKeys,
    compression: nodeCompression,
    objects,
    repositoryKey,
    open,
    formatOf: async (key, file) => (await formatByName(key))?.format ?? (await formatByContent(key, file)),
  };
}

/** Files of a folder as objects, which none of its methods changes. */
class LocalFiles implements ObjectStore {
  readonly place: string;

  constructor(place: string) {
    this.place = place;
  }

  open(key: string): StorageFile | null {
    try {
      return openLocal(path.join(this.place, key));
    } catch (error) {
      if (isSkuaError(error, 'file_not_found') || (isSkuaError(error) && error.data['systemCode'] === 'ENOTDIR'))
        return null;
      throw error;
    }
  }

  async get(key: string, { from = 0, length }: GetOptions = {}): Promise<Uint8Array | null> {
    const file = this.open(key);
    if (file === null) return null;
    try {
      return (await file.read(from, Math.max(0, Math.min(length ?? Infinity, file.size - from)))).slice();
    } finally {
      await file.close();
    }
  }

  async head(key: string): Promise<ObjectInfo | null> {
    return (await infosOf(this.place, [key]))[0] ?? null;
  }

  async list(prefix: string, { after = '', max = OBJECT_LIST_MAX }: ListOptions = {}): Promise<ObjectPage> {
    const keys: string[] = [];
    for await (const key of walkKeys(this.place, prefix, after, async () => {})) {
      if (keys.length === max) return { objects: await infosOf(this.place, keys), isMore: true };
      keys.push(key);
    }
    return { objects: await infosOf(this.place, keys), isMore: false };
  }

  async put(): Promise<never> {
    throw looksOnly(this.place);
  }
  async create(): Promise<never> {
    throw looksOnly(this.place);
  }
  async upload(): Promise<never> {
    throw looksOnly(this.place);
  }
  async remove(): Promise<never> {
    throw looksOnly(this.place);
  }
  async close(): Promise<void> {}
}

function looksOnly(place: string): SkuaError {
  return new SkuaError('io_error', `${place} is only looked at: this is a defect. Nothing was changed.`, {
    path: place,
  });
}
