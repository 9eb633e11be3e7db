import { EXISTENCE_CHECKPOINT_PATH, EXISTENCE_DATA_PATH } from '../../index/format/existence-files.ts';
import { INDEX_FOLDER, INDEX_MAP_PATH } from '../../index/format/index-map.ts';
import {
  CHUNK_COUNT_MAX,
  HEADER_BYTES,
  parseChunkFileNames,
  type ChunkFileName,
} from '../../log/format/chunk-format.ts';
import { isProofName, PROOF_FOLDER, PROOF_HEAD_BYTES } from '../../integrity/format/chain-layout.ts';
import { DATABASE_FOLDER } from '../../scavenge/format/scavenge-files.ts';
import { MARKS_FILE } from '../../streams/format/marks-table.ts';
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
  type Shape,
  type Wrong,
} from '../../base/shape.ts';
import type {
  Manifest,
  ManifestChunk,
  ManifestFile,
  ManifestIndex,
  ManifestProof,
  ManifestSegment,
  ManifestTail,
} from './snapshot-manifest.ts';
import type { SnapshotCheckpoints } from '../../store/api.ts';

/**
 * What a manifest may say. A repository is a place that others may write to, and a restore writes what a manifest
 * names: so a name is one of those that a data directory has by this table, each once and for its own content, and
 * never a path that leads elsewhere.
 */

/** Of a table of the index, and of its bloom filter. */
const TABLE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(\.bloomfilter)?$/;
const INDEX_PATHS: ReadonlySet<string> = new Set([INDEX_MAP_PATH, EXISTENCE_DATA_PATH, EXISTENCE_CHECKPOINT_PATH]);
export const DATABASE_PATH = `${DATABASE_FOLDER}/scavenging.db`;

/** Index map, tables, bloom filters, and the files of the existence filter. */
export function isIndexPath(path: string): boolean {
  return INDEX_PATHS.has(path) || isIn(INDEX_FOLDER, path, (name) => TABLE.test(name));
}

export function isProofPath(path: string): boolean {
  return isIn(PROOF_FOLDER, path, isProofName);
}

export function isMarksPath(path: string): boolean {
  return path === MARKS_FILE;
}

function isIn(folder: string, path: string, isName: (name: string) => boolean): boolean {
  return path.startsWith(`${folder}/`) && isName(path.slice(folder.length + 1));
}

/** Bytes of one file, 4 TiB: as many as no disk gives to one, and few enough that sums of them stay exact. */
export const FILE_BYTES_MAX = 4_398_046_511_104;
/** A map of one MiB names some 20 000 tables, each with its filter, and the others are three. */
const INDEX_FILES_MAX = 40_003;
/** A file of leaves for each chunk, a receipt for each rewriting, and the chain. */
const PROOFS_MAX = 1_000_001;
/** A table of marks is read at once: a million of them, each of which names some metadata. */
const MARKS_BYTES_MAX = 268_435_456;
/** Of the data of a chunk: its header counts them with 31 bits. */
export const CHUNK_BYTES_MAX = 2_147_483_647;
/** Pieces of the chunk that is being written: far more than backups make of it. */
const SEGMENTS_MAX = 10_000;

const blob = hexDigits(64);
const position = whole(0);
const file = (path: Shape<string>) => ({ blob, sizeBytes: whole(0, FILE_BYTES_MAX), path });
const pathOf =
  (isSound: (path: string) => boolean, what: string): Shape<string> =>
  (value, member) => {
    const wrong = text(/^[\x21-\x7e]{1,128}$/, what)(value, member);
    return (
      wrong ?? (isSound(value as string) ? null : { member, why: `is ${JSON.stringify(value)}, which is not ${what}` })
    );
  };

const chunkPath = pathOf(isChunkPath, 'the name of a chunk file');

export function isChunkPath(path: string): boolean {
  return chunkOf(path) !== null;
}

function chunkOf(path: string): ChunkFileName | null {
  return parseChunkFileNames([path])[0] ?? null;
}

export const checkpointsShape = record<SnapshotCheckpoints>({
  writer: position,
  chaser: position,
  epoch: whole(-1),
  proposal: whole(-1),
});

const chunk = record<ManifestChunk>({
  ...file(chunkPath),
  startNumber: whole(0, CHUNK_COUNT_MAX - 1),
  endNumber: whole(0, CHUNK_COUNT_MAX - 1),
  isScavenged: flag,
  md5: hexDigits(32),
  provenBlob: optional(blob),
  fromMs: orNull(whole(Number.MIN_SAFE_INTEGER)),
  toMs: orNull(whole(Number.MIN_SAFE_INTEGER)),
});

const indexFile = record<ManifestFile>(file(pathOf(isIndexPath, 'the name of a file of an index')));

const tail = record<ManifestTail>({
  number: whole(0, CHUNK_COUNT_MAX - 1),
  path: chunkPath,
  header: hexDigits(2 * HEADER_BYTES),
  segments: listOf(
    record<ManifestSegment>({ blob, sizeBytes: whole(0, CHUNK_BYTES_MAX), from: position, to: position }),
    SEGMENTS_MAX,
  ),
});

/** A file as a draft of a backup has it, before there is a manifest. */
export const draftFileShape: Shape<ManifestFile> = (value, member) => {
  const isChunk =
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { path?: unknown }).path === 'string' &&
    chunkOf((value as { path: string }).path) !== null;
  return isChunk ? chunk(value, member) : indexFile(value, member);
};

const index = record<ManifestIndex>({ commitCheckpoint: whole(-1), files: listOf(indexFile, INDEX_FILES_MAX) });

export const manifestShape: Shape<Manifest> = also(
  record<Manifest>({
    format: oneOf(1, 2),
    id: uuid,
    nodeId: uuid,
    createdMs: moment,
    madeMs: optional(moment),
    cause: oneOf('manual', 'scheduled', 'shipping'),
    chunkSizeBytes: whole(1, CHUNK_BYTES_MAX),
    checkpoints: checkpointsShape,
    chunks: listOf(chunk, CHUNK_COUNT_MAX),
    tail: orNull(tail),
    index: orNull(index),
    scavengeDb: orNull(record<ManifestFile>(file(pathOf((path) => path === DATABASE_PATH, `"${DATABASE_PATH}"`)))),
    proofs: optional(
      listOf(
        record<ManifestProof>({
          ...file(pathOf(isProofPath, 'the name of a file of the chain of hashes')),
          head: hexDigits(2 * PROOF_HEAD_BYTES, 0),
        }),
        PROOFS_MAX,
      ),
    ),
    redactions: optional(
      record<ManifestFile>({ ...file(pathOf(isMarksPath, `"${MARKS_FILE}"`)), sizeBytes: whole(0, MARKS_BYTES_MAX) }),
    ),
  }),
  (manifest) =>
    wrongFormat(manifest) ?? wrongTime(manifest) ?? wrongPlace(manifest) ?? wrongTail(manifest) ?? namedTwice(manifest),
);

function wrongFormat({ format, redactions }: Manifest): Wrong | null {
  return (format === 2) === (redactions !== undefined)
    ? null
    : {
        member: 'format',
        why: `is ${format}, and there is ${redactions === undefined ? 'no' : 'a'} table of redactions`,
      };
}

function wrongTime({ createdMs, madeMs = 0 }: Manifest): Wrong | null {
  return madeMs <= createdMs ? null : { member: 'madeMs', why: `is ${madeMs}, behind createdMs, ${createdMs}` };
}

/** Chunks follow one another from the first on, each under a name of its own number. */
function wrongPlace({ chunks, tail: last }: Manifest): Wrong | null {
  let next = 0;
  for (const [i, { path, startNumber, endNumber }] of chunks.entries()) {
    if (startNumber !== next || endNumber < startNumber)
      return {
        member: `chunks[${i}].startNumber`,
        why: `is ${startNumber}, and the chunk before it ends before ${next}`,
      };
    if (chunkOf(path)!.number !== startNumber)
      return { member: `chunks[${i}].path`, why: `is "${path}", which is not the name of chunk ${startNumber}` };
    next = endNumber + 1;
  }
  if (last === null) return null;
  if (last.number !== next)
    return { member: 'tail.number', why: `is ${last.number}, and the chunks before it end before ${next}` };
  return chunkOf(last.path)!.number === last.number
    ? null
    : { member: 'tail.path', why: `is "${last.path}", which is not the name of chunk ${last.number}` };
}

/** The pieces of the chunk that was being written follow one another, within the chunk. */
function wrongTail({ tail: last, chunkSizeBytes }: Manifest): Wrong | null {
  if (last === null) return null;
  let at = last.number * chunkSizeBytes;
  const end = at + chunkSizeBytes;
  for (const [i, { from, to, sizeBytes }] of last.segments.entries()) {
    if (from !== at || to <= from || to > end || sizeBytes !== to - from)
      return {
        member: `tail.segments[${i}]`,
        why: `is ${sizeBytes} bytes from ${from} to ${to}, and the log goes on at ${at}`,
      };
    at = to;
  }
  return null;
}

/** On a file system that takes large letters for small ones, two names are one. */
function namedTwice({ chunks, tail: last, index: of, scavengeDb, proofs = [], redactions }: Manifest): Wrong | null {
  const seen = new Set<string>();
  const lists: readonly (readonly [string, readonly { readonly path: string }[]])[] = [
    ['chunks', chunks],
    ['tail', last === null ? [] : [last]],
    ['index.files', of?.files ?? []],
    ['scavengeDb', scavengeDb === null ? [] : [scavengeDb]],
    ['proofs', proofs],
    ['redactions', redactions === undefined ? [] : [redactions]],
  ];
  for (const [member, files] of lists) {
    for (const [i, { path }] of files.entries()) {
      const name = path.toLowerCase();
      if (seen.has(name)) return { member: `${member}[${i}].path`, why: `is "${path}", which is named before` };
      seen.add(name);
    }
  }
  return null;
}
