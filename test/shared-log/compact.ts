import { streamHasher, Hash64 } from '../../core/base/stream-hash.ts';
import { MemTable } from '../../core/index/mem-table/mem-table.ts';
import { MERGE_TABLES_JOB, TABLE_JOBS, WRITE_TABLE_JOB } from '../../core/index/jobs/jobs.ts';
import {
  align4096,
  chunkFileName,
  encodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  MD5_BYTES,
} from '../../core/log/format/chunk-format.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../../core/log/format/records.ts';
import type { ObjectWorld } from '../../core/shared-log/api.ts';
import type { Commit } from '../../core/shared-log/format/commit-object.ts';
import { newFileKey, commitKey } from '../../core/shared-log/format/object-keys.ts';
import {
  type DroppedObject,
  type ObjectChunk,
  type ObjectFile,
  type ObjectManifest,
  type ObjectOngoing,
  createManifest,
  newestManifest,
} from '../../core/shared-log/format/manifest.ts';
import { commitsBetween, listBehind } from '../../core/shared-log/tail/tail.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { eachRecord } from '../../core/streams/committed/committed.ts';
import { putFile } from '../log/kit.ts';
import { concat } from '../proof/proof-kit.ts';

export interface CompactOptions {
  /** Of the commits of the tail, how many go into files. Default: all. */
  readonly commitsMax?: number;
  readonly cacheDepth?: number;
  readonly bloomFilters?: boolean;
}

/** The boundary of the last compaction, the number of its manifest, or why there was none. */
export type Compacted =
  | { readonly kind: 'done'; readonly manifest: ObjectManifest }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'lost' };

/** Tables that may stand beside each other. */
const TABLES_MAX = 3;

/**
 * The least that a tick does, for tests of what reads its work: commits become segments, completed chunks and an index
 * table, and a manifest puts them in force. It removes nothing. An old file that is gone means that others have gone
 * on: `lost`.
 */
export async function compact(world: ObjectWorld, options: CompactOptions = {}): Promise<Compacted> {
  const old = await newestManifest(world.objects, world.digests);
  if (old === null) return { kind: 'nothing' };
  const list = await listBehind(world, old.boundary - 1);
  const last = Math.min(list.last, old.boundary - 1 + (options.commitsMax ?? Number.MAX_SAFE_INTEGER));
  const commits = list.hasGap ? null : await commitsBetween(world, old.boundary, last);
  if (commits === null || commits.length === 0) return { kind: 'nothing' };
  const work = new Compaction(world, old);
  try {
    for (const commit of commits) await work.add(commit);
    const files = await work.index(commits, options);
    const manifest = await work.manifest(files);
    return (await createManifest(world, manifest)) === 'created' ? { kind: 'done', manifest } : { kind: 'lost' };
  } catch (error) {
    if (error instanceof Gone) return { kind: 'lost' };
    throw error;
  }
}

class Gone extends Error {}

class Compaction {
  readonly #world: ObjectWorld;
  readonly #old: ObjectManifest;
  readonly #chunks: ObjectChunk[];
  readonly #dropped: DroppedObject[];
  #ongoing: ObjectOngoing | null;
  /** Records that are in no segment yet, from this position on. */
  #from: number;
  #parts: Uint8Array[] = [];
  #end: number;
  #endsChunk: boolean;
  #boundary: number;

  constructor(world: ObjectWorld, old: ObjectManifest) {
    this.#world = world;
    this.#old = old;
    this.#chunks = [...old.chunks];
    this.#dropped = [...old.dropped];
    this.#ongoing = old.ongoing;
    this.#from = old.logEnd;
    this.#end = old.logEnd;
    this.#endsChunk = old.endsChunk;
    this.#boundary = old.boundary;
  }

  get #size(): number {
    return this.#old.chunkSizeBytes;
  }

  async add({ number, start, end, endsChunk, records }: Commit): Promise<void> {
    if (start !== this.#end || (this.#endsChunk && this.#ongoing !== null)) await this.#completeChunk();
    if (this.#parts.length === 0) this.#from = start;
    this.#parts.push(records);
    this.#end = end;
    this.#endsChunk = endsChunk;
    this.#boundary = number + 1;
    this.#drop(commitKey(number));
    if (endsChunk || end % this.#size === 0) await this.#completeChunk();
  }

  async #get(key: string): Promise<Uint8Array> {
    const bytes = await this.#world.objects.get(key);
    if (bytes === null) throw new Gone(key);
    return bytes;
  }

  #drop(key: string): void {
    this.#dropped.push({ key, droppedMs: this.#world.clock.nowMs() });
  }

  async #flush(): Promise<void> {
    if (this.#parts.length === 0) return;
    const bytes = concat(...this.#parts);
    const key = newFileKey(this.#world.ids);
    await this.#world.objects.put(key, bytes);
    const number = Math.floor(this.#from / this.#size);
    const header = encodeHeader({
      version: 3,
      chunkSize: this.#size,
      startNumber: number,
      endNumber: number,
      isScavenged: false,
      chunkId: this.#world.ids.uuidBytes(),
    });
    this.#ongoing ??= { name: chunkFileName(number, 0), number, header: hex(header), segments: [] };
    this.#ongoing = {
      ...this.#ongoing,
      segments: [...this.#ongoing.segments, { key, from: this.#from, to: this.#from + bytes.length }],
    };
    this.#parts = [];
  }

  /** The whole file, as it would be on a disk. */
  async #completeChunk(): Promise<void> {
    await this.#flush();
    const ongoing = this.#ongoing;
    if (ongoing === null) return;
    const { objects, digests, ids } = this.#world;
    const data = concat(...(await Promise.all(ongoing.segments.map(({ key }) => this.#get(key)))));
    const file = new Uint8Array(align4096(HEADER_BYTES + data.length + FOOTER_BYTES));
    file.set(Buffer.from(ongoing.header, 'hex'), 0);
    file.set(data, HEADER_BYTES);
    file.set(encodeFooter(data.length, data.length, 0), file.length - FOOTER_BYTES);
    const md5 = digests.md5();
    md5.update(file.subarray(0, file.length - MD5_BYTES));
    file.set(md5.finish(), file.length - MD5_BYTES);
    const key = newFileKey(ids);
    await objects.put(key, file);
    for (const segment of ongoing.segments) this.#drop(segment.key);
    this.#chunks.push({
      name: ongoing.name,
      key,
      sizeBytes: file.length,
      startNumber: ongoing.number,
      endNumber: ongoing.number,
      isScavenged: false,
      physicalBytes: data.length,
      logicalBytes: data.length,
      mapBytes: 0,
      mapEntryBytes: 12,
    });
    this.#ongoing = null;
  }

  /** A table with the new entries; all tables become one when they are too many. */
  async index(
    commits: readonly Commit[],
    { cacheDepth = 14, bloomFilters = true }: CompactOptions,
  ): Promise<ObjectFile[]> {
    const { objects, digests, ids, clock } = this.#world;
    const storage = new MemoryStorage();
    const jobs = new InlineJobs({ jobs: TABLE_JOBS, storage, digests, ids, clock });
    const bloomOf = (path: string) => (bloomFilters ? `${path}.bloomfilter` : null);
    const tables = this.#old.files.filter(({ name }) => !name.endsWith('.bloomfilter'));
    const isMerge = tables.length >= TABLES_MAX;
    const path = `index/${newFileKey(ids).slice('files/'.length)}`;
    const first = isMerge ? 'index/00000000-0000-4000-8000-000000000007' : path;
    await jobs.run(WRITE_TABLE_JOB, {
      path: first,
      bloomPath: isMerge ? null : bloomOf(path),
      cacheDepth,
      columns: entriesOf(commits).columns(),
    });
    if (isMerge) {
      const sources = [first];
      for (const { name, key } of tables) {
        await putFile(storage, name, await this.#get(key!));
        sources.push(name);
      }
      for (const { key } of this.#old.files) this.#drop(key!);
      await jobs.run(MERGE_TABLES_JOB, { sources, path, bloomPath: bloomOf(path), cacheDepth });
    }
    const files: ObjectFile[] = isMerge ? [] : [...this.#old.files];
    for (const name of bloomFilters ? [path, `${path}.bloomfilter`] : [path]) {
      const opened = await storage.open(name, 'read');
      const bytes = await opened.read(0, opened.size);
      const key = newFileKey(ids);
      await objects.put(key, bytes.slice());
      files.push({ name, key, sizeBytes: bytes.length });
    }
    return files;
  }

  async manifest(files: ObjectFile[]): Promise<ObjectManifest> {
    await this.#flush();
    return {
      ...this.#old,
      number: this.#old.number + 1,
      writtenMs: this.#world.clock.nowMs(),
      boundary: this.#boundary,
      logEnd: this.#end,
      endsChunk: this.#endsChunk,
      chunks: this.#chunks,
      ongoing: this.#ongoing,
      files,
      dropped: this.#dropped,
    };
  }
}

function entriesOf(commits: readonly Commit[]): MemTable {
  const table = new MemTable(0);
  const frame = new RecordFrame();
  const fields = new PrepareFields();
  const hash = new Hash64();
  for (const { records, start } of commits) {
    eachRecord(records, start, frame, () => {
      if (frame.type !== PREPARE) return;
      parsePrepare(frame, fields);
      if (!fields.isEvent) return;
      streamHasher.hashUtf8(frame.bytes, fields.streamAt, fields.streamLength, hash);
      table.add(hash.hi, hash.lo, fields.eventNumber, frame.position);
    });
  }
  return table;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
