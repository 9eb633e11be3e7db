import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programOf } from '../../local/guide-blocks.ts';
import { workplace } from '../../testing/package.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';

/** The goals: from the import to the first node that serves, and from the call to a further one. */
const FIRST_MS = 300;
const NEXT_MS = 10;
const NEXT = 50;
/** For the test that the guide shows for a store without a node: the time that Vitest tells of it, imports and all. */
const STRANGER_MS = 1_000;
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
  isLong: true,
  how: `\`skua/testing\` as a bundle, in a new process for each window. First: from the import of the module to the node that serves, in memory and without users. Next: from the call of \`startTestNode\` to a further one, the median of ${NEXT} behind ${WARM} that count for nothing. Stranger: the test of the guide's page "Embed the store", which appends, reads, deletes, scavenges and proves erasure, as Vitest runs and times it beside the packed package. The limits are the goals.`,
  async run(settings) {
    const place = await workplace();
    try {
      const file = join(place.folder, 'measure.mjs');
      await writeFile(file, SCRIPT);
      const windows: Times[] = [];
      for (let i = 0; i < settings.windows; i++) windows.push(await measure(file));
      const stranger: number[] = [];
      for (let i = 0; i < settings.windows; i++) stranger.push(await strangersTest(place.folder));
      const list = (of: (times: Times) => number) => windows.map((times) => of(times).toFixed(1)).join(', ');
      return [
        row(
          'first test node of a process',
          'ms',
          { limit: [FIRST_MS], ours: windows.map(({ firstMs }) => firstMs) },
          { kind: 'below', value: 1 },
        ),
        row(
          'next test node',
          'ms',
          { limit: [NEXT_MS], ours: windows.map(({ nextMs }) => nextMs) },
          { kind: 'below', value: 1 },
          [
            `with users ${list(({ usersMs }) => usersMs)} ms; a reset ${list(({ resetMs }) => resetMs)} ms; memory of the process for each of a hundred ${list(({ eachBytes }) => eachBytes / 1_048_576)} MiB`,
          ],
        ),
        row(
          "a stranger's test of skua/embedded",
          'ms',
          { limit: [STRANGER_MS], ours: stranger },
          { kind: 'below', value: 1 },
        ),
      ];
    } finally {
      await place.remove();
    }
  },
};

async function strangersTest(folder: string): Promise<number> {
  const at = join(folder, 'stranger');
  await mkdir(at, { recursive: true });
  await writeFile(join(at, 'erasure.test.mjs'), programOf('local/guide/embed.md', 'vitest').code);
  const {
    testResults: [file],
  } = JSON.parse(
    await output([join(folder, 'node_modules/vitest/vitest.mjs'), 'run', '--root', at, '--reporter=json']),
  ) as { testResults: { assertionResults: { status: string; duration: number }[] }[] };
  const [only] = file!.assertionResults;
  if (only?.status !== 'passed') throw new Error('The test of the guide does not pass.');
  return only.duration;
}

async function measure(file: string): Promise<Times> {
  return JSON.parse(await output([file])) as Times;
}

async function output(words: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (part: Buffer) => {
    text += part.toString();
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  });
  if (code !== 0) throw new Error(`A process of the measurement ended with ${code}.`);
  return text;
}
