import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ROOT, startNode } from '../child.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';

/** Milliseconds that npm takes to start a program which does nothing. */
async function npmMs(): Promise<number> {
  const begin = performance.now();
  const child = spawn('npm', ['exec', '--', 'node', '-e', '0'], { cwd: ROOT, stdio: 'ignore' });
  const [code] = await once(child, 'exit') as [number | null];
  if (code !== 0) throw new Error(`npm exec ended with ${code}.`);
  return performance.now() - begin;
}

/** Milliseconds from the spawn of a node on an empty directory to its first answer. */
async function emptyMs(folder: string): Promise<number> {
  const begin = performance.now();
  const node = await startNode(folder);
  try {
    const answer = await fetch(`http://127.0.0.1:${node.port}/streams/none`);
    if (answer.status !== 404) throw new Error(`An empty node answered with ${answer.status}.`);
    await answer.arrayBuffer();
    return performance.now() - begin;
  } finally {
    await node.stop();
    rmSync(folder, { recursive: true });
  }
}

export const npmStart: Figure = {
  name: 'npm-start',
  how: 'From the spawn of `skua start` from its sources, on a directory that does not exist, to the first answer: 404 for a stream that is not there. The limit is `npm exec -- node -e 0`, which every machine with this project can run.',
  async run(settings) {
    const folder = join(settings.folder, 'npm-start');
    await npmMs();
    await emptyMs(folder);
    return [row('start of an empty node', 'ms', await alternate(settings.windows, npmMs, () => emptyMs(folder)), { kind: 'at most', value: 2.5 })];
  },
};
