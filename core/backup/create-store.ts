import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import { endWhenAborted } from './blob-writer.ts';
import { BytePace } from './byte-pace.ts';
import { STORE_PART_JOB } from './file-jobs.ts';
import type { StorePartArgs } from './file-jobs.ts';
import { lanesFor } from './lanes.ts';
import type { BackupLanes } from './lanes.ts';
import type { Repository } from './repository-api.ts';
import type { BackupSource } from './source.ts';
import { storePart } from './store-part.ts';
import type { FilePart, StoredPart } from './store-part.ts';

export interface CreateProgress {
  /** Of the files of the backup, whether they had to be stored or not. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly filesDone: number;
  readonly filesTotal: number;
}

export interface PartStoreOptions {
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

  get signal(): AbortSignal | undefined { return this.#options.signal; }

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
    return storePart(this.#options.repository, part, () => this.#read(part), { digests: this.#options.digests, signal: this.signal, suspects: this.suspects, onDone });
  }

  async #storeInLane({ jobs, repository }: BackupLanes, part: FilePart, onDone: (done: number) => void): Promise<StoredPart> {
    endWhenAborted(this.signal);
    const args: StorePartArgs = { repository, part, suspects: [...this.suspects], nowMs: this.#options.clock.nowMs() };
    const stored = await jobs.run(STORE_PART_JOB, args, { ...(this.signal && { signal: this.signal }), onProgress: ({ done }) => onDone(done) }) as StoredPart;
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
    this.#options.onProgress?.({ bytesDone: Math.floor(this.#bytesDone), bytesTotal: this.#bytesTotal, filesDone: this.#filesDone, filesTotal: this.#filesTotal });
  }
}
