import { BlockCache } from '../../cache/cache.ts';
import type { Outcome } from '../../base/step.ts';
import { SkuaError } from '../../base/errors.ts';
import { attributeFolder } from '../../attributes/format/attribute-folders.ts';
import type { EntryList, IndexEntry } from '../../index/format/entries.ts';
import { INDEX_FOLDER } from '../../index/format/index-map.ts';
import { CACHE_DEPTH_MIN, ENTRY_BYTES, entryBytesOf, POSITION_TABLE_VERSION } from '../../index/format/table-format.ts';
import { chunkFileName, encodeHeader, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { ChunkFooter, ChunkHeader } from '../../log/format/chunk-format.ts';
import { ChunkTable } from '../../log/chunk-table/chunk-table.ts';
import { Chunk } from '../../log/chunk/chunk.ts';
import type { LogReader, ReadFor } from '../../log/api.ts';
import type { RecordFrame } from '../../log/format/records.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import type { EventIndex } from '../../streams/api.ts';
import type { Commit } from '../format/commit-object.ts';
import { TABLE_NAME } from '../format/manifest.ts';
import type { ObjectFile, ObjectManifest } from '../format/manifest.ts';
import { ATTRIBUTE_TABLE_NAME } from '../format/manifest-attributes.ts';
import { AttributesOfView } from './view-attributes.ts';
import { ViewEntries } from './view-entries.ts';
import { ObjectFileReader, ObjectTable, OngoingFile } from '../files/files.ts';

const NO_ID = new Uint8Array(16);

export interface ViewParts {
  readonly objects: ObjectStore;
  readonly cache: BlockCache;
  readonly hasher: StreamHasher;
  readonly cacheDepth: number;
}

interface TailChunk {
  readonly chunk: Chunk;
  readonly file: OngoingFile;
}
type TailCommit = Omit<Commit, 'records'>;

/** The files of one manifest and the commits behind them: all that can be read. Making one costs no request. */
export class ObjectView {
  readonly manifest: ObjectManifest;
  readonly table: ChunkTable;
  readonly entries: ViewEntries;
  readonly attributes: AttributesOfView;
  /** Number of the last commit in it. */
  known: number;
  /**
   * Position where the next commit starts, unless it does not fit the chunk. Readers see the log up to `table.end`,
   * which `show` moves here.
   */
  nextStart: number;
  tailBytes = 0;
  /** Of the last event, as far as one was seen. */
  lastPosition: number;
  readonly #parts: ViewParts;
  readonly #completed = new Map<string, Chunk>();
  readonly #tail: TailCommit[] = [];
  readonly #tailChunks = new Map<number, TailChunk>();

  /** `old` gives the files that both manifests name, with what is cached of them. */
  constructor(manifest: ObjectManifest, parts: ViewParts, old: ObjectView | null) {
    const { chunkSizeBytes } = manifest;
    this.manifest = manifest;
    this.#parts = parts;
    this.table = new ChunkTable(chunkSizeBytes);
    this.#openChunks(old);
    const tables = this.#openTables(old?.tables ?? []);
    const ofFolder = (folder: string): ObjectTable[] => tables.filter(({ file }) => file.name.startsWith(`${folder}/`));
    this.entries = new ViewEntries(ofFolder(INDEX_FOLDER));
    this.attributes = new AttributesOfView(manifest, (name) => ofFolder(attributeFolder(name)));
    this.known = manifest.boundary - 1;
    this.lastPosition = manifest.logEnd === 0 ? -1 : manifest.logEnd;
    this.nextStart = this.#behind(manifest.logEnd, manifest.endsChunk);
    this.table.end = this.nextStart;
    if (manifest.ongoing !== null && manifest.endsChunk) this.#end(manifest.ongoing.number);
  }

  get chunkSizeBytes(): number {
    return this.manifest.chunkSizeBytes;
  }
  get tailCommits(): number {
    return this.#tail.length;
  }

  #openChunks(old: ObjectView | null): void {
    const { objects, cache } = this.#parts;
    for (const stored of this.manifest.chunks) {
      const { name, key, sizeBytes, startNumber, endNumber, isScavenged } = stored;
      let chunk = old === null ? undefined : old.#completed.get(key);
      if (chunk === undefined) {
        const header: ChunkHeader = {
          version: 3,
          chunkSize: this.chunkSizeBytes,
          startNumber,
          endNumber,
          isScavenged,
          chunkId: NO_ID,
        };
        const footer: ChunkFooter = {
          isCompleted: true,
          mapEntryBytes: stored.mapEntryBytes,
          physicalBytes: stored.physicalBytes,
          logicalBytes: stored.logicalBytes,
          mapBytes: stored.mapBytes,
          md5: NO_ID,
        };
        chunk = new Chunk(name, cache.attach(new ObjectFileReader(objects, name, key, sizeBytes)), header, footer, 0);
      }
      this.#completed.set(key, chunk);
      this.table.put(chunk);
    }
    const { ongoing } = this.manifest;
    if (ongoing === null) return;
    const file = new OngoingFile(
      objects,
      ongoing.name,
      ongoing.number * this.chunkSizeBytes,
      fromHex(ongoing.header),
      ongoing.segments,
    );
    this.#putTailChunk(ongoing.number, ongoing.name, file, this.manifest.logEnd - ongoing.number * this.chunkSizeBytes);
  }

  #openTables(old: readonly ObjectTable[]): readonly ObjectTable[] {
    const { objects, cache, cacheDepth } = this.#parts;
    const { files } = this.manifest;
    const byName = new Map(files.map((file) => [file.name, file]));
    const openAs = (file: ObjectFile, entryBytes: number, depth: number): ObjectTable =>
      old.find((table) => table.file.key === file.key) ??
      new ObjectTable(objects, cache, {
        file,
        entryBytes,
        bloom: byName.get(`${file.name}.bloomfilter`) ?? null,
        cacheDepth: depth,
      });
    return files.flatMap((file) => {
      if (file.key === null) return [];
      if (TABLE_NAME.test(file.name)) return [openAs(file, ENTRY_BYTES, cacheDepth)];
      return ATTRIBUTE_TABLE_NAME.test(file.name)
        ? [openAs(file, entryBytesOf(POSITION_TABLE_VERSION), CACHE_DEPTH_MIN)]
        : [];
    });
  }

  get tables(): readonly ObjectTable[] {
    return [...this.entries.tables, ...this.attributes.tables];
  }

  #putTailChunk(number: number, name: string, file: OngoingFile, dataBytes: number): TailChunk {
    const header = this.#headerOf(number);
    const tail = { chunk: new Chunk(name, this.#parts.cache.attach(file), header, null, dataBytes), file };
    this.#tailChunks.set(number, tail);
    this.table.put(tail.chunk);
    return tail;
  }

  #headerOf(number: number): ChunkHeader {
    return {
      version: 3,
      chunkSize: this.chunkSizeBytes,
      startNumber: number,
      endNumber: number,
      isScavenged: false,
      chunkId: NO_ID,
    };
  }

  /** Where the next commit starts behind one that ends here. */
  #behind(end: number, endsChunk: boolean): number {
    return endsChunk ? Math.ceil(end / this.chunkSizeBytes) * this.chunkSizeBytes : end;
  }

  /** Nothing more comes into the chunk. */
  #end(number: number): void {
    const tail = this.#tailChunks.get(number);
    if (tail !== undefined) tail.chunk.isCompleted = true;
  }

  /**
   * Takes in the commit that comes next, unseen and not indexed as yet. Throws `log_corrupt`, with nothing changed,
   * when it does not fit.
   */
  add(commit: Commit): void {
    const { number, start, end, records } = commit;
    const size = this.chunkSizeBytes;
    const isNextChunk = start === Math.ceil(this.nextStart / size) * size && start > this.nextStart;
    const chunkNumber = Math.floor(start / size);
    if (
      number !== this.known + 1 ||
      (start !== this.nextStart && !isNextChunk) ||
      end - start !== records.length ||
      (end > start && Math.floor((end - 1) / size) !== chunkNumber)
    ) {
      throw new SkuaError(
        'log_corrupt',
        `Commit ${number} spans ${start} to ${end} where commit ${this.known + 1} must start at ${this.nextStart}. Restore the commit objects from versions or a backup of the bucket.`,
        { number, start, end, expected: this.nextStart },
      );
    }
    let tail = this.#tailChunks.get(chunkNumber);
    if (tail === undefined) {
      this.#end(chunkNumber - 1);
      const name = chunkFileName(chunkNumber, 0);
      tail = this.#putTailChunk(
        chunkNumber,
        name,
        new OngoingFile(this.#parts.objects, name, chunkNumber * size, encodeHeader(this.#headerOf(chunkNumber)), []),
        0,
      );
    }
    tail.file.append(records);
    tail.chunk.setDataBytes(end - chunkNumber * size);
    if (commit.endsChunk) this.#end(chunkNumber);
    this.#tail.push({
      number,
      writer: commit.writer,
      nonce: commit.nonce,
      start,
      end,
      endsChunk: commit.endsChunk,
      hasMarks: commit.hasMarks,
    });
    this.tailBytes += records.length;
    this.known = number;
    this.nextStart = this.#behind(end, commit.endsChunk);
  }

  /** Shows readers all commits in it. */
  show(): void {
    this.table.end = this.nextStart;
  }

  /** The commits from this number on, with their records. */
  *commitsFrom(number: number): Generator<Commit, void, undefined> {
    for (const commit of this.#tail) {
      if (commit.number < number) continue;
      const tail = this.#tailChunks.get(Math.floor(commit.start / this.chunkSizeBytes))!;
      yield { ...commit, records: tail.file.appended(commit.start, commit.end - commit.start) };
    }
  }

  /**
   * Forgets what is cached of files that `next` does not read any more. Reads under way take their step again, on
   * `next`.
   */
  async retire(next: ObjectView | null): Promise<void> {
    for (const { chunk } of this.#tailChunks.values()) chunk.file.detach();
    for (const [key, chunk] of this.#completed)
      if (next === null || next.#completed.get(key) !== chunk) chunk.file.detach();
    for (const table of this.tables) if (next === null || !next.tables.includes(table)) await table.close();
  }
}

function fromHex(text: string): Uint8Array {
  const out = new Uint8Array(HEADER_BYTES);
  for (let i = 0; i < out.length; i++) out[i] = Number.parseInt(text.slice(i * 2, i * 2 + 2), 16);
  return out;
}

/** The view in force. It is replaced in one step, between two steps of any reader. */
export interface CurrentView {
  view: ObjectView;
}

/** The log as the view in force has it. Positions stay the same from view to view. */
export class ViewLogReader implements LogReader {
  readonly #current: CurrentView;

  constructor(current: CurrentView) {
    this.#current = current;
  }

  get end(): number {
    return this.#current.view.table.end;
  }
  readAt(position: number, frame: RecordFrame, what?: ReadFor): Outcome {
    return this.#current.view.table.readAt(position, frame, what);
  }
  prefetch(position: number): void {
    this.#current.view.table.prefetch(position);
  }
  prefetchRun(from: number, to: number): void {
    this.#current.view.table.prefetchRun(from, to);
  }
  readForward(position: number, frame: RecordFrame, what?: ReadFor): Outcome {
    return this.#current.view.table.readForward(position, frame, what);
  }
  readBackward(position: number, frame: RecordFrame): Outcome {
    return this.#current.view.table.readBackward(position, frame);
  }
  isBoundary(position: number): Outcome {
    return this.#current.view.table.isBoundary(position);
  }
  isScavengedAt(position: number): boolean {
    return this.#current.view.table.isScavengedAt(position);
  }
  chunkStart(position: number): number {
    return this.#current.view.table.chunkStart(position);
  }
}

/**
 * The index as the view in force has it: entries of the tail in memory, and the tables of the manifest. There is no
 * existence filter: other writers' streams would have to get into it first.
 */
export class ViewIndex implements EventIndex {
  readonly hasher: StreamHasher;
  readonly #current: CurrentView;

  constructor(current: CurrentView, hasher: StreamHasher) {
    this.#current = current;
    this.hasher = hasher;
  }

  add(hi: number, lo: number, version: number, position: number): void {
    this.#current.view.entries.mem.add(hi, lo, version, position);
  }

  endBulk(commitPosition: number): void {
    this.#current.view.lastPosition = commitPosition;
  }

  ready(): null {
    return null;
  }
  mightContain(): boolean {
    return true;
  }
  addStream(): void {}
  noteExistenceCheckpoint(): void {}

  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#current.view.entries.floor(hi, lo, version, position, out);
  }

  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#current.view.entries.ceiling(hi, lo, version, position, out);
  }

  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): Outcome {
    return this.#current.view.entries.range(hi, lo, fromVersion, toVersion, out);
  }
}
