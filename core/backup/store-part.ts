import { ChunkProof } from '../log/chunk-proof.ts';
import type { Digests } from '../ports/digests.ts';
import type { BlobRef } from './manifest.ts';
import { RecordTimes } from './record-times.ts';
import type { Reading, Repository } from './repository-api.ts';

/** A part of a listed file. */
export interface FilePart {
  readonly path: string;
  readonly from: number;
  readonly length: number;
  /** Of a whole chunk file, whose MD5 is proved: where its records lie, for their times. */
  readonly records?: { readonly from: number; readonly to: number };
}

export interface StoredPart extends BlobRef {
  readonly isNew: boolean;
  /** Bytes of the object that was stored. */
  readonly storedBytes: number;
  /** Of the records, where they were looked for. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

export interface StorePartOptions {
  readonly digests: Digests;
  readonly signal?: AbortSignal | undefined;
  /** Blobs that a check found damaged: they are stored again, in place of what is there. */
  readonly suspects: ReadonlySet<string>;
  /** Told how many of the part's bytes are done. Content that is stored is read up to twice, and each reading counts for half. */
  readonly onDone: (bytes: number) => void;
}

/** Stores a part of a file unless it is there; `read` gives its bytes, as often as it is called. Throws `log_corrupt` for a chunk that can't be walked, or that is not as it was written. */
export async function storePart(repository: Repository, { path, length, records }: FilePart, read: () => AsyncIterable<Uint8Array>, { digests, signal, suspects, onDone }: StorePartOptions): Promise<StoredPart> {
  const times = records === undefined ? null : new RecordTimes(path, records.from, records.to);
  let readings = 0;
  let done = 0;
  async function* content(reading: Reading): AsyncGenerator<Uint8Array, void, undefined> {
    const isFirst = ++readings === 1;
    const proof = records !== undefined && reading === 'first' ? new ChunkProof(digests, path, length) : null;
    for await (const piece of read()) {
      if (isFirst) times?.push(piece);
      proof?.add(piece);
      done = Math.min(length, done + piece.length / 2);
      onDone(done);
      yield piece;
    }
    proof?.check();
  }
  const stored = await repository.writeBlob(length, content, { signal, isSuspect: (id) => suspects.has(id) });
  times?.finish();
  onDone(length);
  return { ...stored, fromMs: times?.fromMs ?? null, toMs: times?.toMs ?? null };
}
