import { i32, i64 } from '../base/bytes.ts';
import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidToText } from '../base/guid.ts';
import type { Digests } from '../ports/digests.ts';
import {
  DOCUMENT_BYTES_MAX,
  type FileFormat,
  lineParts,
  type Inspected,
  note,
  type Part,
  section,
  wholeOf,
} from '../ports/file-format.ts';
import type { StorageFile } from '../ports/storage.ts';
import { decodeText } from '../base/text.ts';
import { beginsAsBlockSums, decodeBlockSums } from './format/block-sums-file.ts';
import { HEADER_BYTES } from './format/chunk-format.ts';
import { chunkParts } from './chunk-parts.ts';
import { decodeScrubbed, SCRUBBED_CHUNKS_FORMAT } from './format/scrubbed-file.ts';
import { beginsAsRecord, crcText, READ_BYTES, RECORD_HEAD_BYTES, recordParts } from './record-parts.ts';
import { FRAME_BYTES, isRecordLength } from './format/records.ts';

export { recordPart, recordParts } from './record-parts.ts';

/** The files of the log, for programs that look into them. */

const CHUNK_NAMES = [/(?<=^|\/)chunk-\d{6}\.\d{6}$/, /(?<=^|\/)[0-9a-f]{8}-[0-9a-f-]{27}(?:\.merge)?\.scavenge$/];

/** A chunk, completed, being written, or in part. */
export const CHUNK: FileFormat = {
  kind: 'chunk',
  title: 'chunk of the log',
  names: CHUNK_NAMES,
  begins: (head) =>
    head.length >= HEADER_BYTES &&
    head[0] === 2 &&
    (head[1] === 2 || head[1] === 3) &&
    i32(head, 2) > 0 &&
    head.subarray(36, HEADER_BYTES).every((byte) => byte === 0),
  parts: chunkParts,
};

/** Records one behind the other, without anything around them. */
export const SEGMENT: FileFormat = {
  kind: 'segment',
  title: 'records of the log',
  names: [/(?<=^|\/)filling\/chunk-\d{6}\.\d{6}\.tail$/, /(?<=^|\/)chunk-\d{6}\.\d{6}\.rest$/],
  begins: (head, sizeBytes) =>
    head.length > RECORD_HEAD_BYTES &&
    isRecordLength(i32(head, 0)) &&
    i32(head, 0) + FRAME_BYTES <= sizeBytes &&
    beginsAsRecord(head),
  parts: ({ file }) => recordParts({ file, from: 0, to: file.size, position: -1 }),
};

const CHECKPOINT_BYTES = 8;

const CHECKPOINT: FileFormat = {
  kind: 'checkpoint',
  title: 'checkpoint',
  names: [/(?<=^|\/)(?:writer|chaser|epoch|proposal|truncate|tag)\.chk$/],
  async *parts({ file, key }) {
    const name = key.slice(key.lastIndexOf('/') + 1);
    const bytes = await file.read(0, CHECKPOINT_BYTES);
    if (bytes.length < CHECKPOINT_BYTES)
      throw new SkuaError(
        'checkpoint_corrupt',
        `${name} has ${bytes.length} bytes instead of ${CHECKPOINT_BYTES}. Restore the file from a backup.`,
        { file: name, offset: bytes.length },
      );
    const value = i64(bytes, 0);
    const [member, meaning] = MEANINGS[name.slice(0, name.indexOf('.'))] ?? ['value', ''];
    yield section('checkpoint', { [member]: value, meaning: value === -1 ? 'none' : meaning });
    if (file.size > CHECKPOINT_BYTES)
      yield {
        kind: 'damage',
        offset: CHECKPOINT_BYTES,
        error: new SkuaError(
          'checkpoint_corrupt',
          `${name} has ${file.size} bytes instead of ${CHECKPOINT_BYTES}. The first ones count.`,
          { file: name, offset: CHECKPOINT_BYTES },
        ),
      };
  },
};

const MEANINGS: Readonly<Record<string, readonly [string, string]>> = {
  writer: ['position', 'the log is durable up to here'],
  chaser: ['position', 'the log is indexed up to here'],
  epoch: ['position', 'the newest epoch record'],
  proposal: ['number', 'the newest epoch that was proposed'],
  truncate: ['position', 'the next start truncates the log here'],
  tag: ['number', 'a tag of the directory, of newer versions of EventStoreDB'],
};

const BLOCK_SUMS: FileFormat = {
  kind: 'block-sums',
  title: 'checksums of the chunk being written',
  names: [/(?<=^|\/)block-sums$/],
  begins: beginsAsBlockSums,
  async *parts({ file, world: { digests } }) {
    const found = file.size > DOCUMENT_BYTES_MAX ? 'not-ours' : decodeBlockSums(await wholeOf(file), digests);
    if (found === 'not-ours')
      throw new SkuaError(
        'checkpoint_corrupt',
        `${file.path} was changed or damaged. It is an auxiliary file that the next start recreates: delete it.`,
        { file: file.path, offset: 0 },
      );
    const { chunkNumber, chunkId, end, sequence, epoch, sums } = found;
    yield section('block sums', {
      chunkNumber,
      chunkId: guidToText(chunkId, 0),
      endOffset: end,
      commitSlotSequence: sequence,
      epochPosition: epoch.position,
      epochBytes: epoch.bytes.length,
      blocks: sums.length,
    });
    for (const [block, sum] of sums.entries())
      yield {
        kind: 'record',
        group: 'blocks',
        offset: BLOCK_STEP_BYTES * block,
        describe: () => ({ fields: { block, crc32: crcText(sum) } }),
      };
  },
};

/** Blocks are those of the cache. */
const BLOCK_STEP_BYTES = 65_536;

const SCRUBBED: FileFormat = {
  kind: 'proven-chunks',
  title: 'chunks with verified checksums',
  names: [/(?<=^|\/)proven-chunks$/],
  begins: (head) => decodeText(head).startsWith(SCRUBBED_CHUNKS_FORMAT),
  parts: (looked) => scrubbedParts(looked, SCRUBBED_CHUNKS_FORMAT),
};

/** Which chunks or tables were compared with their checksums. */
export async function* scrubbedParts(
  { file, world: { digests } }: Inspected,
  format: string,
): AsyncGenerator<Part, void, undefined> {
  const bytes = await wholeOf(file);
  try {
    for (const [name, { sizeBytes, modifiedMs, scrubbedMs }] of decodeScrubbed(bytes, digests, file.path, format))
      yield {
        kind: 'record',
        group: 'files',
        offset: null,
        describe: () => ({ fields: { name, sizeBytes, modifiedMs, provenMs: scrubbedMs } }),
      };
  } catch (error) {
    if (!isSkuaError(error, 'io_error')) throw error;
    yield { kind: 'damage', offset: 0, error };
    yield* lineParts(bytes);
  }
}

const ID: FileFormat = {
  kind: 'log-id',
  title: 'id of the log of which the directory is a replica',
  names: [/(?<=^|\/)log-id$/],
  parts: (looked) => idParts(looked),
};

const UUID_LINE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\s?$/;

/** A file that holds a UUID and a line end. */
export async function* idParts({ file }: Inspected): AsyncGenerator<Part, void, undefined> {
  const bytes = (await file.read(0, 64)).slice();
  const text = decodeText(bytes);
  if (file.size <= bytes.length && UUID_LINE.test(text)) {
    yield section('id', { id: text.trim() });
    return;
  }
  yield {
    kind: 'damage',
    offset: 0,
    error: new SkuaError('checkpoint_corrupt', `${file.path} is not a UUID.`, { file: file.path, offset: 0 }),
  };
  yield* lineParts(bytes);
}

const MARKS: Readonly<Record<string, string>> = {
  restoring: 'A restore was started here and is unfinished: no node starts on the directory.',
  'copy-unfinished': 'A file copy was started here and is unfinished: the same command completes it.',
  'scavenge-due':
    'This replica was truncated and fetched files from the bucket: what its scavenges had removed may be there again until one has succeeded.',
};

const MARK: FileFormat = {
  kind: 'marker',
  title: 'marker',
  names: [/(?<=^|\/)(?:restoring|copy-unfinished|scavenge-due)$/],
  async *parts({ file, key }) {
    yield note(Object.entries(MARKS).find(([name]) => key.startsWith(name))?.[1] ?? 'A marker.');
    yield* lineParts(await wholeOf(file));
  },
};

export const LOG_FORMATS: readonly FileFormat[] = [CHUNK, SEGMENT, CHECKPOINT, BLOCK_SUMS, SCRUBBED, ID, MARK];

/** CRC-32 of a stretch of a file. */
export async function crcOf(file: StorageFile, digests: Digests): Promise<number> {
  let sum = 0;
  for (let at = 0; at < file.size;) {
    const bytes = await file.read(at, Math.min(READ_BYTES, file.size - at));
    if (bytes.length === 0) break;
    sum = digests.crc32(bytes, sum);
    at += bytes.length;
  }
  return sum;
}
