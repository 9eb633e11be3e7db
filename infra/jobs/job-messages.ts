import { SkuaError } from '../../core/base/errors.ts';
import type { ErrorCode } from '../../core/base/errors.ts';
import type { JobProgress } from '../../core/ports/jobs.ts';

/** What a worker is started with. */
export interface WorkerSetup {
  readonly root: string;
  readonly indexRoot: string;
  /** One cell that the pool sets to ABORT; the job looks at it at every checkpoint, without waiting for a message. */
  readonly signal: Int32Array<SharedArrayBuffer>;
  /** Cells of `infra/fs/sync-turns.ts`. */
  readonly syncTurns: Int32Array<SharedArrayBuffer>;
  /** The thread makes its file calls itself. */
  readonly isBackground: boolean;
  /** It lets others go first when the processor is busy. */
  readonly givesWay: boolean;
  /** Module whose `JOBS` replace those of the core. */
  readonly jobsUrl: string | undefined;
  /** The module that the thread runs, for threads of its own. */
  readonly workerUrl: string;
  /** Name of the job that is expected to be its first, whose code it loads at once. */
  readonly expectedJob: string | undefined;
}

export const GO_ON = 0;
export const ABORT = 1;

/** To the worker: run this job. One at a time. */
export interface RunMessage {
  readonly name: string;
  readonly args: unknown;
}

/** From the worker. */
export type WorkerMessage =
  | { readonly kind: 'progress'; readonly progress: JobProgress }
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly error: ErrorImage };

/** An error as it crosses to another thread, where classes do not survive. */
interface ErrorImage {
  /** Null for an error that is not a SkuaError. */
  readonly code: ErrorCode | null;
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
}

export function imageOfError(error: unknown): ErrorImage {
  if (error instanceof SkuaError)
    return { code: error.code, name: error.name, message: error.message, stack: error.stack, data: error.data };
  if (error instanceof Error)
    return { code: null, name: error.name, message: error.message, stack: error.stack, data: {} };
  return { code: null, name: 'Error', message: String(error), stack: undefined, data: {} };
}

export function errorOfImage(image: ErrorImage): Error {
  const error = image.code === null ? new Error(image.message) : new SkuaError(image.code, image.message, image.data);
  error.name = image.name;
  // The place in the job says more than the place where the message arrived.
  if (image.stack !== undefined) error.stack = image.stack;
  return error;
}
