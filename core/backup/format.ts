import { toHex } from '../base/hex.ts';
import { idParts, recordParts } from '../log/format.ts';
import { BlockFile } from '../ports/block-file.ts';
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
import type { Shape } from '../base/shape.ts';
import { decodeText } from '../base/text.ts';
import { keptMarksShape } from './kept-marks/kept-marks.ts';
import { unreferencedShape } from './prune/prune.ts';
import { blobFile, openBlob, type ReaderWorld } from './repository/blob-reader.ts';
import { decodeBlobHeader, HEADER_BYTES } from './format/blob-format.ts';
import { REPOSITORY_KEY } from './format/repository-keys.ts';
import { manifestShape } from './format/manifest-shape.ts';
import { intentShape, testedShape, suspectShape } from './notes/notes.ts';
import {
  decodeObject,
  type RepositoryFile,
  repositoryShape,
  SEALED_MAGIC,
  type Sealer,
  sealerOf,
} from './repository/repository-objects.ts';
import { openPiece, type ShippedWorld } from './repository/shipped.ts';

/** The objects of a repository of backups, for inspection. */

const SEALED = 'It is encrypted: give the key of the repository with --key-file to see what is in it.';

const REPOSITORY: FileFormat = {
  kind: 'repository',
  title: 'beginning of a backup repository',
  names: [/(?<=^|\/)skua-repository$/],
  async *parts({ file, world: { digests, objects } }) {
    const bytes = await wholeOf(file);
    try {
      const { id, createdMs, format, encryption } = decodeObject<RepositoryFile>(
        { place: objects.place, digests, sealer: null },
        REPOSITORY_KEY,
        bytes,
        repositoryShape,
      );
      // What the key is checked by is not shown.
      yield section('repository', { id, createdMs, format, isEncrypted: encryption !== null });
    } catch (error) {
      yield damageOf(error, 0);
    }
  },
};

/** Of the repository in this place; null where no key was given, or nothing there says that it is one. */
async function sealerIn({ objects, digests, keys, repositoryKey }: FormatWorld): Promise<Sealer | null> {
  const bytes = repositoryKey === null ? null : await objects.get(REPOSITORY_KEY);
  return bytes === null
    ? null
    : sealerOf(
        objects.place,
        decodeObject<RepositoryFile>(
          { place: objects.place, digests, sealer: null },
          REPOSITORY_KEY,
          bytes,
          repositoryShape,
        ),
        repositoryKey,
        keys,
      );
}

function documentFormat(kind: string, title: string, name: RegExp, shape: Shape<unknown>): FileFormat {
  return {
    kind,
    title,
    names: [name],
    async *parts({ file, key, world }) {
      const bytes = await wholeOf(file);
      const sealer = await sealerIn(world);
      if (sealer === null && isSealed(bytes)) {
        yield note(SEALED);
        return;
      }
      try {
        yield* documentParts(
          decodeObject({ place: world.objects.place, digests: world.digests, sealer }, key, bytes, shape),
          kind,
        );
      } catch (error) {
        yield damageOf(error, 0);
        if (!isSealed(bytes)) yield* lineParts(bytes);
      }
    },
  };
}

function isSealed(bytes: Uint8Array): boolean {
  return SEALED_MAGIC.every((byte, i) => bytes[i] === byte);
}

const BLOB: FileFormat = {
  kind: 'blob',
  title: 'content in a backup repository',
  names: [/(?<=^|\/)blobs\/[0-9a-f]{2}\/[0-9a-f]{64}$/],
  begins: (head) => decodeText(head.subarray(0, 8)) === 'SkuaBlob',
  parts: blobParts,
};

async function* blobParts(looked: Inspected): AsyncGenerator<Part, void, undefined> {
  const { key, file, world } = looked;
  const header = decodeBlobHeader((await file.read(0, HEADER_BYTES)).slice(), world.digests);
  const sealer = header?.isSealed === true ? await sealerIn(world) : null;
  if (header?.isSealed === true && sealer === null) {
    yield section('blob', { contentBytes: header.sizeBytes, frameBytes: header.frameBytes, isSealed: true });
    yield note(SEALED);
    return;
  }
  const id = key.slice(key.lastIndexOf('/') + 1);
  const reader: ReaderWorld = {
    objects: world.objects,
    digests: world.digests,
    compression: world.compression,
    sealer,
    blobId: (sha256) => toHex(sealer === null ? sha256 : sealer.idOf(sha256)),
    blobKey: () => key,
  };
  const blob = await openBlob(reader, id);
  const { sizeBytes, frameBytes, isSealed: isEncrypted } = blob.header;
  const compressed = blob.frames.filter(({ isCompressed }) => isCompressed).length;
  yield section('blob', {
    contentBytes: sizeBytes,
    storedBytes: file.size,
    frameBytes,
    frames: blob.frames.length,
    compressedFrames: compressed,
    isSealed: isEncrypted,
  });
  const content = blobFile(reader, blob);
  const format = await world.formatOf('', content);
  if (format === null) {
    yield note('The content is of an unknown kind: the manifest of a backup names the file it belongs to.');
    return;
  }
  yield note(`The content: ${format.title}. Offsets are relative to the content.`);
  yield* format.parts({ ...looked, file: content, localPath: null });
}

const SHIPPED: FileFormat = {
  kind: 'shipped-log',
  title: 'log shipped after a backup',
  names: [/(?<=^|\/)shipped\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\/\d{20}$/],
  begins: (head) => decodeText(head.subarray(0, 8)) === 'SkuaShip',
  async *parts({ file, key, world }) {
    const bytes = await wholeOf(file);
    const sealer = await sealerIn(world);
    if (sealer === null && (bytes[SHIPPED_FLAGS_AT] ?? 0) % 2 === 1) {
      yield note(SEALED);
      return;
    }
    const shipped: ShippedWorld = {
      objects: world.objects,
      digests: world.digests,
      compression: world.compression,
      compresses: false,
      sealer,
    };
    const {
      piece: { manifestId, from, to, shippedMs, previousEnd },
      isCompressed,
      log,
    } = openPiece(shipped, key.split('/')[1] ?? '', key, bytes);
    yield section('shipped log', {
      backupId: manifestId,
      startPosition: from,
      endPosition: to,
      previousEndPosition: previousEnd ?? from,
      shippedMs,
      isCompressed,
      isSealed: sealer !== null,
    });
    const bytesOfLog = log();
    const records = new BlockFile({
      path: key,
      size: bytesOfLog.length,
      blockBytes: bytesOfLog.length,
      block: async () => bytesOfLog,
    });
    yield note('Offsets are relative to the log it holds.');
    yield* recordParts({ file: records, from: 0, to: records.size, position: from });
  },
};

/** In the header of shipped log: the lowest bit says that it is sealed. */
const SHIPPED_FLAGS_AT = 9;

const NODE_ID: FileFormat = {
  kind: 'node-id',
  title: 'id of the directory, which its backups name',
  names: [/(?<=^|\/)node-id$/],
  parts: (looked) => idParts(looked),
};

export const BACKUP_FORMATS: readonly FileFormat[] = [
  REPOSITORY,
  BLOB,
  SHIPPED,
  NODE_ID,
  documentFormat(
    'backup',
    'manifest of a backup',
    /(?<=^|\/)manifests\/\d{15}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
    manifestShape,
  ),
  documentFormat(
    'backup-intent',
    'heartbeat of a running backup',
    /(?<=^|\/)active\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
    intentShape,
  ),
  documentFormat(
    'prune-intent',
    'heartbeat of a running prune',
    /(?<=^|\/)pruning\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
    intentShape,
  ),
  documentFormat('proven-backup', 'backup tested by a drill', /(?<=^|\/)proven$/, testedShape),
  documentFormat('unreferenced-blobs', 'content that no backup needs', /(?<=^|\/)unreferenced$/, unreferencedShape),
  documentFormat(
    'kept-redactions',
    'redactions known from backups of a forgotten node',
    /(?<=^|\/)kept-redactions\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
    keptMarksShape,
  ),
  documentFormat('suspect-blobs', 'damaged content', /(?<=^|\/)suspect$/, suspectShape),
];
