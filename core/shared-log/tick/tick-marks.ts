import { streamHasher } from '../../base/stream-hash.ts';
import type { Digests } from '../../ports/digests.ts';
import type { MarkColumns } from '../../streams/api.ts';
import { ReadRecords } from '../../streams/committed/committed.ts';
import { MARKS_FILE, readMarksTable, writeMarksTable } from '../../streams/format/marks-table.ts';
import { ALL_MARKS } from '../../streams/format/mark-columns.ts';
import { Redactions } from '../../streams/redactions/redactions.ts';
import type { Commit } from '../format/commit-object.ts';
import type { ObjectStorage } from './tick-storage.ts';

/** The table of marks that the next manifest names: that of the one before, and those of the commits taken over. */
export class TickMarks {
  readonly #storage: ObjectStorage;
  readonly #digests: Digests;
  readonly #read = new ReadRecords(streamHasher);
  #taken = new Redactions();

  constructor(storage: ObjectStorage, digests: Digests) {
    this.#storage = storage;
    this.#digests = digests;
  }

  take({ records, start }: Pick<Commit, 'records' | 'start'>): void {
    for (const { mark, position } of this.#read.read(records, start).marks) this.#taken.add(mark, position);
  }

  /** Writes the table anew where there is something to add. */
  async save(): Promise<void> {
    if (this.#taken.count === 0) return;
    await writeMarksTable(this.#storage, MARKS_FILE, await this.all(), this.#digests);
    this.#taken = new Redactions();
  }

  /** Those of the manifest, and those that were taken since. */
  async all(): Promise<MarkColumns> {
    const marks = new Redactions();
    const table = await readMarksTable(this.#storage, MARKS_FILE, this.#digests);
    if (table !== null) marks.addAll(table);
    marks.addAll(this.#taken.columns(...ALL_MARKS));
    return marks.columns(...ALL_MARKS);
  }
}
