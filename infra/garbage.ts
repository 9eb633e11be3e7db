import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Collects the garbage of this thread's heap, which V8 leaves where it is while nothing is allocated. It halts the
 * thread, for some 10 ms for each 10 MiB that are in use: for a process that is ours alone and has hardly anything to
 * do.
 */
export function collectGarbage(): void {
  // Only contexts that are made meanwhile have the function.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { readonly type: 'major' }) => void;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major' });
}
