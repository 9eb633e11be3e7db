import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { NODE_FLAGS, startHttpLoad, startServer } from '../child.ts';
import type { Server } from '../child.ts';
import { median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { largeIndex } from '../index-tables.ts';
import type { LoadResult } from '../processes/http-load.ts';
import { linkedCopy } from '../scavenge-data.ts';

const ENTRIES = 20_000_000;
const ENTRIES_QUICK = 40_000;
const CONNECTIONS = 8;
const PAUSE_MS = 5;
/** Longest a stop may take meanwhile, in seconds. */
const STOP_SECONDS_MAX = 2;

/** What the node's status page says of its index. */
async function isMerging(node: Server): Promise<boolean> {
  const page = await (await fetch(`http://127.0.0.1:${node.port}/metrics`)).text();
  return /^eventstore_statuses\{[^}]*name="Index"[^}]*status="Merging"[^}]*\} [1-9]/m.test(page);
}

/** Seconds from the signal to the end of the process. */
async function stopSeconds(node: Server): Promise<number> {
  const ended = once(node.process, 'exit');
  const begin = performance.now();
  node.process.kill('SIGTERM');
  await ended;
  return (performance.now() - begin) / 1000;
}

export const indexMerge: Figure = {
  name: 'index-merge',
  how: `Single events of 256 bytes posted over ${CONNECTIONS} connections with a pause of ${PAUSE_MS} ms, to a node that is idle otherwise, and then to the same node while it merges two index tables of ${ENTRIES / 1e6} M entries together (asked for with POST /admin/mergeindexes). The value is the 99th percentile of a window. Then the node is stopped, and the time from the signal to the end of its process is the second row, beside the ${STOP_SECONDS_MAX} s that it may take; the next window begins with a new start on the same tables.`,
  async run(settings) {
    const folder = join(settings.folder, 'large-index');
    await largeIndex(folder, settings.isSmoke ? ENTRIES_QUICK : ENTRIES * settings.dataShare, settings.say);
    const work = join(settings.folder, 'merge');
    linkedCopy(folder, work);
    const generator = startHttpLoad();
    const measured = { limit: [] as number[], ours: [] as number[] };
    const longest = { limit: 0, ours: 0 };
    const stops: number[] = [];
    const idleStops: number[] = [];
    const start = (): Promise<Server> =>
      startServer([
        ...NODE_FLAGS,
        'local/main.ts',
        'start',
        '--db',
        work,
        '--node-port',
        '0',
        '--insecure',
        '--skip-index-verify',
      ]);
    let outlived = 0;
    try {
      for (let i = 0; i < settings.windows; i++) {
        idleStops.push(await stopSeconds(await start()));
        const node = await start();
        try {
          const load = async (): Promise<LoadResult> => {
            return generator.load({
              port: node.port,
              connections: CONNECTIONS,
              ms: settings.windowMs,
              pauseMs: PAUSE_MS,
            });
          };
          await load();
          const idle = await load();
          const asked = await fetch(`http://127.0.0.1:${node.port}/admin/mergeindexes`, { method: 'POST' });
          if (!asked.ok) throw new Error(`The merge was refused: ${asked.status} ${await asked.text()}`);
          await asked.arrayBuffer();
          const merging = await load();
          if (await isMerging(node)) outlived++;
          measured.limit.push(idle.p99Ms);
          measured.ours.push(merging.p99Ms);
          longest.limit = Math.max(longest.limit, idle.maxMs);
          longest.ours = Math.max(longest.ours, merging.maxMs);
          stops.push(await stopSeconds(node));
        } finally {
          await node.stop();
        }
        // The smoke run's tables are merged before the window is over.
        if (!settings.isSmoke) continue;
        rmSync(work, { recursive: true });
        linkedCopy(folder, work);
      }
      const note = `in ${outlived} of ${settings.windows} windows the merge outlived the window`;
      return [
        row('append latency during an index merge, p99', 'ms', measured, { kind: 'at most', value: 2 }, [
          `longest ${longest.ours.toFixed(1)} ms, when idle ${longest.limit.toFixed(1)} ms; ${note}`,
        ]),
        row(
          'stop during an index merge',
          's',
          { limit: [STOP_SECONDS_MAX], ours: stops },
          { kind: 'below', value: 1 },
          [
            `longest ${Math.max(...stops).toFixed(2)} s; without a merge ${median(idleStops).toFixed(2)} s, longest ${Math.max(...idleStops).toFixed(2)} s`,
          ],
        ),
      ];
    } finally {
      await generator.stop();
      rmSync(work, { recursive: true, force: true });
    }
  },
};
