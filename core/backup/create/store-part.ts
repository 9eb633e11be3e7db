import { ChunkProof } from '../../log/format/chunk-proof.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { JobContext } from '../../ports/jobs.ts';
import type { Reading, Repository } from '../repository/api.ts';
import type { BlobRef } from '../format/snapshot-manifest.ts';
import { endWhenAborted } from '../repository/repository-objects.ts';
import { RecordTimes } from '../../log/format/record-walk.ts';
import { lanesFor, openForJob } from '../repository/repository.ts';
import type { BackupLanes, RepositorySpec } from '../repository/repository.ts';
import { piecesOf } from '../../store/source/source.ts';
import type { BackupSource } from '../../store/api.ts';

/** A part of a listed file. */
interface FilePart {
  readonly path: string;
  readonly from: number;
  readonly length: number;
  /** Of a whole chunk file, whose MD5 is proved: where its records lie, for their times. */
  readonly records?: { readonly from: number; readonly to: number };
  readonly mayBeZeros?: boolean;
}

interface StoredPart extends BlobRef {
  readonly isNew: boolean;
  /** Bytes of the object that was stored. */
  readonly storedBytes: number;
  /** Of the records, where they were looked for. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

interface StorePartOptions {
  readonly digests: Digests;
  readonly signal?: AbortSignal | undefined;
  /** Blobs that a check found damaged: they are stored again, in place of what is there. */
  readonly suspects: ReadonlySet<string>;
  /**
   * Told how many of the part's bytes are done. Content that is stored is read up to twice, and each reading counts for
   * half.
   */
  readonly onDone: (bytes: number) => void;
}

/**
 * Stores a part of a file unless it is there; `read` gives its bytes, as often as it is called. Throws `log_corrupt`
 * for a chunk that can't be walked, or that is not as it was written.
 */
async function storePart(
  repository: Repository,
  { path, length, records, mayBeZeros = false }: FilePart,
  read: () => AsyncIterable<Uint8Array>,
  { digests, signal, suspects, onDone }: StorePartOptions,
): Promise<StoredPart> {
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
  const stored = await repository.writeBlob(length, content, {
    signal,
    mayBeZeros,
    isSuspect: (id) => suspects.has(id),
  });
  times?.finish();
  onDone(length);
  return { ...stored, fromMs: times?.fromMs ?? null, toMs: times?.toMs ?? null };
}

/**
 * Name of the job that stores one part of a file in a lane (`BackupLanes`). It rejects as doing the same on the spot
 * does.
 */
export const STORE_PART_JOB = 'backup.store-part';
/** Read at once: few enough that what was read is digested and written out of the processor's cache. */
const PIECE_BYTES = 262_144;

interface StorePartArgs {
  readonly repository: RepositorySpec;
  readonly part: FilePart;
  readonly suspects: readonly string[];
  readonly nowMs: number;
}

export async function storePartJob(
  { repository: spec, part, suspects, nowMs }: StorePartArgs,
  context: JobContext,
): Promise<StoredPart> {
  const { repository } = await openForJob(spec, false, nowMs, context);
  try {
    const file = await context.storage.open(part.path, 'read');
    try {
      const read = () =>
        piecesOf(file, part.from, part.from + part.length, {
          pieceBytes: PIECE_BYTES,
          onPiece: () => context.checkpoint(),
        });
      return await storePart(repository, part, read, {
        digests: context.digests,
        suspects: new Set(suspects),
        onDone: (done) => context.progress({ done, total: part.length, unit: 'bytes' }),
      });
    } finally {
      await file.close();
    }
  } finally {
    await repository.close();
  }
}

export interface CreateProgress {
  /** Of the files of the backup, whether they had to be stored or not. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly filesDone: number;
  readonly filesTotal: number;
}

interface PartStoreOptions {
  readonly source: BackupSource;
  readonly repository: Repository;
  readonly clock: Clock;
  readonly digests: Digests;
  readonly lanes?: BackupLanes;
  /** Bytes that are read a second, 0 for no limit. */
  readonly throttleBytesPerSecond?: number;
  readonly onProgress?: (progress: CreateProgress) => void;
  readonly signal?: AbortSignal;
}

/** Stores parts of files, with one pace and one account for all of them. */
export class PartStore {
  readonly #options: PartStoreOptions;
  readonly #pace: BytePace;
  /** Blobs that a check found damaged: they are stored again, in place of what is there. */
  suspects: ReadonlySet<string> = new Set();
  #bytesDone = 0;
  #bytesTotal = 0;
  #filesDone = 0;
  #filesTotal = 0;
  blobsStored = 0;
  /** Plain bytes of the blobs that were stored, and bytes of their objects. */
  bytesNew = 0;
  bytesStored = 0;

  constructor(options: PartStoreOptions) {
    this.#options = options;
    this.#pace = new BytePace(options.clock, options.throttleBytesPerSecond ?? 0, options.signal);
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal;
  }

  /** Begins to count anew. */
  expect(files: number, bytes: number): void {
    this.#filesDone = this.#bytesDone = 0;
    this.#filesTotal = files;
    this.#bytesTotal = bytes;
    this.#report();
  }

  /** The file has been dealt with; `bytes` of it were not counted yet. */
  fileDone(bytes: number): void {
    this.#filesDone++;
    this.#bytesDone += bytes;
    this.#report();
  }

  /** Stores a part of a file unless it is there. */
  async store(part: FilePart): Promise<StoredPart> {
    let counted = 0;
    const onDone = (done: number): void => {
      this.#bytesDone += done - counted;
      counted = done;
      this.#report();
    };
    const lane = this.#laneFor(part);
    const stored = await (lane === null ? this.#store(part, onDone) : this.#storeInLane(lane, part, onDone));
    if (stored.isNew) {
      this.blobsStored++;
      this.bytesNew += stored.sizeBytes;
      this.bytesStored += stored.storedBytes;
    }
    return stored;
  }

  #laneFor({ path, length }: FilePart): BackupLanes | null {
    const { lanes, throttleBytesPerSecond = 0, source } = this.#options;
    const isFile = source.snapshot.files.find((file) => file.path === path)?.content === undefined;
    return throttleBytesPerSecond === 0 && isFile ? lanesFor(lanes, length) : null;
  }

  #store(part: FilePart, onDone: (done: number) => void): Promise<StoredPart> {
    return storePart(this.#options.repository, part, () => this.#read(part), {
      digests: this.#options.digests,
      signal: this.signal,
      suspects: this.suspects,
      onDone,
    });
  }

  async #storeInLane(
    { jobs, repository }: BackupLanes,
    part: FilePart,
    onDone: (done: number) => void,
  ): Promise<StoredPart> {
    endWhenAborted(this.signal);
    const args: StorePartArgs = { repository, part, suspects: [...this.suspects], nowMs: this.#options.clock.nowMs() };
    const stored = (await jobs.run(STORE_PART_JOB, args, {
      ...(this.signal && { signal: this.signal }),
      onProgress: ({ done }) => onDone(done),
    })) as StoredPart;
    onDone(part.length);
    return stored;
  }

  async *#read({ path, from, length }: FilePart): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of this.#options.source.read(path, from, length)) {
      endWhenAborted(this.signal);
      await this.#pace.take(piece.length);
      yield piece;
    }
  }

  #report(): void {
    this.#options.onProgress?.({
      bytesDone: Math.floor(this.#bytesDone),
      bytesTotal: this.#bytesTotal,
      filesDone: this.#filesDone,
      filesTotal: this.#filesTotal,
    });
  }
}

/** Sleeps shorter than this many milliseconds are saved up: a timer is not more exact. */
const SLEEP_MS_MIN = 20;
/** Time in milliseconds that was not used and may be caught up with: a pause must not be followed by a burst. */
const CREDIT_MS_MAX = 1_000;

/** Holds several readers together to so many bytes a second. */
export class BytePace {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  readonly #signal: AbortSignal | undefined;
  /** When everything taken so far should have taken its time, by the monotonic clock. */
  #dueMs: number;

  /** 0 stands for no limit. */
  constructor(clock: Clock, bytesPerSecond: number, signal?: AbortSignal) {
    this.#clock = clock;
    this.#bytesPerMs = bytesPerSecond / 1_000;
    this.#signal = signal;
    this.#dueMs = clock.monotonicMs();
  }

  async take(bytes: number): Promise<void> {
    if (this.#bytesPerMs === 0) return;
    const nowMs = this.#clock.monotonicMs();
    this.#dueMs = Math.max(this.#dueMs, nowMs - CREDIT_MS_MAX) + bytes / this.#bytesPerMs;
    const waitMs = this.#dueMs - nowMs;
    if (waitMs >= SLEEP_MS_MIN) await this.#clock.sleep(waitMs, this.#signal);
  }
}
