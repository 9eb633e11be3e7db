import { hash, randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';

/**
 * The files of the single executable, as files: Node.js loads modules, worker threads and WebAssembly from a disk only. They lie in a
 * folder that is named by their content, and each is compared with what the executable has in it at every start.
 *
 * A file is written under another name and renamed, and whoever finds one missing or changed writes that one: so it does not matter how many
 * start at once, or where one of them is killed, and the files of a node that runs never go away. Nothing is synced: a file that a power cut
 * has emptied is written anew by the next start.
 */

export interface PackedFile {
  /** Path below the folder, with `/`. */
  readonly name: string;
  /** SHA-256 in base64url. */
  readonly digest: string;
}

export interface Manifest {
  /** Name of the folder: a digest of all names and digests. */
  readonly id: string;
  readonly files: readonly PackedFile[];
}

export interface Place {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home folder of the user; empty where there is none. */
  readonly home: string;
  readonly temp: string;
  readonly uid: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** No folder is fit; `message` names each with what is wrong with it, and what to do. */
export class NotUnpacked extends Error {
  readonly code = 'not_unpacked';
}

/** In milliseconds. What another start is just writing is younger. */
const LEFTOVER_AGE_MS = 3_600_000;
/** In milliseconds. A process that runs touches its folder every few hours (`touch`), and one that starts does. */
const UNUSED_AGE_MS = 30 * 86_400_000;
const ID = /^[\w-]{43}$/;
const LEFTOVER = /^\.[\w-]{36}\.tmp$/;

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/** Folder with all files of `manifest`, each of them as the executable has it. Throws NotUnpacked. */
export function unpack({ id, files }: Manifest, contentOf: (name: string) => Uint8Array, place: Place): string {
  const refused: string[] = [];
  for (const base of basesOf(place)) {
    try {
      mkdirSync(path.dirname(base), { recursive: true, mode: 0o700 });
      const all = path.join(realpathSync(path.dirname(base)), path.basename(base));
      const folder = path.join(all, id);
      for (const each of [all, folder]) {
        mkdirSync(each, { recursive: true, mode: 0o700 });
        refuseForeign(each, place.uid);
      }
      const isChanged = files.map((file) => restore(folder, file, contentOf)).includes(true);
      utimesSync(folder, place.nowMs / 1_000, place.nowMs / 1_000);
      if (isChanged) sweep(all, id, place);
      return folder;
    } catch (error) {
      refused.push(`${base}: ${(error as Error).message}`);
    }
  }
  throw new NotUnpacked(`The program could not be unpacked. Name a folder of your own that can be written as XDG_CACHE_HOME, or remove what is in the way. Tried ${refused.join('; ')}`);
}

/** Where it may lie, in order: what a service manager keeps for a unit (CacheDirectory=), the user's cache, the temporary folder. */
function basesOf({ env, home, temp, uid }: Place): string[] {
  const named = (env['CACHE_DIRECTORY'] ?? '').split(':')[0]!;
  const cache = env['XDG_CACHE_HOME'] ?? '';
  return [
    ...(path.isAbsolute(named) ? [path.join(named, 'unpacked')] : []),
    // The specification of these folders has relative ones ignored.
    ...(path.isAbsolute(cache) ? [path.join(cache, 'skua')] : path.isAbsolute(home) ? [path.join(home, '.cache', 'skua')] : []),
    path.join(temp, `skua-${uid}`),
  ];
}

/** Code is run from here: nobody else may be able to put it there, neither into the folder nor in place of it. */
function refuseForeign(folder: string, uid: number): void {
  const own = lstatSync(folder);
  if (!own.isDirectory()) throw new Error(`${folder} is no folder`);
  if (own.uid !== uid) throw new Error(`${folder} belongs to another user (${own.uid}, and this is ${uid})`);
  if ((own.mode & WRITABLE_BY_OTHERS) !== 0) throw new Error(`${folder} can be written by other users`);
  const parent = statSync(path.dirname(folder));
  if (parent.uid !== uid && parent.uid !== 0 && (parent.mode & STICKY) === 0) throw new Error(`${path.dirname(folder)} belongs to another user (${parent.uid}, and this is ${uid})`);
}

/** Writes the file if it isn't there as it should be; true if so. */
function restore(folder: string, { name, digest }: PackedFile, contentOf: (name: string) => Uint8Array): boolean {
  const file = path.join(folder, name);
  if (digestOf(file) === digest) return false;
  const written = path.join(folder, `.${randomUUID()}.tmp`);
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(written, contentOf(name), { flag: 'wx', mode: 0o600 });
    // A rename replaces any file, but no folder. One with something in it is somebody's, and another place is tried.
    if (lstatSync(file, { throwIfNoEntry: false })?.isDirectory()) rmdirSync(file);
    renameSync(written, file);
  } finally {
    rmSync(written, { force: true });
  }
  return true;
}

/** Null where there is no such file. */
function digestOf(file: string): string | null {
  try {
    return hash('sha256', readFileSync(file), 'base64url');
  } catch {
    return null;
  }
}

/** Removes what killed starts have left, and versions that have not been used for long. That some can't be removed is no reason not to start. */
function sweep(base: string, id: string, { nowMs }: Place): void {
  const stale = (folder: string, names: RegExp, ageMs: number) => readdirSync(folder)
    .filter((name) => names.test(name) && name !== id)
    .map((name) => path.join(folder, name))
    .filter((at) => nowMs - lstatSync(at).mtimeMs > ageMs);
  try {
    for (const at of [...stale(path.join(base, id), LEFTOVER, LEFTOVER_AGE_MS), ...stale(base, ID, UNUSED_AGE_MS)]) rmSync(at, { recursive: true, force: true });
  } catch {
    // Another start may be removing the same.
  }
}

/** Makes folder and files young: where the temporary folder is emptied of what is old, parts that are loaded late would be missing one day. */
export function touch(folder: string, { files }: Manifest, nowMs: number): void {
  for (const at of [folder, ...files.map((file) => path.join(folder, file.name))]) {
    try {
      utimesSync(at, nowMs / 1_000, nowMs / 1_000);
    } catch {
      // Somebody has removed it, and the next start writes it anew.
    }
  }
}
