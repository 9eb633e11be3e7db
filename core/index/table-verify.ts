import { equalBytes } from '../base/bytes.ts';
import { isSkuaError, SkuaError } from '../base/errors.ts';
import { paced, type JobContext } from '../ports/jobs.ts';
import type { Digest, Digests } from '../ports/digests.ts';
import type { StorageFile } from '../ports/storage.ts';
import { compareEntries, HEADER_BYTES, MD5_BYTES, MIDPOINT_BYTES, midpointIndex, readEntry, TableEntry, tableCorrupt } from './format/table-format.ts';
import { openTable, READ_BYTES, TableSource } from './table-scan.ts';

/** Before a start goes on, and in the background of a running store, where nobody waits for it. */
export const VERIFY_TABLE_JOB = 'index.verify-table';
export const PROVE_TABLE_JOB = 'index.prove-table';

export interface VerifyTableArgs {
  readonly path: string;
  /** Read no faster; 0, the default, for no limit. */
  readonly bytesPerSecond?: number;
}
/** What of a job's world is used. */
export type VerifyContext = Pick<JobContext, 'storage' | 'digests' | 'progress' | 'checkpoint' | 'monotonicMs' | 'sleep'>;
/** Null when the table is sound, else what is wrong with it. */
export type VerifyTableResult = string | null;

/** Feeds the whole file but the digest at its end to `each`, and says whether the digest fits. */
export async function checkMd5(file: StorageFile, digests: Digests, each: (done: number) => Promise<void>): Promise<boolean> {
  const digest: Digest = digests.md5();
  const end = file.size - MD5_BYTES;
  for (let at = 0; at < end; at += READ_BYTES) {
    digest.update(await file.read(at, Math.min(READ_BYTES, end - at)));
    await each(Math.min(at + READ_BYTES, end));
  }
  const stored = await file.read(end, MD5_BYTES);
  return stored.length === MD5_BYTES && equalBytes(digest.finish(), 0, stored, 0, MD5_BYTES);
}

/** Checks the digest, the order of the entries, and that every midpoint is the entry it stands for. */
export async function verifyTable(args: VerifyTableArgs, context: VerifyContext): Promise<VerifyTableResult> {
  try {
    await verify(args, context);
    return null;
  } catch (error) {
    if (isSkuaError(error, 'index_corrupt') || isSkuaError(error, 'file_not_found')) return (error as SkuaError).message;
    throw error;
  }
}

async function verify({ path, bytesPerSecond = 0 }: VerifyTableArgs, context: VerifyContext): Promise<void> {
  const { file, shape } = await openTable(context.storage, path);
  const source = new TableSource(path, file, shape);
  try {
    const between = paced(context, file.size, bytesPerSecond);
    let passed = 0;
    const sound = await checkMd5(file, context.digests, async (done) => {
      await between(done - passed);
      passed = done;
    });
    if (!sound) throw tableCorrupt(path, 'has an MD5 that does not fit its bytes');
    const stored = await file.read(HEADER_BYTES + shape.entries * shape.entryBytes, shape.midpoints * MIDPOINT_BYTES);
    // Storage may give a view; midpoints of the largest table are a few megabytes.
    const check = new OrderCheck(path, source, stored.slice());
    while (await source.fill()) {
      check.block();
      await context.checkpoint();
    }
  } finally {
    await source.close();
  }
}

class OrderCheck {
  readonly #path: string;
  readonly #source: TableSource;
  readonly #midpoints: Uint8Array;
  readonly #midpoint = new TableEntry();
  readonly #last = new TableEntry();
  #number = 0;
  #nextMidpoint = 0;

  constructor(path: string, source: TableSource, midpoints: Uint8Array) {
    this.#path = path;
    this.#source = source;
    this.#midpoints = midpoints;
  }

  block(): void {
    const { entry, shape } = this.#source;
    while (this.#source.next()) {
      if (this.#number > 0 && compareEntries(this.#last, entry) < 0) throw tableCorrupt(this.#path, `is out of order at entry ${this.#number}`);
      this.#last.hi = entry.hi;
      this.#last.lo = entry.lo;
      this.#last.version = entry.version;
      this.#last.position = entry.position;
      while (this.#nextMidpoint < shape.midpoints && midpointIndex(this.#nextMidpoint, shape.midpoints, shape.entries) === this.#number) this.#checkMidpoint();
      this.#number++;
    }
  }

  #checkMidpoint(): void {
    const m = this.#midpoint;
    readEntry(this.#midpoints, this.#nextMidpoint * MIDPOINT_BYTES, 4, m);
    const e = this.#last;
    if (m.hi !== e.hi || m.lo !== e.lo || m.version !== e.version || m.position !== this.#number) {
      throw tableCorrupt(this.#path, `has a midpoint ${this.#nextMidpoint} that is not entry ${this.#number}`);
    }
    this.#nextMidpoint++;
  }
}
