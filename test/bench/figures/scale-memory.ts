import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from '../child.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { startMeasured } from '../measured.ts';

const LIMIT_MIB = 280;
const CONNECTIONS = 16;
const BATCH = 500;
/** Batches of a stream, in the mean. */
const BATCHES_A_STREAM = 4;
/** Longer than idle threads are kept. */
const IDLE_MS = 60_000;
const IDLE_MS_SMOKE = 100;
/** Where in an id its number stands. */
const ID_DIGITS = 12;

/** Posts one batch of events, whose ids begin with the number `from`. */
function post(port: number, agent: Agent, stream: string, from: number): Promise<void> {
  const events: string[] = [];
  for (let i = 0; i < BATCH; i++)
    events.push(
      `{"eventId":"5c11ab1e-0000-4000-8000-${String(from + i).padStart(ID_DIGITS, '0')}","eventType":"Noted","data":{}}`,
    );
  const body = `[${events.join()}]`;
  return new Promise((resolve, reject) => {
    request(
      {
        host: '127.0.0.1',
        port,
        agent,
        method: 'POST',
        path: `/streams/${stream}`,
        headers: { 'content-type': 'application/vnd.eventstore.events+json', 'content-length': String(body.length) },
      },
      (response) => {
        response.resume();
        response.on('end', () =>
          response.statusCode === 201
            ? resolve()
            : reject(new Error(`A batch was answered with ${response.statusCode}.`)),
        );
      },
    )
      .on('error', reject)
      .end(body);
  });
}

export const scaleMemory: Figure = {
  name: 'scale-memory',
  isLong: true,
  how: `A node of its own, of the program as it is packed, gets 20 M small events in batches of ${BATCH} over ${CONNECTIONS} connections, ${BATCH * BATCHES_A_STREAM} a stream, and then nothing for ${IDLE_MS / 1000} s. Measured is the resident size of its process then, with all its threads.`,
  async run(settings) {
    const folder = join(settings.folder, 'scale-memory');
    // The sources, whose types are stripped at the start, hold 70 MiB more.
    if (!settings.isSmoke) execFileSync(process.execPath, ['esbuild.config.mjs'], { cwd: ROOT });
    const program = settings.isSmoke ? 'local/main.ts' : 'dist/main.js';
    const node = await startMeasured([program, 'start', '--db', folder, '--node-port', '0', '--insecure']);
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    try {
      const begin = performance.now();
      let next = 0;
      const batches = Math.ceil(settings.scaleEvents / BATCH);
      await Promise.all(
        Array.from({ length: CONNECTIONS }, async () => {
          while (next < batches) {
            const batch = next++;
            await post(node.port, agent, `note-${Math.floor(batch / BATCHES_A_STREAM)}`, batch * BATCH);
          }
        }),
      );
      const seconds = (performance.now() - begin) / 1_000;
      const busy = (await node.usage()).residentMiB;
      await sleep(settings.isSmoke ? IDLE_MS_SMOKE : IDLE_MS);
      const { residentMiB } = await node.usage();
      return [
        row(
          'memory of a node that idles after 20 M appends',
          'MiB',
          { limit: [LIMIT_MIB], ours: [residentMiB] },
          { kind: 'below', value: 1 },
          [`${Math.round((batches * BATCH) / seconds)} events/s; ${Math.round(busy)} MiB with the last answer`],
        ),
      ];
    } finally {
      agent.destroy();
      await node.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
