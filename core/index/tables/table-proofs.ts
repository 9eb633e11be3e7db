import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { isSameStamp, type Proof, readProofs, stampOf, writeProofs } from '../../log/format/proofs-file.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Jobs } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import { INDEX_FOLDER } from '../format/index-map.ts';
import type { TableReader } from './tables.ts';
import { PROVE_TABLE_JOB, type VerifyTableArgs, type VerifyTableResult } from '../jobs/jobs.ts';

/**
 * In the folder of the index: the tables that were proved, as a clean stop has left them. It is there between a clean stop and the next start
 * only, which removes it as it removes all that the index map does not name: what a crash leaves behind is always verified.
 */
export const TABLE_PROOFS_NAME = 'proven-tables';
const TABLE_PROOFS_PATH = `${INDEX_FOLDER}/${TABLE_PROOFS_NAME}`;
export const TABLE_PROOFS_FORMAT = 'skua proven tables 1';
/** A start is not slowed down by the first proofs. */
const FIRST_PROOF_AFTER_MS = 10_000;
/** How often is looked for tables that were written since, or whose proof has become old. */
const LOOK_EVERY_MS = 60_000;
/** A table that could not be read is tried again after this. */
const RETRY_AFTER_MS = 3_600_000;
/** Age at which a proof is renewed. */
export const PROVE_TABLE_AGAIN_AFTER_MS = 7 * 86_400_000;
/** Bytes a second at which proofs are renewed. What was never proved is read without a limit. */
const PROVE_AGAIN_BYTES_PER_SECOND = 16_777_216;

interface ProofFiles {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly clock: Clock;
  readonly log: Log;
}

/** The proofs that the last clean stop left, by the names of tables. What can't be read is as good as none: the tables are verified. */
export async function loadTableProofs({ storage, digests, clock, log }: ProofFiles): Promise<ReadonlyMap<string, Proof>> {
  const found = new Map<string, Proof>();
  try {
    const nowMs = clock.nowMs();
    // A proof of the future comes of a clock that was wrong: it would never become old.
    for (const [name, proof] of await readProofs(storage, digests, TABLE_PROOFS_PATH, TABLE_PROOFS_FORMAT)) if (proof.provenMs <= nowMs) found.set(name, proof);
  } catch (error) {
    log.warn(`${TABLE_PROOFS_NAME} can't be used: all index tables are verified before the start continues`, { path: TABLE_PROOFS_PATH, error: String(error) });
  }
  return found;
}

/** Whether a table is still what was proved. */
export async function isProven(storage: Storage, path: string, proof: Proof | undefined): Promise<boolean> {
  if (proof === undefined) return false;
  const now = await stampOf(storage, path);
  return now !== null && isSameStamp(now, proof);
}

/** Runs what proves a table, and gives the proof; null where the file changed meanwhile. Throws `index_corrupt`, and what `run` throws. */
export async function proveTable({ storage, clock }: Pick<ProofFiles, 'storage' | 'clock'>, path: string, run: () => Promise<VerifyTableResult>): Promise<Proof | null> {
  const before = await stampOf(storage, path);
  const wrong = await run();
  if (wrong !== null) throw new SkuaError('index_corrupt', wrong, { path });
  const after = await stampOf(storage, path);
  return before === null || after === null || !isSameStamp(before, after) ? null : { ...after, provenMs: Math.floor(clock.nowMs()) };
}

export interface TableProofParts extends ProofFiles {
  readonly jobs: Jobs;
  /** The tables in force. */
  readonly tables: () => readonly TableReader[];
  /** Told once, of a table whose content does not fit its checksum; nothing is proved after that. */
  readonly onDamage: (error: SkuaError) => void;
}

/** Proves index tables in the background of a running store: those written since it began, and again those whose proof is old. */
export class TableProofs {
  readonly #parts: TableProofParts;
  /** Monotonic time before which a table that could not be read is left alone. */
  readonly #retryMs = new WeakMap<TableReader, number>();

  constructor(parts: TableProofParts) {
    this.#parts = parts;
  }

  /** Ends with the signal, or with the first damage. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    await clock.sleep(FIRST_PROOF_AFTER_MS, signal);
    while (!signal.aborted) {
      for (let next = this.#next(); next !== null && !signal.aborted; next = this.#next()) if (!await this.#prove(next, signal)) return;
      await clock.sleep(LOOK_EVERY_MS, signal);
    }
  }

  /** A table that was never proved, else the one proved longest ago if that is long. */
  #next(): TableReader | null {
    const { clock, tables } = this.#parts;
    const nowMs = clock.monotonicMs();
    const due = tables().filter((table) => nowMs >= (this.#retryMs.get(table) ?? -Infinity) && (table.proof === null || table.proof.provenMs <= clock.nowMs() - PROVE_TABLE_AGAIN_AFTER_MS));
    return due.reduce<TableReader | null>((oldest, table) => (oldest === null || (table.proof?.provenMs ?? -1) < (oldest.proof?.provenMs ?? -1) ? table : oldest), null);
  }

  /** False after damage. */
  async #prove(table: TableReader, signal: AbortSignal): Promise<boolean> {
    const { jobs, tables, log, onDamage } = this.#parts;
    // A merge or a scavenge may replace it meanwhile, and then its file goes.
    const isInForce = (): boolean => tables().includes(table);
    const args: VerifyTableArgs = { path: table.path, bytesPerSecond: table.proof === null ? 0 : PROVE_AGAIN_BYTES_PER_SECOND };
    this.#retryMs.set(table, this.#parts.clock.monotonicMs() + RETRY_AFTER_MS);
    try {
      const proof = await proveTable(this.#parts, table.path, async () => await jobs.run(PROVE_TABLE_JOB, args, { signal }) as VerifyTableResult);
      if (proof === null) return true;
      table.proof = proof;
      this.#retryMs.delete(table);
    } catch (error) {
      if (signal.aborted || !isInForce()) return true;
      if (!isSkuaError(error, 'index_corrupt')) {
        log.warn('an index table could not be verified', { path: table.path, error: String(error) });
        return true;
      }
      table.proof = null;
      onDamage(error as SkuaError);
      return false;
    }
    return true;
  }
}

/** Writes down, at a clean stop, what is proved. What can't be written is verified by the next start. */
export async function saveTableProofs({ storage, digests, log }: ProofFiles, tables: readonly TableReader[]): Promise<void> {
  const proofs = new Map<string, Proof>();
  for (const { name, proof } of tables) if (proof !== null) proofs.set(name, proof);
  if (proofs.size === 0) return;
  try {
    await writeProofs(storage, digests, TABLE_PROOFS_PATH, TABLE_PROOFS_FORMAT, proofs);
  } catch (error) {
    log.warn(`${TABLE_PROOFS_NAME} could not be written: the next start verifies all index tables`, { path: TABLE_PROOFS_PATH, error: String(error) });
  }
}
