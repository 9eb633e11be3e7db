import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { workplace } from '../../testing/package.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';

/** The goals: from the import to the first node that serves, and from the call to a further one. */
const FIRST_MS = 300;
const NEXT_MS = 10;
const NEXT = 50;
/** What comes first has not been compiled. */
const WARM = 20;

/** In the process of tests: it knows when it began to import. */
const SCRIPT = `
const begunMs = performance.now();
const { startTestNode } = await import('skua/testing');
const first = await startTestNode();
const firstMs = performance.now() - begunMs;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
async function each(options) {
  const times = [];
  for (let i = 0; i < ${WARM + NEXT}; i++) {
    const fromMs = performance.now();
    const node = await startTestNode(options);
    times.push(performance.now() - fromMs);
    await node.stop();
  }
  return median(times.slice(${WARM}));
}
const nextMs = await each({});
const usersMs = await each({ users: true });
const resets = [];
for (let i = 0; i < ${NEXT}; i++) {
  const fromMs = performance.now();
  await first.reset();
  resets.push(performance.now() - fromMs);
}
const beforeBytes = process.memoryUsage.rss();
const nodes = [];
for (let i = 0; i < 100; i++) nodes.push(await startTestNode());
const eachBytes = (process.memoryUsage.rss() - beforeBytes) / 100;
await Promise.all([first, ...nodes].map((node) => node.stop()));
console.log(JSON.stringify({ firstMs, nextMs, usersMs, resetMs: median(resets), eachBytes }));
`;

interface Times {
  readonly firstMs: number;
  readonly nextMs: number;
  readonly usersMs: number;
  readonly resetMs: number;
  readonly eachBytes: number;
}

export const testNode: Figure = {
  name: 'test-node',
  how: `\`skua/testing\` as a bundle, in a new process for each window. First: from the import of the module to the node that serves, in memory and without users. Next: from the call of \`startTestNode\` to a further one, the median of ${NEXT} behind ${WARM} that count for nothing. The limits are the goals.`,
  async run(settings) {
    const place = await workplace();
    try {
      const file = join(place.folder, 'measure.mjs');
      await writeFile(file, SCRIPT);
      const windows: Times[] = [];
      for (let i = 0; i < settings.windows; i++) windows.push(await measure(file));
      const list = (of: (times: Times) => number) => windows.map((times) => of(times).toFixed(1)).join(', ');
      return [
        row('first test node of a process', 'ms', { limit: [FIRST_MS], ours: windows.map(({ firstMs }) => firstMs) }, { kind: 'below', value: 1 }),
        row('next test node', 'ms', { limit: [NEXT_MS], ours: windows.map(({ nextMs }) => nextMs) }, { kind: 'below', value: 1 }, [
          `with users ${list(({ usersMs }) => usersMs)} ms; a reset ${list(({ resetMs }) => resetMs)} ms; memory of the process for each of a hundred ${list(({ eachBytes }) => eachBytes / 1_048_576)} MiB`,
        ]),
      ];
    } finally {
      await place.remove();
    }
  },
};

async function measure(file: string): Promise<Times> {
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (part: Buffer) => { text += part.toString(); });
  const code = await new Promise<number | null>((resolve, reject) => { child.on('error', reject).on('close', resolve); });
  if (code !== 0) throw new Error(`The process with test nodes ended with ${code}.`);
  return JSON.parse(text) as Times;
}
