import { equalBytes } from '../../base/bytes.ts';
import { CHUNK_COUNT_MAX, HEADER_BYTES, parseChunkFileNames } from '../../log/format/chunk-format.ts';
import { INDEX_MAP_PATH } from '../../index/format/index-map.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import { firstOfKind, isOfKind } from '../../ports/object-kinds.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { ScavengePoint } from '../../ports/scavenge-state.ts';
import type { ResumedPoint, ScavengePhase } from '../../scavenge/api.ts';
import { DATABASE_FOLDER } from '../../scavenge/format/scavenge-files.ts';
import {
  also,
  flag,
  hexDigits,
  listOf,
  moment,
  oneOf,
  optional,
  orNull,
  record,
  text,
  uuid,
  whole,
  words,
  wrongText,
} from '../../base/shape.ts';
import { MARKS_FILE } from '../../streams/format/marks-table.ts';
import {
  ATTRIBUTE_TABLE_NAME,
  attributesShape,
  firstWrongAttribute,
  isAttributeFile,
  type ObjectAttributes,
} from './manifest-attributes.ts';
import type { Shape } from '../../base/shape.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { LOADS_MAX, UNDECIDED_WAIT_FIRST_MS, UNDECIDED_WAIT_MAX_MS } from '../api.ts';
import { COMMITS, FILES, manifestKey, manifestNumberOf, MANIFESTS } from './object-keys.ts';

/**
 * What makes files on object storage real: the newest manifest names all of them, and the commit number at which the
 * tail of the log begins. Created with `If-None-Match` under a number of its own and never changed; the writer that
 * loses discards its work. Format: core/shared-log/FORMAT.md, "Manifest". Sizes and positions in bytes, times in
 * milliseconds since 1970.
 */
export interface ObjectManifest {
  /**
   * 2 where the log has marks of redaction: what doesn't know of them must not read it. 3 where it has tables of
   * attribute indexes, which a scavenge must know of.
   */
  readonly format: ManifestFormat;
  /** 1 is written when the prefix is created. */
  readonly number: number;
  /** Text of a UUID, drawn with manifest 1: which store this is. */
  readonly storeId: string;
  readonly writtenMs: number;
  readonly chunkSizeBytes: number;
  /** Commits below this number are in the files named here; the tail begins with it. Commit numbers begin with 1. */
  readonly boundary: number;
  /** Position after the last record of the commits below the boundary. */
  readonly logEnd: number;
  /** The last commit below the boundary ended its chunk: the next one starts at the next chunk. */
  readonly endsChunk: boolean;
  /** Completed chunk files in force, ascending. */
  readonly chunks: readonly ObjectChunk[];
  /** The chunk in which `logEnd` lies, as far as it is in segments; null when it has no data below the boundary. */
  readonly ongoing: ObjectOngoing | null;
  /** Every other file, by the name that it has in a data directory. */
  readonly files: readonly ObjectFile[];
  /** Objects that this manifest or one before it dropped, and that may still be there. */
  readonly dropped: readonly DroppedObject[];
  /** State of the tick itself that must change together with the files; null before the first one. */
  readonly scavenge: ObjectScavenge | null;
  /** Of the last run that has ended; absent before the first one. */
  readonly erasure?: ObjectErasure;
  /**
   * The log is a cluster's (core/cluster/replica/README.md, rule 6): members scavenge their own copies, and ticks
   * follow their scavenge points. Once set it stays.
   */
  readonly cluster?: true;
  /** Of a cluster's log; absent until a tick has looked. */
  readonly points?: ObjectPoints;
  /** The attribute indexes that the log has by its setting; absent until a tick has looked. */
  readonly attributes?: ObjectAttributes;
}

type ManifestFormat = 1 | 2 | 3;

/** Numbers of scavenge points, -1 for none. */
export interface ObjectPoints {
  /** The last one below the boundary. */
  readonly seen: number;
  /** The one to which the files have been scavenged. */
  readonly reached: number;
}

export interface ObjectFile {
  /** `index/indexmap`, `index/<guid>`, `index/<guid>.bloomfilter`, `attributes/names/<guid>`, ... */
  readonly name: string;
  /** Key of the object; null where the content is `inline`. */
  readonly key: string | null;
  readonly sizeBytes: number;
  /** Content of a small file (INLINE_BYTES_MAX) in Base64. */
  readonly inline?: string;
  /** Of the object; only for files that have no checksums in themselves, and absent in what older versions wrote. */
  readonly crc32?: number;
}

export interface ObjectChunk {
  /** `chunk-NNNNNN.VVVVVV` */
  readonly name: string;
  readonly key: string;
  readonly sizeBytes: number;
  readonly startNumber: number;
  readonly endNumber: number;
  readonly isScavenged: boolean;
  /** As in the footer, so that opening a chunk costs no request. */
  readonly physicalBytes: number;
  readonly logicalBytes: number;
  readonly mapBytes: number;
  readonly mapEntryBytes: number;
}

export interface ObjectOngoing {
  readonly name: string;
  readonly number: number;
  /** The 128 bytes of its header, in hex. */
  readonly header: string;
  /** Contiguous, from the chunk's start to `logEnd`. */
  readonly segments: readonly ObjectSegment[];
}

/** Bytes [from, to) of the log, by position. */
export interface ObjectSegment {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  /** Of its bytes; absent in what older versions wrote. */
  readonly crc32?: number;
}

export interface DroppedObject {
  readonly key: string;
  /**
   * By the clock of the writer of the manifest that dropped it, and the number of that manifest; absent in what older
   * versions wrote.
   */
  readonly droppedMs: number;
  readonly by?: number;
}

/**
 * What a scavenge has removed is in objects that wait for their own removal still, and at last in none. Times by the
 * store's clock where nothing else is said.
 */
export interface ObjectErasure {
  readonly scavengeId: string;
  /** The manifest that left it out, and when that came into force. */
  readonly manifest: number;
  readonly sinceMs: number;
  /** Until then at the latest traces remain, as long as ticks run. */
  readonly untilMs: number;
  /** When no trace was found any more, by the clock of the tick that looked; null before. */
  readonly goneMs: number | null;
}

/** A scavenge that goes on from tick to tick. */
export interface ObjectScavenge {
  readonly scavengeId: string;
  readonly startedMs: number;
  /** What it was started with, for ticks that go on with it. */
  readonly threshold: number;
  readonly syncOnly: boolean;
  /** It is to begin at a new scavenge point, and has not done so yet. */
  readonly startAfresh?: boolean;
  /** The older point to which it goes, null for one of its own; absent until that is decided. */
  readonly olderPoint?: ResumedPoint | null;
  /** Of one that has ended: the point to which the next run goes, since this one has not reached it. */
  readonly waiting?: ResumedPoint;
  /** Of one that has ended in success: number of the scavenge point to which the files are scavenged now. */
  readonly reached?: number;
  readonly state: 'running' | 'ended';
  /** How far it had come when its last part ended; absent before. */
  readonly progress?: ObjectScavengeProgress;
  /** Null while it is running. */
  readonly endedMs: number | null;
  /** Its end stands in the history streams. */
  readonly isTold: boolean;
  /** Result and error text of one that has ended. */
  readonly result: string | null;
  readonly error: string | null;
}

export interface ObjectScavengeProgress {
  readonly phase: ScavengePhase;
  /** Of the phase, as the part that ended last counted them. */
  readonly chunksDone: number;
  readonly chunksTotal: number;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Of all parts so far. */
  readonly bytesReclaimed: number;
}

/** A file up to this size stands in the manifest itself. */
export const INLINE_BYTES_MAX = 8_192;

/** Keys of all objects that a manifest names as in force. */
export function keysOf({ chunks, ongoing, files }: Pick<ObjectManifest, 'chunks' | 'ongoing' | 'files'>): Set<string> {
  const keys = new Set(chunks.map(({ key }) => key));
  for (const { key } of ongoing?.segments ?? []) keys.add(key);
  for (const { key } of files) if (key !== null) keys.add(key);
  return keys;
}

/** A chunk of 400 000 is at most in so many segments, and a map names some 20 000 tables, each with its filter. */
const SEGMENTS_MAX = 10_000;
/** Of the stream index and three attribute indexes, with their maps, and of all else. */
const FILES_MAX = 160_006;
/** Objects that wait for their removal: more than hours of scavenges drop. */
const DROPPED_MAX = 10_000_000;
/** Bytes of one object: as many as the largest that a store takes, and more. */
const FILE_BYTES_MAX = 4_398_046_511_104;
const CHUNK_BYTES_MAX = 2_147_483_647;
/** Of the text of an error, or the name of a result. */
const WORDS_MAX = 65_536;

const key: Shape<string> = (value, member) =>
  typeof value === 'string' && isOfKind(FILES, value)
    ? null
    : { member, why: 'is not a file key: those are made from a UUID' };
/**
 * Commits, too, are named in what may be left of older manifests: they go by the boundary, never because they stand
 * here.
 */
const droppedKey: Shape<string> = (value, member) =>
  typeof value === 'string' && isOfKind(COMMITS, value) ? null : key(value, member);
const chunkName = text(/^chunk-\d{6}\.\d{6}$/, 'the name of a chunk file');
const fileName: Shape<string> = (value, member) =>
  value === INDEX_MAP_PATH ||
  value === `${DATABASE_FOLDER}/scavenging.db` ||
  value === MARKS_FILE ||
  (typeof value === 'string' && (INDEX_NAME.test(value) || isAttributeFile(value)))
    ? null
    : { member, why: 'is not the name of an index file, of the scavenge database, or of the table of redactions' };
const crc32 = optional(whole(0, 4_294_967_295));
const fileBytes = whole(0, FILE_BYTES_MAX);
const chunkBytes = whole(0, CHUNK_BYTES_MAX);
const chunkNumber = whole(0, CHUNK_COUNT_MAX - 1);

const olderPoint = record<ResumedPoint>({
  point: record<ScavengePoint>({
    position: whole(0),
    eventNumber: whole(0),
    effectiveNowMs: whole(Number.MIN_SAFE_INTEGER),
    effectiveNowTicks: optional(whole(0, 9_999)),
    threshold: whole(Number.MIN_SAFE_INTEGER),
    emptiesDeleted: optional(oneOf(true)),
  }),
  why: oneOf('unfinished', 'unreached'),
});

const scavenge = record<ObjectScavenge>({
  scavengeId: uuid,
  startedMs: moment,
  threshold: whole(Number.MIN_SAFE_INTEGER),
  syncOnly: flag,
  startAfresh: optional(flag),
  olderPoint: optional(orNull(olderPoint)),
  waiting: optional(olderPoint),
  reached: optional(whole(-1)),
  state: oneOf('running', 'ended'),
  endedMs: orNull(moment),
  isTold: flag,
  result: orNull(words(WORDS_MAX)),
  error: orNull(words(WORDS_MAX)),
  progress: optional(
    record<ObjectScavengeProgress>({
      phase: oneOf(
        'Starting',
        'Accumulation',
        'Calculation',
        'Chunk execution',
        'Chunk merging',
        'Index execution',
        'Cleaning',
      ),
      chunksDone: whole(0),
      chunksTotal: whole(0),
      bytesDone: whole(0),
      bytesTotal: whole(0),
      bytesReclaimed: whole(Number.MIN_SAFE_INTEGER),
    }),
  ),
});

/** What a manifest may say, before what it says is looked at together. */
const manifestShape = record<ObjectManifest>({
  format: oneOf(1, 2, 3),
  number: whole(1),
  storeId: uuid,
  writtenMs: moment,
  chunkSizeBytes: whole(1, CHUNK_BYTES_MAX),
  boundary: whole(1),
  logEnd: whole(0),
  endsChunk: flag,
  chunks: listOf(
    also(
      record<ObjectChunk>({
        name: chunkName,
        key,
        sizeBytes: fileBytes,
        startNumber: chunkNumber,
        endNumber: chunkNumber,
        isScavenged: flag,
        physicalBytes: chunkBytes,
        logicalBytes: whole(0),
        mapBytes: chunkBytes,
        mapEntryBytes: oneOf(8, 12),
      }),
      ({ name, startNumber }) => wrongName(name, startNumber),
    ),
    CHUNK_COUNT_MAX,
  ),
  ongoing: orNull(
    also(
      record<ObjectOngoing>({
        name: chunkName,
        number: chunkNumber,
        header: hexDigits(2 * HEADER_BYTES),
        segments: listOf(record<ObjectSegment>({ key, from: whole(0), to: whole(0), crc32 }), SEGMENTS_MAX),
      }),
      ({ name, number }) => wrongName(name, number),
    ),
  ),
  files: listOf(
    record<ObjectFile>({
      name: fileName,
      key: orNull(key),
      sizeBytes: fileBytes,
      inline: optional(words(2 * INLINE_BYTES_MAX)),
      crc32,
    }),
    FILES_MAX,
  ),
  dropped: listOf(record<DroppedObject>({ key: droppedKey, droppedMs: moment, by: optional(whole(1)) }), DROPPED_MAX),
  scavenge: orNull(scavenge),
  erasure: optional(
    record<ObjectErasure>({
      scavengeId: uuid,
      manifest: whole(1),
      sinceMs: moment,
      untilMs: moment,
      goneMs: orNull(moment),
    }),
  ),
  cluster: optional(oneOf(true)),
  points: optional(record<ObjectPoints>({ seen: whole(-1), reached: whole(-1) })),
  attributes: optional(attributesShape),
});

function wrongName(name: string, number: number): { readonly member: string; readonly why: string } | null {
  return parseChunkFileNames([name])[0]!.number === number
    ? null
    : { member: name, why: `is not the name of chunk ${number}` };
}

/** A manifest is text: the SHA-256 of everything behind the first line, in hex, and the manifest as JSON. */

const DIGEST_CHARACTERS = 64;
/** Names of index tables, and of their filters. */
const INDEX_NAME = /^index\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(\.bloomfilter)?$/;
/** Names of tables of the stream index among the files of a manifest. */
export const TABLE_NAME = /^index\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function encodeManifest(manifest: ObjectManifest, digests: Digests): Uint8Array {
  const body = `${JSON.stringify(manifest)}\n`;
  return encodeText(`${digestOf(encodeText(body), digests)}\n${body}`);
}

/** Throws `manifest_invalid`. `number` is the one in the key. */
export function decodeManifest(key: string, number: number, bytes: Uint8Array, digests: Digests): ObjectManifest {
  const fail = (what: string) =>
    new SkuaError(
      'manifest_invalid',
      `The manifest ${key} ${what}. Manifests are never changed, so something else wrote it: restore it from a version or a backup of the bucket.`,
      { key },
    );
  const body = bytes.subarray(DIGEST_CHARACTERS + 1);
  if (body.length === 0 || bytes[DIGEST_CHARACTERS] !== 10) throw fail('is cut short');
  if (decodeText(bytes.subarray(0, DIGEST_CHARACTERS)) !== digestOf(body, digests))
    throw fail('has a digest that does not match its text');
  let value: unknown;
  try {
    value = JSON.parse(decodeText(body));
  } catch {
    throw fail('is not JSON');
  }
  const { format } = (value ?? {}) as { readonly format?: unknown };
  if (typeof format === 'number' && format !== 1 && format !== 2 && format !== 3)
    throw fail(`is of format ${format}, which is not known: use a newer version`);
  const unsound = manifestShape(value, '');
  if (unsound !== null)
    throw new SkuaError('manifest_invalid', `${fail(wrongText(unsound)).message} None of it was used.`, {
      key,
      member: unsound.member,
    });
  const manifest = value as ObjectManifest;
  const wrong = firstWrong(manifest, number);
  if (wrong !== null) throw fail(`has no valid ${wrong}`);
  return manifest;
}

/** What no member says alone. Null when all is well. */
function firstWrong(m: ObjectManifest, number: number): string | null {
  if (m.number !== number) return 'number';
  // Instances search tables by range, so one that stood in the manifest itself would be overlooked.
  for (const { name, key } of m.files)
    if (key === null && (TABLE_NAME.test(name) || ATTRIBUTE_TABLE_NAME.test(name)))
      return `object for the index table ${name}`;
  const marks = m.files.find(({ name }) => name === MARKS_FILE);
  if (marks?.key === null || (m.format !== 3 && (m.format === 2) !== (marks !== undefined)))
    return 'table of redactions for its format';
  const attribute = firstWrongAttribute(m);
  if (attribute !== null) return attribute;
  let nextChunk = 0;
  for (const chunk of m.chunks) {
    if (chunk.startNumber !== nextChunk || chunk.endNumber < chunk.startNumber)
      return `place for the chunk ${chunk.name}`;
    nextChunk = chunk.endNumber + 1;
  }
  if (m.ongoing === null) return m.logEnd > nextChunk * m.chunkSizeBytes ? 'file for the end of the log' : null;
  let at = m.ongoing.number * m.chunkSizeBytes;
  if (m.ongoing.number !== nextChunk) return `place for the chunk ${m.ongoing.name}`;
  for (const segment of m.ongoing.segments) {
    if (segment.from !== at || segment.to <= segment.from) return `order of segments in ${m.ongoing.name}`;
    at = segment.to;
  }
  return at === m.logEnd ? null : 'logEnd';
}

function digestOf(body: Uint8Array, digests: Digests): string {
  const digest = digests.sha256();
  digest.update(body);
  let text = '';
  for (const byte of digest.finish()) text += byte.toString(16).padStart(2, '0');
  return text;
}

/** The format that a manifest with these files has. */
export function formatOf(files: readonly Pick<ObjectFile, 'name'>[]): ManifestFormat {
  if (files.some(({ name }) => ATTRIBUTE_TABLE_NAME.test(name))) return 3;
  return files.some(({ name }) => name === MARKS_FILE) ? 2 : 1;
}

/** Number of the newest manifest: one LIST of one key, where no stranger's lies before it. Null when there is none. */
export async function newestManifestNumber(objects: ObjectStore): Promise<number | null> {
  const first = await firstOfKind(objects, MANIFESTS);
  return first === null ? null : manifestNumberOf(first.key);
}

/** The newest manifest; null when there is none, and the prefix holds no store. Throws `manifest_invalid`. */
export async function newestManifest(objects: ObjectStore, digests: Digests): Promise<ObjectManifest | null> {
  for (let tries = 0; tries < LOADS_MAX; tries++) {
    const number = await newestManifestNumber(objects);
    if (number === null) return null;
    // An old one may be swept away between the two requests; the newest never is.
    const manifest = await readManifest(objects, number, digests);
    if (manifest !== null) return manifest;
  }
  throw new SkuaError(
    'manifest_invalid',
    `The newest manifest under ${objects.place} is listed but can't be read: check that the store lists what it holds.`,
    {},
  );
}

/** Null when there is none with this number (any more). */
export async function readManifest(
  objects: ObjectStore,
  number: number,
  digests: Digests,
): Promise<ObjectManifest | null> {
  const key = manifestKey(number);
  const bytes = await objects.get(key);
  return bytes === null ? null : decodeManifest(key, number, bytes, digests);
}

/**
 * Puts a manifest in force under its number, unless another took that number: then `lost`, and its writer discards
 * its work. When the store does not say what became of it the same bytes are put there again; two manifests never have
 * the same bytes, since the keys of their files are drawn anew. Rejects with `outcome_unknown` after `deadlineMs`.
 */
export async function createManifest(
  world: { readonly objects: ObjectStore; readonly clock: Clock; readonly digests: Digests },
  manifest: ObjectManifest,
  deadlineMs = 60_000,
): Promise<'created' | 'lost'> {
  const { objects, clock, digests } = world;
  const key = manifestKey(manifest.number);
  const bytes = encodeManifest(manifest, digests);
  const untilMs = clock.monotonicMs() + deadlineMs;
  let isUndecided = false;
  for (let waitMs = UNDECIDED_WAIT_FIRST_MS; ; waitMs = Math.min(2 * waitMs, UNDECIDED_WAIT_MAX_MS)) {
    let there: Uint8Array | null;
    try {
      if ((await objects.create(key, bytes)) === 'created') return 'created';
      // It may be ours, as the reply of a create can be lost below the store: until that has been looked at nothing is
      // decided.
      isUndecided = true;
      there = await objects.get(key);
    } catch (error) {
      if (!isUndecided && !isSkuaError(error, 'outcome_unknown')) throw error;
      isUndecided = true;
      if (clock.monotonicMs() >= untilMs)
        throw new SkuaError(
          'outcome_unknown',
          `It is not known whether the manifest ${key} was written: ${objects.place} does not answer.`,
          { key },
          error,
        );
      await clock.sleep(waitMs);
      continue;
    }
    if (there === null)
      throw new SkuaError(
        'outcome_unknown',
        `The manifest ${key} existed and is gone: newer ones have followed, so it is unknown who wrote it.`,
        { key },
      );
    return there.length === bytes.length && equalBytes(there, 0, bytes, 0, bytes.length) ? 'created' : 'lost';
  }
}
