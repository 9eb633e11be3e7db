import { equalBytes } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { guidToText } from '../../base/guid.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import { isTableName } from '../../ports/own-names.ts';
import type { Storage } from '../../ports/storage.ts';
import { decodeText, encodeText } from '../../base/text.ts';

/** Folder of the index, under the data directory. */
export const INDEX_FOLDER = 'index';
export const INDEX_MAP_PATH = mapPathOf(INDEX_FOLDER);
/** What the anchor of a map is at most, in characters. */
const ANCHOR_LENGTH_MAX = 200;
const ANCHOR_BEGIN = 'at,';
/** Highest level whose tables are merged: all of them. The format keeps it so that a lower limit is noticed. */
const AUTO_MERGE_LEVEL_MAX = 2_147_483_647;
const DIGEST_TEXT_BYTES = 32;
/** A map that is longer than this is none: it would name some 20 000 tables. */
const MAP_BYTES_MAX = 1_048_576;

/**
 * What the index consists of: levels[level][position] are table names, and how far into the log they reach; -1 when
 * there are none.
 */
export interface IndexMap {
  readonly commitCheckpoint: number;
  readonly prepareCheckpoint: number;
  readonly levels: readonly (readonly string[])[];
  /** By what the log is known at the end of the tables, in a map of an attribute index; the stream index has none. */
  readonly anchor?: string;
}

/** Where the map of an index in this folder stands. */
export function mapPathOf(folder: string): string {
  return `${folder}/indexmap`;
}

export const EMPTY_INDEX_MAP: IndexMap = { commitCheckpoint: -1, prepareCheckpoint: -1, levels: [] };

function corrupt(what: string, path: string): SkuaError {
  return new SkuaError(
    'index_corrupt',
    `The index map ${path} ${what}. The index is rebuilt from the log; if this recurs, check the disk.`,
    { path },
  );
}

function digestText(body: Uint8Array, digests: Digests): Uint8Array {
  const digest = digests.md5();
  digest.update(body);
  let text = '';
  for (const byte of digest.finish()) text += byte.toString(16).padStart(2, '0');
  return encodeText(text.toUpperCase());
}

/**
 * The text of a map (core/index/FORMAT.md, "The map"). The digest covers everything behind it, its own line end
 * included.
 */
export function formatIndexMap(map: IndexMap, digests: Digests): Uint8Array {
  const lines = ['', '2', `${map.prepareCheckpoint}/${map.commitCheckpoint}`, String(AUTO_MERGE_LEVEL_MAX)];
  map.levels.forEach((tables, level) => tables.forEach((name, position) => lines.push(`${level},${position},${name}`)));
  if (map.anchor !== undefined) lines.push(ANCHOR_BEGIN + map.anchor);
  const body = encodeText(`${lines.join('\n')}\n`);
  const out = new Uint8Array(DIGEST_TEXT_BYTES + body.length);
  out.set(digestText(body, digests));
  out.set(body, DIGEST_TEXT_BYTES);
  return out;
}

/** Reads the text of a map. Throws `index_corrupt`. */
export function parseIndexMap(bytes: Uint8Array, digests: Digests, path: string = INDEX_MAP_PATH): IndexMap {
  const mapCorrupt = (what: string): SkuaError => corrupt(what, path);
  if (bytes.length < DIGEST_TEXT_BYTES) throw mapCorrupt('is cut short');
  const body = bytes.subarray(DIGEST_TEXT_BYTES);
  if (!equalBytes(digestText(body, digests), 0, bytes, 0, DIGEST_TEXT_BYTES))
    throw mapCorrupt('has an MD5 that does not match its text');
  const lines = decodeText(body).split(/\r?\n/);
  const version = lines[1];
  if (version !== '1' && version !== '2') throw mapCorrupt(`is of version ${version}, which is not known`);
  const checkpoints = /^(-?\d{1,16})\/(-?\d{1,16})$/.exec(lines[2] ?? '');
  if (checkpoints === null) throw mapCorrupt('has no checkpoints');
  const prepareCheckpoint = Number(checkpoints[1]);
  const commitCheckpoint = Number(checkpoints[2]);
  if (prepareCheckpoint < -1 || commitCheckpoint < -1) throw mapCorrupt('has a negative checkpoint');
  const entriesFrom = version === '1' ? 3 : 4;
  if (version === '2' && !(Number(lines[3]) >= AUTO_MERGE_LEVEL_MAX))
    throw mapCorrupt('was written with a lower merge limit');
  const rest = lines.slice(entriesFrom).filter((line) => line !== '');
  const anchor = rest.at(-1)?.startsWith(ANCHOR_BEGIN) === true ? rest.pop()!.slice(ANCHOR_BEGIN.length) : undefined;
  if (anchor !== undefined && anchor.length > ANCHOR_LENGTH_MAX) throw mapCorrupt('has an anchor that is too long');
  const levels = parseTables(rest, mapCorrupt);
  if (levels.length > 0 && (prepareCheckpoint < 0 || commitCheckpoint < 0))
    throw mapCorrupt('names tables but no checkpoint');
  return { commitCheckpoint, prepareCheckpoint, levels, ...(anchor !== undefined && { anchor }) };
}

function parseTables(lines: readonly string[], mapCorrupt: (what: string) => SkuaError): string[][] {
  const levels: string[][] = [];
  for (const line of lines) {
    const parts = /^(\d{1,4}),(\d{1,6}),(.{1,64})$/.exec(line);
    if (parts === null || !isTableName(parts[3]!)) throw mapCorrupt(`has a line that names no table: ${line}`);
    const level = Number(parts[1]);
    if (level < levels.length - 1) throw mapCorrupt('names its levels out of order');
    while (levels.length <= level) levels.push([]);
    if (levels[level]!.length !== Number(parts[2])) throw mapCorrupt(`has a gap in level ${level}`);
    levels[level]!.push(parts[3]!);
  }
  return levels;
}

/** Loads the map: null when there is none. Throws `index_corrupt`. */
export async function loadIndexMap(
  storage: Storage,
  digests: Digests,
  folder: string = INDEX_FOLDER,
): Promise<IndexMap | null> {
  const path = mapPathOf(folder);
  const size = await storage.size(path);
  if (size === null) return null;
  if (size > MAP_BYTES_MAX) throw corrupt(`has ${size} bytes`, path);
  const file = await storage.open(path, 'read');
  try {
    return parseIndexMap(await file.read(0, size), digests, path);
  } finally {
    await file.close();
  }
}

/** Replaces the map on disk, all at once: after a crash there is the old one or the new one. */
export async function saveIndexMap(
  map: IndexMap,
  storage: Storage,
  digests: Digests,
  ids: Ids,
  folder: string = INDEX_FOLDER,
): Promise<void> {
  const path = mapPathOf(folder);
  const temp = `${path}.${newGuid(ids)}.indexmap.tmp`;
  const file = await storage.create(temp);
  try {
    await file.writeAt(0, formatIndexMap(map, digests));
    await file.sync();
  } finally {
    await file.close();
  }
  await storage.rename(temp, path);
}

/** Text of a fresh random GUID. */
export function newGuid(ids: Ids): string {
  return guidToText(ids.uuidBytes(), 0);
}
