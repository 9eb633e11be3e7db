import { SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Jobs } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import { checkReadableName } from '../../streams/format/names.ts';
import { Tasks, type TaskView } from '../../tasks/tasks.ts';
import type { Scavenger } from '../api.ts';
import { type ErasureReport, PROVE_ERASED_JOB, type CheckErasureArgs } from '../erasure/erasure.ts';
import { idNeedles } from '../needles/needles.ts';

export type ErasureCheck = TaskView<CheckErasureArgs, ErasureReport>;

/**
 * Proofs of erasure of a running node: all files of its directory are searched for what remains. One at a time; no
 * scavenge runs meanwhile, since the search opens its database, and the system lets go of the locks that SQLite has on
 * a file when the same process closes it.
 */
export interface ErasureChecks {
  /**
   * Begins one and gives its id. Throws `bad_option`, `invalid_stream_name`, `scavenge_in_progress`, `task_running`,
   * `store_closed`.
   */
  start(wanted: CheckErasureArgs): string;
  /** Newest first; the last ones since the start of the node. */
  list(): readonly ErasureCheck[];
  /** Throws `task_not_found`. */
  get(id: string): ErasureCheck;
  /** Resolves with the id when it has ended. Rejects with `task_not_found`. */
  abort(id: string): Promise<string>;
}

interface ErasureParts {
  readonly scavenger: Pick<Scavenger, 'hold'>;
  readonly jobs: Pick<Jobs, 'run'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

export class NodeErasureChecks implements ErasureChecks {
  readonly #parts: ErasureParts;
  readonly #tasks: Tasks<CheckErasureArgs, ErasureReport>;

  constructor(parts: ErasureParts) {
    this.#parts = parts;
    this.#tasks = new Tasks({ ...parts, what: 'proof of erasure' });
  }

  start(wanted: CheckErasureArgs): string {
    const { stream, events } = wanted;
    if (stream === null && events.length === 0)
      throw new SkuaError('bad_option', 'Nothing to search for: name a stream or event ids.');
    const refusal = stream === null ? null : checkReadableName(stream);
    if (refusal !== null) throw refusal;
    // What is no id is refused before anything begins.
    idNeedles(events);
    this.#tasks.check();
    const release = this.#parts.scavenger.hold();
    try {
      return this.#tasks.start(wanted, (signal, onProgress) =>
        this.#search(wanted, signal, onProgress).finally(release),
      );
    } catch (error) {
      release();
      throw error;
    }
  }

  #search(
    wanted: CheckErasureArgs,
    signal: AbortSignal,
    onProgress: (progress: { readonly bytesDone: number; readonly bytesTotal: number }) => void,
  ): Promise<ErasureReport> {
    return this.#parts.jobs.run(PROVE_ERASED_JOB, wanted, {
      signal,
      onProgress: ({ done, total }) => onProgress({ bytesDone: done, bytesTotal: total }),
    }) as Promise<ErasureReport>;
  }

  list(): readonly ErasureCheck[] {
    return this.#tasks.list();
  }
  get(id: string): ErasureCheck {
    return this.#tasks.get(id);
  }
  abort(id: string): Promise<string> {
    return this.#tasks.abort(id);
  }
  close(): Promise<void> {
    return this.#tasks.close();
  }
}
