import { ChunkProof } from '../log/chunk-proof.ts';
import type { Job, JobContext } from '../ports/jobs.ts';
import type { Storage } from '../ports/storage.ts';
import { openForJob } from './lanes.ts';
import type { RepositorySpec } from './lanes.ts';
import type { BlobRef } from './manifest.ts';
import { damagedBefore, writeContent, writeFile } from './restore-files.ts';
import { piecesOf } from './storage-pieces.ts';
import { storePart } from './store-part.ts';
import type { FilePart, StoredPart } from './store-part.ts';

/** Names of the jobs that store one part of a file and restore one file (`lanes.ts`). Both reject as doing the same on the spot does. */
export const STORE_PART_JOB = 'backup.store-part';
export const RESTORE_FILE_JOB = 'backup.restore-file';

/** Read at once: few enough that what was read is digested and written out of the processor's cache. */
const PIECE_BYTES = 262_144;

export interface StorePartArgs {
  readonly repository: RepositorySpec;
  readonly part: FilePart;
  readonly suspects: readonly string[];
  readonly nowMs: number;
}

async function storePartJob({ repository: spec, part, suspects, nowMs }: StorePartArgs, context: JobContext): Promise<StoredPart> {
  const { repository } = await openForJob(spec, false, nowMs, context);
  try {
    const file = await context.storage.open(part.path, 'read');
    try {
      const read = () => piecesOf(file, part.from, part.from + part.length, { pieceBytes: PIECE_BYTES, onPiece: () => context.checkpoint() });
      return await storePart(repository, part, read, { digests: context.digests, suspects: new Set(suspects), onDone: (done) => context.progress({ done, total: part.length, unit: 'bytes' }) });
    } finally {
      await file.close();
    }
  } finally {
    await repository.close();
  }
}

export interface RestoreFileArgs {
  readonly repository: RepositorySpec;
  readonly path: string;
  readonly ref: BlobRef;
  /** Where the content begins in a file that is there already; null for a file that is made. */
  readonly at: number | null;
  readonly isSealed: boolean;
  /** It is a chunk that nobody has proved: one that does not fit its MD5 is refused. */
  readonly isUnproven?: boolean;
  readonly nowMs: number;
}

async function restoreFileJob({ repository: spec, path, ref, at, isSealed, isUnproven = false, nowMs }: RestoreFileArgs, context: JobContext): Promise<void> {
  const { repository } = await openForJob(spec, false, nowMs, context);
  const proof = isUnproven ? new ChunkProof(context.digests, path, ref.sizeBytes) : null;
  let done = 0;
  async function* content(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of repository.readWholeBlob(ref)) {
      await context.checkpoint();
      proof?.add(piece);
      done += piece.length;
      context.progress({ done, total: ref.sizeBytes, unit: 'bytes' });
      yield piece;
    }
  }
  try {
    if (at === null) await writeFile(context.storage, path, content(), ref.sizeBytes, { isSealed, check: () => proof?.check(damagedBefore) });
    else await writePart(context.storage, path, at, content());
  } finally {
    await repository.close();
  }
}

async function writePart(storage: Storage, path: string, at: number, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await storage.open(path, 'write');
  try {
    await writeContent(file, at, content);
    await file.sync();
  } finally {
    await file.close();
  }
}

export const FILE_JOBS: Readonly<Record<string, Job>> = { [STORE_PART_JOB]: storePartJob as Job, [RESTORE_FILE_JOB]: restoreFileJob as Job };
