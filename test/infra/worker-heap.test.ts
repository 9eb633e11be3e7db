import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const POOL = fileURLToPath(new URL('../../infra/jobs/worker-pool.ts', import.meta.url));
/** Old arrays of 160 kB, of which 20 live at a time. */
const WORK = `const kept = []; for (let i = 0; i < 8000; i++) kept[i % 20] = new Array(20_000).fill(i);`;

/** How often the heap of a worker is collected as a whole, in a process with these flags. */
function collections(flags: readonly string[]): number {
  const program = `
    import { Worker } from 'node:worker_threads';
    await import(${JSON.stringify(POOL)});
    new Worker(${JSON.stringify(WORK)}, {
      eval: true,
      resourceLimits: { maxOldGenerationSizeMb: 122, maxYoungGenerationSizeMb: 6 },
    });`;
  const args = [...flags, '--single-threaded-gc', '--trace-gc', '--input-type=module', '-e', program];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(status).toBe(0);
  const workers = stdout.split('\n').filter((line) => line.includes('Mark-Compact'));
  return workers.length;
}

test('a worker keeps no more garbage for what the command line lets the main thread keep', () => {
  const plain = collections([]);
  expect(plain).toBeGreaterThan(4);
  expect(collections(['--max-semi-space-size=16', '--initial-old-space-size=64'])).toBe(plain);
});
