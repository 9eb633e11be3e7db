import { END, HIT, untilHit } from '../../base/step.ts';
import type { ChunkTable } from '../../log/api.ts';
import { RecordFrame } from '../../log/format/records.ts';
import { FITS, REMOVED, sampledAnother } from '../../index/format/of-log.ts';
import type { EntryBatch } from '../../index/format/table-scan.ts';
import type { Storage } from '../../ports/storage.ts';
import type { AttributeSink } from '../api.ts';
import { AttributeIntake } from '../intake/intake.ts';

/** Notes whether an attribute with a given hash comes by. */
class Expected implements AttributeSink {
  hi = 0;
  lo = 0;
  wasMet = false;

  expect(hi: number, lo: number): void {
    this.hi = hi;
    this.lo = lo;
    this.wasMet = false;
  }

  add(hi: number, lo: number): void {
    this.wasMet ||= hi === this.hi && lo === this.lo;
  }

  end(): void {}
}

/** What the log has where entries of attribute indexes say. */
export class LogOfAttributes {
  readonly #log: ChunkTable;
  readonly #frame = new RecordFrame();
  readonly #expected = new Expected();
  readonly #intake = new AttributeIntake({
    names: this.#expected,
    correlations: this.#expected,
    tags: this.#expected,
  });

  constructor(log: ChunkTable) {
    this.#log = log;
  }

  /**
   * Each entry must lead to a record that commits an event with that attribute, or to one that a scavenge has removed:
   * `FITS` or `REMOVED`, else what is there.
   */
  async found({ hi, lo, positions }: EntryBatch, i: number): Promise<string> {
    const position = positions[i]!;
    const log = this.#log;
    const frame = this.#frame;
    if (position >= log.end) return `beyond the log's end at ${log.end}`;
    const outcome = await untilHit(() => {
      const boundary = log.isBoundary(position);
      return boundary === HIT ? log.readAt(position, frame) : boundary;
    });
    if (outcome === END) return log.chunkAt(position)?.isScavenged === true ? REMOVED : 'where no record starts';
    this.#expected.expect(hi[i]!, lo[i]!);
    await this.#intake.visit(frame, log);
    if (this.#expected.wasMet) return FITS;
    // Of an explicit transaction a scavenge may have removed some events and left its commit record.
    return log.chunkAt(position)?.isScavenged === true ? REMOVED : 'where no event has that attribute';
  }

  /** As `sampledAnother` has it. */
  whyAnother(storage: Storage, path: string): Promise<string | null> {
    return sampledAnother(storage, path, (batch, i) => this.found(batch, i));
  }
}
