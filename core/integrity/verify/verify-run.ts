import { BlockCache } from '../../cache/cache.ts';
import { SkuaError } from '../../base/errors.ts';
import { streamHasher } from '../../base/stream-hash.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { ScavengeStates } from '../../ports/scavenge-state.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';

export interface VerifyOptions {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly clock: Clock;
  readonly hasher?: StreamHasher;
  /** To check the scavenge database with; it is not looked at without. */
  readonly scavengeStates?: Pick<ScavengeStates, 'check'>;
  /** Findings after this many are only counted. Default 1000. */
  readonly findingsMax?: number;
}

/** One thing that is wrong (`error`) or unusual but harmless (`warning`), and where. */
export interface VerifyFinding {
  readonly kind: 'finding';
  readonly severity: 'error' | 'warning';
  /** Stable, such as `md5_mismatch`. */
  readonly code: string;
  readonly file: string;
  readonly offset: number | null;
  readonly message: string;
}

/** What no checksum covers, so that a changed byte may go unnoticed there: no fault, but not proved either. */
export interface VerifyNote {
  readonly kind: 'note';
  /** Stable, such as `ongoing_unprotected`. */
  readonly code: string;
  readonly file: string;
  /** First byte that is not covered; null where that is no range of bytes. */
  readonly offset: number | null;
  /** Bytes that are not covered; null where that is not known. */
  readonly bytes: number | null;
  readonly message: string;
}

export interface VerifyProgress {
  readonly kind: 'progress';
  readonly phase: 'log' | 'index' | 'scavenge-database';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** What the parts of a verification share. */
export class VerifyRun {
  readonly options: VerifyOptions;
  readonly storage: Storage;
  readonly digests: Digests;
  readonly hasher: StreamHasher;
  readonly cache = new BlockCache(33_554_432);
  chunks = 0;
  records = 0;
  events = 0;
  indexTables = 0;
  indexEntries = 0;
  errors = 0;
  warnings = 0;
  notes = 0;
  readonly #findings: (VerifyFinding | VerifyNote)[] = [];
  readonly #files: StorageFile[] = [];
  readonly #findingsMax: number;

  constructor(options: VerifyOptions) {
    this.options = options;
    this.storage = options.storage;
    this.digests = options.digests;
    this.hasher = options.hasher ?? streamHasher;
    this.#findingsMax = options.findingsMax ?? 1_000;
  }

  /** Opens a file for reading until the run ends. */
  async open(path: string): Promise<StorageFile> {
    const file = await this.storage.open(path, 'read');
    this.#files.push(file);
    return file;
  }

  async close(): Promise<void> {
    for (const file of this.#files.splice(0)) await file.close();
  }

  add(severity: 'error' | 'warning', code: string, file: string, offset: number | null, message: string): void {
    if (severity === 'error') this.errors++;
    else this.warnings++;
    if (this.errors + this.warnings <= this.#findingsMax)
      this.#findings.push({ kind: 'finding', severity, code, file, offset, message });
  }

  /** Names what can't be proved. There are few, so they have no limit. */
  note(
    code: string,
    file: string,
    { offset = null, bytes = null }: { readonly offset?: number | null; readonly bytes?: number | null },
    message: string,
  ): void {
    this.notes++;
    this.#findings.push({ kind: 'note', code, file, offset, bytes, message });
  }

  /** Records what a reader threw; anything but a SkuaError is a defect and goes on. */
  addError(error: unknown, file: string): void {
    if (!(error instanceof SkuaError)) throw error;
    this.add(
      'error',
      error.code,
      String(error.data.file ?? file),
      typeof error.data.offset === 'number' ? error.data.offset : null,
      error.message,
    );
  }

  /** The findings and notes since the last call. */
  take(): (VerifyFinding | VerifyNote)[] {
    return this.#findings.splice(0);
  }
}
