import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';

/**
 * Long work that a caller asked for over the interface: the work goes on in the background, one piece at a time, can be
 * looked at and ended, and what came of the last ones is kept in memory.
 */

/** Tasks that are kept, the one under way included. */
const KEPT_MAX = 8;

export type TaskState = 'running' | 'done' | 'failed' | 'aborted';

export interface TaskView<Subject, Report> {
  readonly id: string;
  readonly subject: Subject;
  readonly state: TaskState;
  /** What is done at the moment, or was at the end; null where there is but one thing. */
  readonly phase: string | null;
  readonly bytesDone: number;
  /** 0 before it is known. */
  readonly bytesTotal: number;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  readonly endedMs: number | null;
  readonly elapsedSeconds: number;
  /** Text of what ended it, for `failed`. */
  readonly error: string | null;
  /** For `done`. */
  readonly report: Report | null;
}

export interface TaskProgress {
  readonly phase?: string;
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** Rejects with what ended it; whatever that is counts as the end where the signal was aborted. */
export type TaskWork<Report> = (signal: AbortSignal, onProgress: (progress: TaskProgress) => void) => Promise<Report>;

interface Task<Subject, Report> {
  readonly id: string;
  readonly subject: Subject;
  readonly aborting: AbortController;
  readonly startedMs: number;
  readonly startedMonotonicMs: number;
  state: TaskState;
  progress: TaskProgress;
  endedMs: number | null;
  elapsedSeconds: number;
  error: string | null;
  report: Report | null;
  ended: Promise<void>;
}

interface TasksParts {
  /** How messages call one, such as `proof of erasure`. */
  readonly what: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

export class Tasks<Subject, Report> {
  readonly #parts: TasksParts;
  /** Oldest first. */
  readonly #tasks: Task<Subject, Report>[] = [];
  #isClosed = false;

  constructor(parts: TasksParts) {
    this.#parts = parts;
  }

  /** Begins the work and gives its id. Throws `task_running`, `store_closed`. */
  start(subject: Subject, work: TaskWork<Report>): string {
    const { what, clock, ids, log } = this.#parts;
    this.check();
    const task: Task<Subject, Report> = {
      id: guidToText(guidFromUuidBytes(ids.uuidBytes()), 0),
      subject,
      aborting: new AbortController(),
      startedMs: clock.nowMs(),
      startedMonotonicMs: clock.monotonicMs(),
      state: 'running',
      progress: { bytesDone: 0, bytesTotal: 0 },
      endedMs: null,
      elapsedSeconds: 0,
      error: null,
      report: null,
      ended: Promise.resolve(),
    };
    this.#tasks.push(task);
    if (this.#tasks.length > KEPT_MAX) this.#tasks.shift();
    log.info(`a ${what} has started`, { id: task.id });
    task.ended = this.#run(task, work);
    return task.id;
  }

  /** Throws what `start` would throw. */
  check(): void {
    const { what } = this.#parts;
    if (this.#isClosed) throw new SkuaError('store_closed', `The node is stopping: no ${what} can start.`);
    const running = this.#running;
    if (running !== undefined)
      throw new SkuaError('task_running', `A ${what} is in progress: wait until it has finished, or stop it.`, {
        taskId: running.id,
      });
  }

  get #running(): Task<Subject, Report> | undefined {
    return this.#tasks.find(({ state }) => state === 'running');
  }

  /** Never rejects. */
  async #run(task: Task<Subject, Report>, work: TaskWork<Report>): Promise<void> {
    const { what, clock, log } = this.#parts;
    const {
      id,
      aborting: { signal },
    } = task;
    try {
      task.report = await work(signal, (progress) => {
        task.progress = progress;
      });
      task.state = 'done';
      log.info(`a ${what} has finished`, { id });
    } catch (error) {
      task.state = signal.aborted ? 'aborted' : 'failed';
      if (signal.aborted) log.info(`a ${what} was stopped`, { id });
      else {
        task.error = error instanceof Error ? error.message : String(error);
        log.error(`a ${what} failed`, { id, code: isSkuaError(error) ? error.code : undefined, error });
      }
    }
    task.endedMs = clock.nowMs();
    task.elapsedSeconds = this.#elapsed(task);
  }

  #elapsed({ startedMonotonicMs }: Task<Subject, Report>): number {
    return (this.#parts.clock.monotonicMs() - startedMonotonicMs) / 1_000;
  }

  /** Newest first. */
  list(): readonly TaskView<Subject, Report>[] {
    return this.#tasks.map((task) => this.#view(task)).toReversed();
  }

  /** Throws `task_not_found`. */
  get(id: string): TaskView<Subject, Report> {
    return this.#view(this.#known(id));
  }

  #known(id: string): Task<Subject, Report> {
    const task = this.#tasks.find((each) => each.id === id);
    if (task === undefined)
      throw new SkuaError(
        'task_not_found',
        `There is no such ${this.#parts.what}: the last ${KEPT_MAX} since the node started are kept.`,
      );
    return task;
  }

  #view(task: Task<Subject, Report>): TaskView<Subject, Report> {
    const {
      id,
      subject,
      state,
      progress: { phase = null, bytesDone, bytesTotal },
      startedMs,
      endedMs,
      error,
      report,
    } = task;
    return {
      id,
      subject,
      state,
      phase,
      bytesDone,
      bytesTotal,
      startedMs,
      endedMs,
      elapsedSeconds: state === 'running' ? this.#elapsed(task) : task.elapsedSeconds,
      error,
      report,
    };
  }

  /**
   * Ends the one with this id, or the one under way, and resolves with its id when it has ended. Rejects with
   * `task_not_found`.
   */
  async abort(id: string | null): Promise<string> {
    const task = id === null ? this.#running : this.#known(id);
    if (task === undefined || task.state !== 'running')
      throw new SkuaError(
        'task_not_found',
        `No ${this.#parts.what} is in progress${id === null ? '' : ' with this id'}.`,
      );
    task.aborting.abort();
    await task.ended;
    return task.id;
  }

  /** Ends what is under way and waits for it; nothing begins any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const running = this.#running;
    running?.aborting.abort();
    await running?.ended;
  }
}
