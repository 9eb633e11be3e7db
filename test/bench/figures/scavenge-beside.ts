import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { startHttpLoad, startNode } from '../child.ts';
import { median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import type { LoadRequest, LoadResult } from '../processes/http-load.ts';
import { copyWithDigest } from '../raw-copy.ts';
import { chunkNames, halfDeletedLog, linkedCopy } from '../scavenge-data.ts';

const CHUNKS = 4;
/** Few clients that rest between their appends, and many that make half of what the node can take. */
const FEW = { connections: 8, pauseMs: 5 };
const MANY = 64;
/** Appends while a scavenge is under way are counted in windows of so long. */
const SLICE_MS = 1_000;
const POLL_MS = 20;

type Load = Pick<LoadRequest, 'connections' | 'pauseMs'>;

export const scavengeBeside: Figure = {
  name: 'scavenge-beside',
  how: `The first scavenge of ${CHUNKS} chunks of 256 MiB, half of which goes, merging on, by a node of its own for each: when it is idle; beside ${FEW.connections} connections that post an event of 256 bytes every ${FEW.pauseMs} ms; and beside ${MANY} connections that rest between their appends so long that they make half of what the node takes of them when they don't. The limits are a plain copy of the files with fsync, and the time of the idle node. The p99 of these appends is the median of windows of a second while the scavenge is under way; its limit is that of windows before.`,
  async run(settings) {
    const template = join(settings.folder, 'four-chunks');
    await halfDeletedLog(template, CHUNKS, settings.scavengeChunkBytes, settings.say);
    const files = chunkNames(template).map((name) => join(template, name));
    const target = join(settings.folder, 'limit.tmp');
    const generator = startHttpLoad();
    const append = async (port: number, load: Load): Promise<LoadResult> => {
      return generator.load({ port, ms: Math.min(SLICE_MS, settings.windowMs), ...load });
    };
    /** Seconds that the scavenge takes, and p99 of the appends before it and meanwhile. */
    const scavenge = async (
      loadFor: ((port: number) => Promise<Load>) | null,
    ): Promise<{ seconds: number; before: number; during: number }> => {
      const work = join(settings.folder, 'beside');
      linkedCopy(template, work);
      const node = await startNode(work);
      try {
        const url = `http://127.0.0.1:${node.port}/admin/scavenge`;
        const load = await loadFor?.(node.port);
        const before = load === undefined ? 0 : (await append(node.port, load)).p99Ms;
        const begin = performance.now();
        const started = await fetch(url, { method: 'POST' });
        if (started.status !== 200)
          throw new Error(`The scavenge did not start: ${started.status} ${await started.text()}`);
        let end = 0;
        const ending = (async () => {
          while ((await fetch(`${url}/progress`)).status === 200) await sleep(POLL_MS);
          end = performance.now();
        })();
        const during: number[] = [];
        while (load !== undefined && end === 0) during.push((await append(node.port, load)).p99Ms);
        await ending;
        return { seconds: (end - begin) / 1_000, before, during: during.length === 0 ? 0 : median(during) };
      } finally {
        await node.stop();
        rmSync(work, { recursive: true, force: true });
      }
    };
    /** The pause with which many connections make half of what they make without one. */
    const half = async (port: number): Promise<Load> => {
      await append(port, { connections: MANY });
      const { requestsPerSecond, p50Ms } = await append(port, { connections: MANY });
      return { connections: MANY, pauseMs: Math.max(1, Math.round((2_000 * MANY) / requestsPerSecond - p50Ms / 2)) };
    };
    const few = { limit: [] as number[], ours: [] as number[] };
    const many = { limit: [] as number[], ours: [] as number[] };
    const p99 = { limit: [] as number[], ours: [] as number[] };
    try {
      copyWithDigest(files, target, false);
      for (let i = 0; i < settings.windows; i++) {
        few.limit.push(copyWithDigest(files, target, false));
        few.ours.push((await scavenge(async () => FEW)).seconds);
        many.limit.push((await scavenge(null)).seconds);
        const { seconds, before, during } = await scavenge(half);
        many.ours.push(seconds);
        p99.limit.push(before);
        p99.ours.push(during);
      }
      return [
        row('first scavenge of four chunks beside 8 clients, beside a copy', 's', few, { kind: 'at most', value: 6.5 }),
        row('first scavenge of four chunks beside half of all appends, beside an idle node', 's', many, {
          kind: 'at most',
          value: 3,
        }),
        row('append p99 at half of the rate during a scavenge', 'ms', p99, { kind: 'at most', value: 2 }),
      ];
    } finally {
      await generator.stop();
    }
  },
};
