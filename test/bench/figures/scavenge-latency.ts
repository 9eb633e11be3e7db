import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startHttpLoad, startNode } from '../child.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { halfDeletedLog, linkedCopy } from '../scavenge-data.ts';

const CONNECTIONS = 8;
const PAUSE_MS = 5;
const CHUNKS = 4;
/** Longest an append may take meanwhile, in milliseconds. */
const STALL_MS_MAX = 100;

export const scavengeLatency: Figure = {
  name: 'scavenge-latency',
  how: `Single events of 256 bytes posted over ${CONNECTIONS} connections with a pause of ${PAUSE_MS} ms, to a node that is idle otherwise, and while it scavenges ${CHUNKS} chunks of 256 MiB of which half goes (a run begins with each window of ours, with threshold -1, so that every chunk is rewritten). The value is the 99th percentile of a window; the longest append of all windows stands in the notes and has its own row.`,
  async run(settings) {
    const template = join(settings.folder, 'four-chunks');
    await halfDeletedLog(template, CHUNKS, settings.scavengeChunkBytes, settings.say);
    const work = join(settings.folder, 'latency');
    linkedCopy(template, work);
    const node = await startNode(work);
    const generator = startHttpLoad();
    const longest = { limit: [] as number[], ours: [] as number[] };
    let scavenges = 0;
    const load = async (into: number[] | null): Promise<number> => {
      const result = await generator.load({
        port: node.port,
        connections: CONNECTIONS,
        ms: settings.windowMs,
        pauseMs: PAUSE_MS,
      });
      into?.push(result.maxMs);
      return result.p99Ms;
    };
    const url = `http://127.0.0.1:${node.port}/admin/scavenge`;
    const during = async (): Promise<number> => {
      const started = await fetch(`${url}?threshold=-1`, { method: 'POST' });
      if (started.status !== 200)
        throw new Error(`The scavenge did not start: ${started.status} ${await started.text()}`);
      const p99 = await load(longest.ours);
      if (((await (await fetch(`${url}/current`)).json()) as { scavengeId: string }).scavengeId !== '') scavenges++;
      // The next window without a scavenge begins when this one is over.
      while ((await fetch(`${url}/progress`)).status === 200)
        await new Promise((resolve) => {
          setTimeout(resolve, 50);
        });
      return p99;
    };
    try {
      await load(null);
      const measured = await alternate(settings.windows, () => load(longest.limit), during);
      const stall = longest.ours.map((ms) => ms);
      return [
        row('append latency during a scavenge, p99', 'ms', measured, { kind: 'at most', value: 2 }, [
          `longest ${Math.max(...stall).toFixed(1)} ms, when idle ${Math.max(...longest.limit).toFixed(1)} ms; in ${scavenges} of ${settings.windows} windows the scavenge outlived the window`,
        ]),
        row(
          'append latency during a scavenge, longest',
          'ms',
          { limit: [STALL_MS_MAX], ours: [Math.max(...stall)] },
          { kind: 'at most', value: 1 },
        ),
      ];
    } finally {
      await generator.stop();
      await node.stop();
      rmSync(work, { recursive: true, force: true });
    }
  },
};
