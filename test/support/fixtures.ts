import { mkdirSync, openSync, ftruncateSync, writeSync, closeSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { Storage } from '../../core/ports/storage.ts';
import { readTar } from './tar.ts';
import type { TarFile } from './tar.ts';

const FOLDER = fileURLToPath(new URL('../fixtures/', import.meta.url));

/** What `manifest.json` says about a set. */
export interface SetInfo {
  readonly chunkSize: number;
  /** When the oracle was read; absent for a set without one. */
  readonly oracleReadAt?: string;
  readonly records: number;
  readonly chunkFiles: number;
}

/** `[commit, prepare, stream, number, type, id, isJson, dataHash, metadataHash]`; positions are decimal text. */
export type AllRow = [string, string, string, number, string, string, boolean, string, string];
/** `[number, type, id, dataHash]`. */
export type ReadRow = [number, string, string, string];
export interface Oracle {
  readonly all: AllRow[];
  readonly reads: Record<string, ReadRow[] | { readonly error: string }>;
}

export const manifest = JSON.parse(readFileSync(join(FOLDER, 'manifest.json'), 'utf8')) as Record<string, SetInfo>;
/** All seventeen sets, and the sixteen that have an oracle. */
export const SETS: readonly string[] = Object.keys(manifest);
export const ORACLE_SETS: readonly string[] = SETS.filter((name) => manifest[name]!.oracleReadAt !== undefined);

/** Milliseconds since 1970 at which the oracle of a set was read. */
export function oracleTimeMs(name: string): number {
  return Date.parse(manifest[name]!.oracleReadAt!);
}

export function loadOracle(name: string): Oracle {
  return JSON.parse(gunzipSync(readFileSync(join(FOLDER, `${name}.oracle.json.gz`))).toString('utf8')) as Oracle;
}

export function fixturePath(name: string): string {
  return join(FOLDER, name);
}

/** The files of a recorded directory. Unpack afresh for each use: the bytes belong to the caller. */
export function unpackSet(name: string): TarFile[] {
  return readTar(gunzipSync(readFileSync(join(FOLDER, `${name}.tar.gz`))));
}

/** The archives of recorded histories under `folder`, by number; none when there is no such folder. */
export function unpackHistory(archive: string): Map<string, TarFile[]> {
  const folders = new Map<string, TarFile[]>();
  for (const file of readTar(gunzipSync(readFileSync(archive)))) {
    const slash = file.path.indexOf('/');
    if (slash < 0) continue;
    const folder = file.path.slice(0, slash);
    const files = folders.get(folder) ?? [];
    files.push({ ...file, path: file.path.slice(slash + 1) });
    folders.set(folder, files);
  }
  return folders;
}

export interface UnpackOptions {
  /** Leaves out everything under `index/`. */
  readonly withoutIndex?: boolean;
}

/** Writes the files into a storage, keeping what is zero unwritten. */
export async function installFiles(
  storage: Storage,
  files: readonly TarFile[],
  options: UnpackOptions = {},
): Promise<void> {
  for (const file of files) {
    if (options.withoutIndex === true && file.path.startsWith('index/')) continue;
    const handle = await storage.create(file.path);
    await handle.truncate(file.size);
    for (const extent of file.extents) await handle.writeAt(extent.at, extent.bytes);
    await handle.sync();
    await handle.close();
  }
}

/** Writes the files into a folder of the file system, sparse where they are zero. */
export function installFolder(folder: string, files: readonly TarFile[], options: UnpackOptions = {}): void {
  for (const file of files) {
    if (options.withoutIndex === true && file.path.startsWith('index/')) continue;
    const path = join(folder, file.path);
    mkdirSync(dirname(path), { recursive: true });
    const fd = openSync(path, 'wx');
    ftruncateSync(fd, file.size);
    for (const extent of file.extents) writeSync(fd, extent.bytes, 0, extent.bytes.length, extent.at);
    closeSync(fd);
  }
}

/** Whole content of an unpacked file. */
export function contentOf(file: TarFile): Uint8Array {
  const out = new Uint8Array(file.size);
  for (const extent of file.extents) out.set(extent.bytes, extent.at);
  return out;
}
