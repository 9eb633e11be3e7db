import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const LONG = fileURLToPath(new URL('./long.ts', import.meta.url));
/** What goes wrong is found within these. */
const SEEDS = 300;

/** Plays a simulation without a rule, in a process of its own, until a seed notices: then the code is 1. */
export function simulateWithout(
  rule: string,
  simulation: string,
  from: number,
): Promise<{ readonly code: number; readonly said: string }> {
  const args = [LONG, simulation, '--seeds', String(SEEDS), '--from', String(from), '--without', rule];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), said: stderr + stdout }),
    );
  });
}
