import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidToText } from '../base/guid.ts';
import { crcOf, recordParts } from '../log/format.ts';
import {
  damageOf,
  documentParts,
  type FileFormat,
  type FormatWorld,
  lineParts,
  type Inspected,
  note,
  type Part,
  section,
  wholeOf,
} from '../ports/file-format.ts';
import { decodeText } from '../base/text.ts';
import { type Commit, COMMIT_HEADER_BYTES, decodeCommitObject } from './format/commit-object.ts';
import { commitNumberOf, manifestNumberOf } from './format/object-keys.ts';
import { decodeManifest, newestManifest, type ObjectManifest } from './format/manifest.ts';

/** The objects of a log in a bucket, for inspection. */

const COMMIT_MAGIC = 'SkuaLogC';

const COMMIT: FileFormat = {
  kind: 'commit',
  title: 'commit of a log in object storage',
  names: [/(?<=^|\/)log\/\d{20}$/],
  begins: (head) => decodeText(head.subarray(0, COMMIT_MAGIC.length)) === COMMIT_MAGIC,
  parts: commitParts,
};

async function* commitParts({ file, key, world: { digests } }: Inspected): AsyncGenerator<Part, void, undefined> {
  const bytes = await wholeOf(file);
  const number = commitNumberOf(key);
  try {
    const { commit, carried } = decodeCommitObject(key, number ?? numberIn(bytes), bytes, digests);
    yield section('commit', factsOf(commit, carried.length));
    yield* recordsOf(file, COMMIT_HEADER_BYTES, commit);
    let at = COMMIT_HEADER_BYTES + commit.records.length;
    // A copy of commits before it, which have objects of their own.
    for (const one of carried) {
      const offset = at;
      yield {
        kind: 'record',
        group: 'carried commits',
        offset,
        position: one.start,
        describe: () => ({ fields: factsOf(one, 0) }),
      };
      at += COMMIT_HEADER_BYTES + one.records.length;
    }
  } catch (error) {
    yield damageOf(error, 0);
    if (bytes.length <= COMMIT_HEADER_BYTES) return;
    yield note('These records can be read despite the damage.');
    yield* recordParts({ file, from: COMMIT_HEADER_BYTES, to: bytes.length, position: -1 });
  }
}

function recordsOf(
  file: Inspected['file'],
  from: number,
  { start, records }: Commit,
): AsyncGenerator<Part, void, undefined> {
  return recordParts({ file, from, to: from + records.length, position: start });
}

function factsOf({ number, writer, nonce, start, end, endsChunk, records }: Commit, carried: number) {
  return {
    number,
    startPosition: start,
    endPosition: end,
    recordsBytes: records.length,
    endsChunk,
    carried,
    writer: guidToText(writer, 0),
    nonce: guidToText(nonce, 0),
  };
}

/** Of a commit that stands under another name. */
function numberIn(bytes: Uint8Array): number {
  return bytes.length < COMMIT_HEADER_BYTES
    ? 0
    : new DataView(bytes.buffer, bytes.byteOffset).getUint32(16, true) +
        4_294_967_296 * new DataView(bytes.buffer, bytes.byteOffset).getInt32(20, true);
}

const MANIFEST: FileFormat = {
  kind: 'manifest',
  title: 'manifest of a log in object storage',
  names: [/(?<=^|\/)manifest\/\d{15}$/],
  async *parts({ file, key, world: { digests } }) {
    const bytes = await wholeOf(file);
    try {
      yield* documentParts(decodeManifest(key, manifestNumberOf(key)!, bytes, digests), 'manifest');
    } catch (error) {
      yield damageOf(error, 0);
      yield* lineParts(bytes);
    }
  },
};

/** What a manifest calls an object. */
interface Named {
  readonly name: string;
  readonly kind: 'chunk' | 'segment' | 'file' | 'dropped';
  readonly from?: number;
  readonly to?: number;
  readonly crc32?: number;
}

const FILE: FileFormat = {
  kind: 'file-object',
  title: 'file of a log in object storage',
  names: [/(?<=^|\/)files\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  async *parts(looked) {
    const { file, key, world } = looked;
    const manifest = await newestOf(world);
    const named = manifest === null ? null : nameOf(manifest, key);
    yield section('object', {
      manifest: manifest?.number ?? null,
      name: named?.name ?? null,
      use: named === null ? 'no manifest names it' : USES[named.kind],
      startPosition: named?.from ?? null,
      endPosition: named?.to ?? null,
    });
    if (named?.crc32 !== undefined && (await crcOf(file, world.digests)) !== named.crc32)
      yield {
        kind: 'damage',
        offset: 0,
        error: new SkuaError(
          'log_corrupt',
          `The object ${key} does not match its CRC-32 in manifest ${manifest!.number}. Objects are never changed, so something else wrote it: restore it from a version or a backup of the bucket.`,
          { key, offset: 0 },
        ),
      };
    if (named?.kind === 'segment') {
      yield* recordParts({ file, from: 0, to: file.size, position: named.from! });
      return;
    }
    const format = await world.formatOf(named?.name ?? '', file);
    if (format === null || format === FILE) yield note('Its contents are of an unknown kind.');
    else yield* format.parts({ ...looked, key: named?.name ?? key });
  },
};

const USES: Readonly<Record<Named['kind'], string>> = {
  chunk: 'a chunk in use',
  segment: 'a part of the chunk that is being filled',
  file: 'a file in use',
  dropped: 'nothing any more: it is waiting to be removed',
};

/** The newest manifest of the place; null where there is none that can be read. */
async function newestOf({ objects, digests }: FormatWorld): Promise<ObjectManifest | null> {
  try {
    return await newestManifest(objects, digests);
  } catch (error) {
    if (isSkuaError(error, 'manifest_invalid')) return null;
    throw error;
  }
}

function nameOf({ chunks, ongoing, files, dropped }: ObjectManifest, key: string): Named | null {
  const chunk = chunks.find((each) => each.key === key);
  if (chunk !== undefined) return { name: chunk.name, kind: 'chunk' };
  const segment = ongoing?.segments.find((each) => each.key === key);
  if (segment !== undefined)
    return {
      name: ongoing!.name,
      kind: 'segment',
      from: segment.from,
      to: segment.to,
      ...(segment.crc32 !== undefined && { crc32: segment.crc32 }),
    };
  const file = files.find((each) => each.key === key);
  if (file !== undefined)
    return { name: file.name, kind: 'file', ...(file.crc32 !== undefined && { crc32: file.crc32 }) };
  return dropped.some((each) => each.key === key) ? { name: '', kind: 'dropped' } : null;
}

const PROBE: FileFormat = {
  kind: 'probe',
  title: 'probe of conditional creates',
  names: [/(?<=^|\/)probe\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  async *parts() {
    yield note('Left by a start that tested whether the store supports conditional creates: it is no longer needed.');
  },
};

const MINUTE_MS = 60_000;

const FAILURE: FileFormat = {
  kind: 'failed-login',
  title: 'failed login, counted across processes',
  names: [/(?<=^|\/)failures\/\d{1,10}\/[0-9a-f]{32}\/\d{1,4}$/],
  async *parts({ key }) {
    const [, minute = '0', pair = '', number = '0'] = key.split('/');
    yield section('failed login', { minuteMs: Number(minute) * MINUTE_MS, pair, number: Number(number) });
  },
};

export const OBJECT_LOG_FORMATS: readonly FileFormat[] = [COMMIT, MANIFEST, FILE, PROBE, FAILURE];
