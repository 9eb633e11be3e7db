import { i64 } from '../../base/bytes.ts';
import { BlockCache } from '../../cache/cache.ts';
import { SkuaError } from '../../base/errors.ts';
import {
  chunkNumberAt,
  parseChunkFileNames,
  takeInventory,
  type ChunkFileName,
} from '../../log/format/chunk-format.ts';
import { ChunkTable } from '../../log/chunk-table/chunk-table.ts';
import { Chunk, openCompleted } from '../../log/chunk/chunk.ts';
import { checkRecordEndsAt, findLogEnd } from '../../log/log-end/log-end.ts';
import { checkHeaderRange, hasFooter, readHeader } from '../../log/format/chunk-files.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage } from '../../ports/storage.ts';

const ADVICE = 'Use an empty directory for the member, or restore this one from a backup.';

/** A chunk file in force. */
export interface ReplicaFile {
  readonly name: string;
  readonly startNumber: number;
  readonly endNumber: number;
}

/** The chunk that is not complete: its data ends at this local offset. */
interface ReplicaFilling extends ReplicaFile {
  readonly dataBytes: number;
}

/** What a stopped directory holds, found out without changing it. */
export interface ReplicaInspection {
  /** Null for a directory without any log. */
  readonly chunkSizeBytes: number | null;
  /**
   * Where the next record would go: the place to which a start recovers the log, or at which a truncation that was
   * asked for ends it.
   */
  readonly end: number;
  /** `truncate.chk` asks for something: an opening does that first. */
  readonly isCutPending: boolean;
  /** Completed chunk files below the end, ascending. */
  readonly files: readonly ReplicaFile[];
  /** Null where the log ends at the beginning of a chunk that has no data. */
  readonly filling: ReplicaFilling | null;
}

const EMPTY: ReplicaInspection = { chunkSizeBytes: null, end: 0, isCutPending: false, files: [], filling: null };

/**
 * Looks at the log of a stopped directory as an opening would find it. Throws `log_corrupt`, `chunk_missing`,
 * `chunk_unexpected`, `checkpoint_corrupt` or `log_unsupported`, as an opening would.
 */
export async function inspectReplica(storage: Storage, digests: Digests): Promise<ReplicaInspection> {
  const names = parseChunkFileNames(await storage.list(''));
  const [writer, asked] = await Promise.all([
    readCheckpoint(storage, 'writer.chk'),
    readCheckpoint(storage, 'truncate.chk'),
  ]);
  if (names.length === 0) {
    // The first file went last in a cut down to nothing.
    if (asked === 0) return { ...EMPTY, isCutPending: true };
    if (writer !== null && writer > 0)
      throw new SkuaError(
        'chunk_missing',
        `writer.chk names position ${writer}, and there is no chunk file in the directory. ${ADVICE}`,
        { chunk: 0, count: 1 },
      );
    return EMPTY;
  }
  return new Inspection(storage, digests, names, (await readHeader(storage, names[0]!.name)).chunkSize).run(
    writer,
    asked ?? -1,
  );
}

async function readCheckpoint(storage: Storage, path: string): Promise<number | null> {
  const size = await storage.size(path);
  if (size === null || size === 0) return null;
  const file = await storage.open(path, 'read');
  try {
    const bytes = await file.read(0, 8);
    if (bytes.length === 8) return i64(bytes, 0);
  } finally {
    await file.close();
  }
  throw new SkuaError('checkpoint_corrupt', `${path} has ${size} bytes instead of 8. ${ADVICE}`, {
    file: path,
    offset: 0,
  });
}

class Inspection {
  readonly #storage: Storage;
  readonly #digests: Digests;
  readonly #names: readonly ChunkFileName[];
  readonly #chunkSize: number;

  constructor(storage: Storage, digests: Digests, names: readonly ChunkFileName[], chunkSize: number) {
    this.#storage = storage;
    this.#digests = digests;
    this.#names = names;
    this.#chunkSize = chunkSize;
  }

  async run(recorded: number | null, asked: number): Promise<ReplicaInspection> {
    const isCutPending = asked >= 0;
    // What a truncation is about to take away, or has half taken away, is not looked at.
    const cut = isCutPending && (recorded === null || asked <= recorded) ? asked : null;
    const writer = cut ?? recorded ?? (await this.#guessWriter());
    const lastNumber = chunkNumberAt(writer, this.#chunkSize, cut === null ? 'writer.chk' : 'truncate.chk', ADVICE);
    const below =
      cut === null
        ? await this.#withoutOrphan(lastNumber, writer)
        : this.#names.filter(({ number }) => number <= lastNumber);
    const inventory = await takeInventory(
      below,
      lastNumber - 1,
      async ({ name }) => (await readHeader(this.#storage, name)).endNumber,
    );
    if (inventory.missing.length > 0) throw this.#missing(inventory.missing[0]!, writer);
    const files = inventory.latest.map(({ file, endNumber }): ReplicaFile => ({
      name: file.name,
      startNumber: file.number,
      endNumber,
    }));
    const base = { chunkSizeBytes: this.#chunkSize, isCutPending };
    const last = files.at(-1);
    if (last === undefined || last.endNumber < lastNumber) {
      if (writer !== lastNumber * this.#chunkSize) throw this.#missing(lastNumber, writer);
      // The chunk before may be full to its last byte, and was never completed then.
      const isWhole = last === undefined || (await hasFooter(this.#storage, last.name));
      return {
        ...base,
        end: writer,
        files: isWhole ? files : files.slice(0, -1),
        filling: isWhole ? null : { ...last!, dataBytes: this.#chunkSize },
      };
    }
    const header = await readHeader(this.#storage, last.name);
    checkHeaderRange(last.name, header, {
      number: last.startNumber,
      endNumber: last.endNumber,
      chunkSize: this.#chunkSize,
    });
    // A scavenged chunk is complete, and a cut into it takes it away whole.
    if (header.isScavenged && cut !== null)
      return { ...base, end: last.startNumber * this.#chunkSize, files: files.slice(0, -1), filling: null };
    if (header.isScavenged) return { ...base, end: (last.endNumber + 1) * this.#chunkSize, files, filling: null };
    const file = await this.#storage.open(last.name, 'read');
    try {
      const local = writer - lastNumber * this.#chunkSize;
      if (cut !== null) await checkRecordEndsAt(file, header, local);
      const dataBytes =
        cut !== null ? local : (await findLogEnd(file, header, local, this.#digests, recorded === null)).localEnd;
      const filling = dataBytes === 0 ? null : { ...last, dataBytes };
      return { ...base, end: lastNumber * this.#chunkSize + dataBytes, files: files.slice(0, -1), filling };
    } finally {
      await file.close();
    }
  }

  /** Without writer.chk the log ends in or behind its last chunk. */
  async #guessWriter(): Promise<number> {
    const last = this.#names.at(-1)!;
    const { startNumber, endNumber } = await readHeader(this.#storage, last.name);
    return ((await hasFooter(this.#storage, last.name)) ? endNumber + 1 : startNumber) * this.#chunkSize;
  }

  /** An opening removes one empty file behind the log's end, and refuses anything else there. */
  async #withoutOrphan(lastNumber: number, writer: number): Promise<readonly ChunkFileName[]> {
    const beyond = this.#names.filter(({ number }) => number > lastNumber);
    if (beyond.length <= 1 && (beyond[0]?.number ?? lastNumber + 1) === lastNumber + 1)
      return this.#names.filter(({ number }) => number <= lastNumber);
    throw new SkuaError(
      'chunk_unexpected',
      `${beyond[0]!.name} is beyond the end of the log: writer.chk names position ${writer}, in chunk ${lastNumber}. ${ADVICE}`,
      { file: beyond[0]!.name, writer },
    );
  }

  #missing(number: number, writer: number): SkuaError {
    return new SkuaError(
      'chunk_missing',
      `The file of chunk ${number} is missing, though the log reaches to position ${writer}. ${ADVICE}`,
      { chunk: number },
    );
  }
}

/**
 * The chunks of the directory that hold anything at or behind `from`, open for reading. To be closed by the caller;
 * throws `log_corrupt`.
 */
export async function openInspected(
  storage: Storage,
  { chunkSizeBytes, end, files, filling }: ReplicaInspection,
  from: number,
): Promise<ChunkTable> {
  const table = new ChunkTable(chunkSizeBytes ?? 1);
  const cache = new BlockCache(0);
  try {
    for (const { name, startNumber, endNumber } of files) {
      if ((endNumber + 1) * table.chunkSize <= from) continue;
      table.put(
        await openCompleted(storage, cache, name, { number: startNumber, endNumber, chunkSize: table.chunkSize }),
      );
    }
    if (filling !== null) {
      const header = await readHeader(storage, filling.name);
      table.put(
        new Chunk(
          filling.name,
          cache.attach(await storage.open(filling.name, 'read')),
          header,
          null,
          filling.dataBytes,
        ),
      );
    }
  } catch (error) {
    await table.close();
    throw error;
  }
  table.end = end;
  return table;
}
