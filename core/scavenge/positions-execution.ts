import { BlockCache } from '../cache/cache.ts';
import type { TableExecution } from '../index/api.ts';
import type { TableEntry } from '../index/format/table-format.ts';
import { type Chunk, openCompleted } from '../log/chunk/chunk.ts';
import { HEADER_BYTES, mapActual, mapLogical, parseChunkFileNames } from '../log/format/chunk-format.ts';
import { FRAME_BYTES } from '../log/format/records.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { RunFiles, RunSettings } from './sources/run-settings.ts';
import { copyTable, type EntryRule, type TableCopied } from './table-copy.ts';

/** The job that copies of one table of an attribute index what names records that are there. */
export const EXECUTE_POSITIONS_JOB = 'scavenge.execute-positions-table';

export interface ExecutePositionsArgs extends TableExecution {
  /** The chunks in force. */
  readonly files: RunFiles;
  readonly settings: RunSettings;
}

export async function executePositions(args: ExecutePositionsArgs, context: JobContext): Promise<TableCopied> {
  return copyTable(args, args.settings, context, (work) =>
    work(new RecordRule(args.files, args.settings.point.position, context)),
  );
}

/**
 * Bytes of the positions that are in memory at a time. A table spans few chunks, so mostly this is enough for all of
 * them; where it isn't, the table is read once more for each so many bytes.
 */
const POSITIONS_BYTES_MAX = 67_108_864;
/** Bytes read at once. */
const READ_BYTES = 1_048_576;
/** Only headers and footers come through it. */
const CACHE_BYTES = 1_048_576;

/** What is known of a chunk file. */
const UNSEEN = 0;
const LOADED = 1;
/** All its entries have been judged, or all stay. */
const DONE = 2;
/** There was no room for its positions. */
const LATER = 3;

/**
 * An entry stays while there is a record at its position. A chunk that was never scavenged has all of its records;
 * those of a scavenged one are in its position map. What can't be read ends the job: nothing goes unless it was seen
 * to be gone.
 */
export class RecordRule implements EntryRule {
  readonly outOfOrder = 0;
  readonly #files: RunFiles;
  readonly #before: number;
  readonly #context: Pick<JobContext, 'storage' | 'checkpoint'>;
  readonly #bytesMax: number;
  readonly #cache = new BlockCache(CACHE_BYTES);
  /** First logical chunk of each file, ascending. */
  readonly #starts: readonly number[];
  readonly #known: Uint8Array;
  readonly #positions = new Map<number, Positions>();
  #bytes = 0;
  /** Place of the file of the last entry. */
  #last = 0;

  /** Entries of records at or behind `before` stay. */
  constructor(
    files: RunFiles,
    before: number,
    context: Pick<JobContext, 'storage' | 'checkpoint'>,
    bytesMax = POSITIONS_BYTES_MAX,
  ) {
    this.#files = files;
    this.#before = before;
    this.#context = context;
    this.#bytesMax = bytesMax;
    this.#starts = files.chunks.map((file) => parseChunkFileNames([file.name])[0]?.number ?? -1);
    this.#known = new Uint8Array(files.chunks.length);
  }

  keeps({ position }: TableEntry): boolean | Promise<boolean> {
    if (position >= this.#before) return true;
    const place = this.#placeOf(Math.floor(position / this.#files.chunkSize));
    if (place < 0) return true;
    const known = this.#known[place];
    if (known === LOADED) return this.#positions.get(place)!.has(position);
    return known === UNSEEN ? this.#look(place).then(() => this.#positions.get(place)?.has(position) ?? true) : true;
  }

  again(): boolean {
    let isLeft = false;
    this.#known.forEach((known, place) => {
      if (known === LOADED) this.#known[place] = DONE;
      else if (known === LATER) {
        this.#known[place] = UNSEEN;
        isLeft = true;
      }
    });
    this.#positions.clear();
    this.#bytes = 0;
    return isLeft;
  }

  /** Place of the file that a logical chunk would be in; -1 when there is none. */
  #placeOf(number: number): number {
    const starts = this.#starts;
    const last = this.#last;
    if (starts[last]! <= number && !(starts[last + 1]! <= number)) return last;
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (starts[middle]! <= number) low = middle + 1;
      else high = middle;
    }
    if (low > 0) this.#last = low - 1;
    return low - 1;
  }

  async #look(place: number): Promise<void> {
    const { storage } = this.#context;
    const chunk = await openCompleted(storage, this.#cache, this.#files.chunks[place]!.name);
    try {
      this.#known[place] = await this.#lookAt(chunk, place);
    } finally {
      chunk.file.detach();
      await chunk.file.file.close();
    }
  }

  async #lookAt(chunk: Chunk, place: number): Promise<number> {
    if (!chunk.isScavenged) return DONE;
    const bytes = chunk.mapCount * Uint32Array.BYTES_PER_ELEMENT;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) return LATER;
    this.#positions.set(place, await Positions.of(chunk, this.#files.chunkSize, () => this.#context.checkpoint()));
    this.#bytes += bytes;
    return LOADED;
  }
}

/** Where the records of a scavenged chunk file stand in the log. */
class Positions {
  readonly #start: number;
  readonly #chunkSize: number;
  /** Of all records, from the start of the logical chunk that each is in. */
  readonly #offsets: Uint32Array;
  /** For each logical chunk the place of its first record, and at last how many there are. */
  readonly #firsts: Uint32Array;

  private constructor(start: number, chunkSize: number, offsets: Uint32Array, firsts: Uint32Array) {
    this.#start = start;
    this.#chunkSize = chunkSize;
    this.#offsets = offsets;
    this.#firsts = firsts;
  }

  /** Throws `log_corrupt` for a map that no scavenge writes. */
  static async of(chunk: Chunk, chunkSize: number, checkpoint: () => Promise<void>): Promise<Positions> {
    const { mapCount, mapEntryBytes, physicalBytes, startPosition, endPosition } = chunk;
    const offsets = new Uint32Array(mapCount);
    const chunks = chunk.endNumber - chunk.startNumber + 1;
    const firsts = new Uint32Array(chunks + 1);
    const pieceEntries = Math.floor(READ_BYTES / mapEntryBytes);
    let logical = -1;
    let actual = -1;
    let number = -1;
    for (let from = 0; from < mapCount; from += pieceEntries) {
      const count = Math.min(pieceEntries, mapCount - from);
      const at = physicalBytes + from * mapEntryBytes;
      const bytes = await chunk.file.file.read(HEADER_BYTES + at, count * mapEntryBytes);
      if (bytes.length !== count * mapEntryBytes) throw chunk.corrupt(at + bytes.length, 'the end of its position map');
      for (let i = 0; i < count; i++) {
        const nextActual = mapActual(bytes, i * mapEntryBytes);
        const nextLogical = mapLogical(bytes, i * mapEntryBytes, mapEntryBytes);
        // Between two records lies at least the first of them.
        if (
          nextActual <= actual ||
          nextLogical - logical < nextActual - actual ||
          nextActual + FRAME_BYTES > physicalBytes ||
          nextLogical >= endPosition - startPosition
        )
          throw chunk.corrupt(at + i * mapEntryBytes, 'an entry of the position map that is out of order');
        logical = nextLogical;
        actual = nextActual;
        const within = Math.floor(logical / chunkSize);
        while (number < within) firsts[++number] = from + i;
        offsets[from + i] = logical - within * chunkSize;
      }
      await checkpoint();
    }
    while (number < chunks) firsts[++number] = mapCount;
    return new Positions(startPosition, chunkSize, offsets, firsts);
  }

  /** Whether a record begins at the position. True for one that is not the file's. */
  has(position: number): boolean {
    const number = Math.floor((position - this.#start) / this.#chunkSize);
    if (number < 0 || number + 1 >= this.#firsts.length) return true;
    const offsets = this.#offsets;
    const offset = position - this.#start - number * this.#chunkSize;
    let low = this.#firsts[number]!;
    let high = this.#firsts[number + 1]!;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (offsets[middle]! < offset) low = middle + 1;
      else high = middle;
    }
    return low < this.#firsts[number + 1]! && offsets[low] === offset;
  }
}
