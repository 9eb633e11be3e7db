import { line } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';
import { Progress } from './progress.ts';
import type { ProgressState } from './progress.ts';

type Far<Said> = Extract<Said, { readonly kind: 'progress' }>;

/**
 * Runs what looks for something: shows how far it is, tells what it finds as it is found, and resolves with what it
 * says in the end.
 */
export async function followSearch<Said extends { readonly kind: string }, Summary>(
  search: AsyncGenerator<Said, Summary>,
  io: Io,
  stateOf: (far: Far<Said>) => ProgressState,
  tell: (found: Exclude<Said, Far<Said>>) => void,
): Promise<Summary> {
  const progress = new Progress({
    io,
    onLine: (message) => line(io.stderr, message),
  });
  try {
    let next = await search.next();
    for (; next.done !== true; next = await search.next()) {
      const said = next.value;
      if (said.kind === 'progress') progress.update(stateOf(said as Far<Said>));
      else {
        progress.clear();
        tell(said as Exclude<Said, Far<Said>>);
      }
    }
    return next.value;
  } finally {
    progress.clear();
  }
}
