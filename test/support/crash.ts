import { isSkuaError } from '../../core/base/errors.ts';

/**
 * What every call of a simulated world is answered with once its power has failed or the process was killed. It is no
 * error of the core, which never meets it in the world: a process that has crashed gets no answers.
 */
export class Crash extends Error {
  readonly code = 'storage_crashed';

  constructor(what: string) {
    super(what);
    this.name = 'Crash';
  }
}

/** True for a crash, and for an error that was made of one. */
export function isCrash(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++)
    if (at instanceof Crash) return true;
  return false;
}

/** The code of an error of the core, or of a crash; null for what no test expects. */
export function codeOf(error: unknown): string | null {
  return isSkuaError(error) || error instanceof Crash ? error.code : null;
}
