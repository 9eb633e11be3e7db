import { createInterface } from 'node:readline';
import type { Io } from '../../infra/runtime/io.ts';

/**
 * Asks on a terminal, and takes only `yes` for that. False where there is no terminal, so that no absent person
 * has agreed.
 */
export async function isConfirmed(question: string, io: Io): Promise<boolean> {
  const { stdin } = io;
  if (stdin?.isTTY !== true) return false;
  const reader = createInterface({ input: stdin, terminal: false });
  try {
    io.stderr.write(question);
    const answer = await new Promise<string>((resolve) => {
      reader.once('line', resolve);
      reader.once('close', () => resolve(''));
    });
    return answer.trim().toLowerCase() === 'yes';
  } finally {
    reader.close();
  }
}
