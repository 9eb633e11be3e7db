import { SkuaError } from '../../base/errors.ts';
import { INDEX_FOLDER, loadIndexMap, mapPathOf } from '../../index/format/index-map.ts';
import { bloomPathOf } from '../../index/format/table-format.ts';
import type { Chunk } from '../../log/api.ts';
import { HEADER_BYTES, parseChunkFileNames } from '../../log/format/chunk-format.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import type { StorageFile } from '../../ports/storage.ts';
import { encodeBase64 } from '../../base/base64.ts';
import type { ObjectWorld } from '../api.ts';
import { newFileKey } from '../format/object-keys.ts';
import {
  createManifest,
  type DroppedObject,
  formatOf,
  INLINE_BYTES_MAX,
  keysOf,
  type ObjectChunk,
  type ObjectErasure,
  type ObjectFile,
  type ObjectManifest,
  type ObjectOngoing,
  type ObjectPoints,
  type ObjectScavenge,
  type ObjectSegment,
} from '../format/manifest.ts';
import { ATTRIBUTE_INDEXES } from '../../attributes/api.ts';
import { attributeFolder } from '../../attributes/format/attribute-folders.ts';
import { type ObjectAttributes } from '../format/manifest-attributes.ts';
import { MARKS_FILE } from '../../streams/format/marks-table.ts';
import type { ObjectStorage } from './tick-storage.ts';
import { STATE_PATH } from './scavenge-slice.ts';
import type { TickLog } from './tick-log.ts';

/** Bytes given to an upload at once. */
const PIECE_BYTES = 1_048_576;
/** Uploads at once. */
const AT_ONCE = 8;
const MAP_ENDING = '/indexmap';
/** Shortest time in milliseconds for finding out what became of a manifest. */
const DECIDE_MS_MIN = 5_000;

interface PublishParts {
  readonly world: ObjectWorld;
  readonly storage: ObjectStorage;
  readonly log: TickLog;
  /** What all the work stands on. */
  readonly base: ObjectManifest;
  readonly scavenge: ObjectScavenge | null;
  /** Keys of dropped objects that have been removed; they need not be remembered. */
  readonly forgotten: ReadonlySet<string>;
  readonly erasure: ObjectErasure | undefined;
  readonly points: ObjectPoints | undefined;
  readonly attributes: ObjectAttributes;
  readonly deadlineMs: number;
}

/**
 * Uploads what is new under fresh keys and names all files in the next manifest. Gives that manifest, or null when
 * another one has taken its number: then nothing of this work counts, and what was uploaded is removed again. A crash
 * before the manifest leaves objects that no manifest names, which a later sweep removes.
 */
export async function publish(parts: PublishParts): Promise<ObjectManifest | null> {
  const { world, base, deadlineMs } = parts;
  const uploads = new Uploads(parts);
  const manifest = await nextManifest(parts, uploads);
  const leftMs = Math.max(DECIDE_MS_MIN, deadlineMs - world.clock.monotonicMs());
  if ((await createManifest(world, manifest, leftMs)) === 'created') return manifest;
  world.log.info('another tick was first; the work of this one is discarded', { manifest: base.number + 1 });
  // What can't be removed now is swept later.
  await world.objects.remove(uploads.keys).catch(() => {});
  return null;
}

async function nextManifest(parts: PublishParts, uploads: Uploads): Promise<ObjectManifest> {
  const { world, log, base, scavenge, forgotten, erasure, points, attributes } = parts;
  const writtenMs = Math.floor(world.clock.nowMs());
  const named = await namedFiles(parts);
  const completed = [...log.table.all()].filter((chunk) => chunk.isCompleted);
  const wanted = [...completed, ...named.filter(({ isInline }) => !isInline)].map(({ name }) => name);
  await uploads.files(wanted.filter((name) => parts.storage.base(name) === undefined));
  const chunks = completed.map((chunk) => namedChunk(chunk, uploads));
  const ongoing = await ongoingOf(parts, uploads);
  const files = await Promise.all(named.map((file) => fileOf(parts, uploads, file)));
  const next: Omit<ObjectManifest, 'dropped'> = {
    ...base,
    format: formatOf(files),
    number: base.number + 1,
    writtenMs,
    boundary: log.boundary,
    logEnd: log.logEnd,
    endsChunk: log.endsChunk,
    chunks,
    ongoing,
    files,
    scavenge,
    attributes,
    ...(erasure !== undefined && { erasure }),
    ...(points !== undefined && { points }),
  };
  const kept = keysOf(next);
  // Older versions did not note which manifest dropped an object: no later one than this did.
  const dropped: DroppedObject[] = base.dropped
    .filter(({ key }) => !forgotten.has(key))
    .map((one) => ({ by: base.number, ...one }));
  for (const key of keysOf(base)) if (!kept.has(key)) dropped.push({ key, droppedMs: writtenMs, by: next.number });
  return { ...next, dropped };
}

function namedChunk(chunk: Chunk, uploads: Uploads): ObjectChunk {
  const { name, startNumber, endNumber, isScavenged, physicalBytes, logicalBytes, mapCount, mapEntryBytes } = chunk;
  return {
    name,
    key: uploads.keyOf(name),
    sizeBytes: chunk.file.file.size,
    startNumber,
    endNumber,
    isScavenged,
    physicalBytes,
    logicalBytes,
    mapBytes: mapCount * mapEntryBytes,
    mapEntryBytes,
  };
}

async function ongoingOf({ log }: PublishParts, uploads: Uploads): Promise<ObjectOngoing | null> {
  const { filling } = log;
  if (filling === null) return null;
  const { name, number, headerHex: header, freshFrom, end, start } = filling;
  const segments: ObjectSegment[] = [...filling.segments];
  if (filling.freshBytes > 0) {
    // Segments grow like the numbers of a binary counter: there are few, and each byte is copied few times.
    let from = freshFrom;
    for (let last = segments.at(-1); last !== undefined && last.to - last.from <= end - from; last = segments.at(-1)) {
      from = last.from;
      segments.pop();
    }
    const source = filling.open();
    const key = await uploads.range(source, HEADER_BYTES + from - start, HEADER_BYTES + end - start);
    await source.close();
    segments.push({ key, from, to: end, crc32: uploads.crcOf(key)! });
  }
  return { name, number, header, segments };
}

interface NamedFile {
  readonly name: string;
  readonly sizeBytes: number;
  readonly isInline: boolean;
}

/** Indexes as their maps name them, the scavenge database, and nothing that was left behind beside them. */
async function namedFiles({ world, storage }: PublishParts): Promise<NamedFile[]> {
  const names = [...(await indexFiles(world, storage, INDEX_FOLDER)), STATE_PATH, MARKS_FILE];
  for (const index of ATTRIBUTE_INDEXES) {
    const files = await indexFiles(world, storage, attributeFolder(index));
    // A map alone says no more than the manifest does of an index.
    if (files.length > 1) names.push(...files);
  }
  const found: NamedFile[] = [];
  for (const name of names) {
    const sizeBytes = await storage.size(name);
    // Instances search tables by range, whatever their size: so only maps stand in the manifest itself.
    if (sizeBytes !== null)
      found.push({ name, sizeBytes, isInline: name.endsWith(MAP_ENDING) && sizeBytes <= INLINE_BYTES_MAX });
  }
  return found;
}

/** The map of an index, and the tables and filters that it names. */
async function indexFiles({ digests }: ObjectWorld, storage: ObjectStorage, folder: string): Promise<string[]> {
  const map = await loadIndexMap(storage, digests, folder);
  const tables = (map?.levels.flat() ?? []).map((name) => `${folder}/${name}`);
  return [mapPathOf(folder), ...tables, ...tables.map(bloomPathOf)];
}

async function fileOf(
  { storage, base }: PublishParts,
  uploads: Uploads,
  { name, sizeBytes, isInline }: NamedFile,
): Promise<ObjectFile> {
  if (!isInline) {
    const key = uploads.keyOf(name);
    const crc32 =
      name !== STATE_PATH ? undefined : (uploads.crcOf(key) ?? base.files.find((file) => file.key === key)?.crc32);
    return { name, key, sizeBytes, ...(crc32 !== undefined && { crc32 }) };
  }
  return { name, key: null, sizeBytes, inline: encodeBase64(await contentOf(storage, name)) };
}

async function contentOf(storage: ObjectStorage, name: string): Promise<Uint8Array> {
  const file = await storage.open(name, 'read');
  try {
    return (await file.read(0, file.size)).slice();
  } finally {
    await file.close();
  }
}

class Uploads {
  readonly keys: string[] = [];
  readonly #byName = new Map<string, string>();
  /** CRC-32 of what was uploaded, by key. */
  readonly #crcs = new Map<string, number>();
  readonly #parts: PublishParts;

  constructor(parts: PublishParts) {
    this.#parts = parts;
  }

  /** Uploads files, several at a time. */
  async files(names: readonly string[]): Promise<void> {
    const left = [...names];
    const work = async (): Promise<void> => {
      for (let name = left.shift(); name !== undefined; name = left.shift())
        this.#byName.set(name, await this.#file(name));
    };
    const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
    // Nothing is under way any more when the first failure is told.
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }

  /** The key of a file that was uploaded, or of one that the manifest before has. */
  keyOf(name: string): string {
    const key = this.#byName.get(name) ?? this.#parts.storage.base(name)?.key ?? null;
    if (key === null)
      throw new SkuaError('io_error', `The file ${name} has no object: this is a defect.`, { path: name });
    return key;
  }

  /** Undefined for an object that was not uploaded here. */
  crcOf(key: string): number | undefined {
    return this.#crcs.get(key);
  }

  async #file(name: string): Promise<string> {
    const file = await this.#parts.storage.open(name, 'read');
    try {
      const proof =
        parseChunkFileNames([name]).length > 0 ? new ChunkProof(this.#parts.world.digests, name, file.size) : null;
      return await this.range(file, 0, file.size, proof);
    } finally {
      await file.close();
    }
  }

  /**
   * Bytes [from, to) of a file, as an object of their own; a whole chunk that is not as it was written is
   * `log_corrupt`.
   */
  async range(file: StorageFile, from: number, to: number, proof: ChunkProof | null = null): Promise<string> {
    const { objects, ids, digests } = this.#parts.world;
    const key = newFileKey(ids);
    this.keys.push(key);
    this.#crcs.set(key, 0);
    const taken = (piece: Uint8Array): void => {
      this.#crcs.set(key, digests.crc32(piece, this.#crcs.get(key)!));
    };
    await objects.upload(key, to - from, piecesOf(file, from, to, proof, taken));
    return key;
  }
}

async function* piecesOf(
  file: StorageFile,
  from: number,
  to: number,
  proof: ChunkProof | null,
  taken: (piece: Uint8Array) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = from; at < to; at += PIECE_BYTES) {
    const piece = await file.read(at, Math.min(PIECE_BYTES, to - at));
    proof?.add(piece);
    taken(piece);
    yield piece;
  }
  proof?.check();
}
