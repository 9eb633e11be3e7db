import { END, HIT, untilHit } from '../../base/step.ts';
import type { ChunkTable } from '../../log/api.ts';
import {
  FLAG_STREAM_DELETE,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
  streamOf,
  TOMBSTONE,
} from '../../log/format/records.ts';
import type { Storage } from '../../ports/storage.ts';
import { Hash64, type StreamHasher } from '../../base/stream-hash.ts';
import type { EntryBatch } from './table-scan.ts';
import { readBatches } from './table-scan.ts';

/** Entries of a table that are looked up in the log when it is opened: of another log hardly one fits. */
const SAMPLES = 16;

/** There is such an event; a scavenge has removed what was there. Any other text says what is wrong. */
export const FITS = 'fits';
export const REMOVED = 'removed';

/** What the log has where the entries of the index say. */
export class LogOfEntries {
  readonly #log: ChunkTable;
  readonly #hasher: StreamHasher;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  readonly #hash = new Hash64();

  constructor(log: ChunkTable, hasher: StreamHasher) {
    this.#log = log;
    this.#hasher = hasher;
  }

  /**
   * Each entry must lead to a record of that stream and number, or to one that a scavenge has removed: `FITS` or
   * `REMOVED`, else what is there.
   */
  async found({ hi, lo, versions, positions }: EntryBatch, i: number): Promise<string> {
    const position = positions[i]!;
    const frame = this.#frame;
    const fields = this.#fields;
    const log = this.#log;
    if (position >= log.end) return `beyond the log's end at ${log.end}`;
    const outcome = await untilHit(() => {
      const boundary = log.isBoundary(position);
      return boundary === HIT ? log.readAt(position, frame) : boundary;
    });
    if (outcome === END) return log.chunkAt(position)?.isScavenged === true ? REMOVED : 'where no record starts';
    if (frame.type !== PREPARE) return 'where there is no event';
    parsePrepare(frame, fields);
    this.#hasher.hashUtf8(frame.bytes, fields.streamAt, fields.streamLength, this.#hash);
    const number = (fields.flags & FLAG_STREAM_DELETE) !== 0 ? TOMBSTONE : fields.eventNumber;
    if (this.#hash.hi !== hi[i] || this.#hash.lo !== lo[i])
      return `where there is an event of stream '${streamOf(frame, fields)}'`;
    return fields.isCommitted && number !== versions[i] ? `where there is event ${number}, not ${versions[i]}` : FITS;
  }

  /** As `sampledAnother` has it. */
  whyAnother(storage: Storage, path: string): Promise<string | null> {
    return sampledAnother(storage, path, (batch, i) => this.found(batch, i));
  }
}

/**
 * Why a table can't be of a log: most of some of its entries name what is not there, as `found` says; null where they
 * don't. A damaged record is no reason.
 */
export async function sampledAnother(
  storage: Storage,
  path: string,
  found: (batch: EntryBatch, i: number) => Promise<string>,
): Promise<string | null> {
  for await (const batch of readBatches(storage, path)) {
    const step = Math.max(1, Math.floor(batch.count / SAMPLES));
    let fitting = 0;
    const wrong: string[] = [];
    for (let i = 0; i < batch.count; i += step) {
      const there = await found(batch, i).catch(() => REMOVED);
      if (there === FITS) fitting++;
      else if (there !== REMOVED) wrong.push(`${path} names position ${batch.positions[i]}, ${there}`);
    }
    return wrong.length > fitting ? wrong[0]! : null;
  }
  return null;
}
