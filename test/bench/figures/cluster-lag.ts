import { join } from 'node:path';
import { startHelper } from '../child.ts';
import { BenchCluster, sharedPlace } from '../clusters.ts';
import { row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';
import type { LoadResult } from '../processes/http-load.ts';
import type { LagRequest, LagResult } from '../processes/lag-probe.ts';

const CLIENTS = 64;
const LAG_MS = 100;
/** Milliseconds of a window, in the windows of other figures. */
const WINDOWS_IN_ONE = 4;

export const clusterLag: Figure = {
  name: 'cluster-lag',
  isLong: true,
  how: `Three members, ${CLIENTS} clients at the leader that pause between appends so that half as many are made as without pauses, and a probe in a process of its own: it appends to a stream at the leader, and measures from the answer until a subscription of that stream at a follower shows the event (nothing if it was there before). The limit is the goal, in milliseconds, for the 99th of a hundred.`,
  async run(settings) {
    const rows: Row[] = [];
    for (const kind of ['directory', 's3'] as const) {
      const folder = join(settings.folder, `cluster-lag-${kind}`);
      const place = await sharedPlace(kind, folder);
      const cluster = await BenchCluster.start(folder, place);
      const generator = startHelper(['test/bench/processes/http-load.ts']);
      const probe = startHelper(['test/bench/processes/lag-probe.ts']);
      try {
        const leader = (await cluster.leader()).options.port;
        const follower = (await cluster.followers())[0]!.options.port;
        const load = (ms: number, pauseMs: number): Promise<LoadResult> =>
          generator.ask({ port: leader, connections: CLIENTS, ms, pauseMs });
        await load(settings.windowMs, 0);
        const full = await load(settings.windowMs, 0);
        // Each client is to make half as many: what one append takes on average, twice.
        const pauseMs = (CLIENTS / full.requestsPerSecond) * 1_000;
        const ours: number[] = [];
        const seen: { lag: LagResult; load: LoadResult }[] = [];
        for (let i = 0; i < settings.windows; i++) {
          const ms = settings.windowMs * WINDOWS_IN_ONE;
          const [lag, half] = await Promise.all([
            probe.ask<LagResult>({ leader, follower, ms } satisfies LagRequest),
            load(ms, pauseMs),
          ]);
          ours.push(Math.max(0.01, lag.p99Ms));
          seen.push({ lag, load: half });
        }
        rows.push(
          row(
            `lag of a follower at half load, p99, on ${kind === 's3' ? 'an S3 server' : 'a directory'}`,
            'ms',
            { limit: [LAG_MS], ours },
            { kind: 'below', value: 1 },
            [
              `p50 ${seen.map(({ lag }) => lag.p50Ms.toFixed(1)).join(', ')} ms, most ${seen.map(({ lag }) => lag.maxMs.toFixed(0)).join(', ')} ms, of ${seen.map(({ lag }) => lag.probes).join(', ')} probes`,
              `full load ${Math.round(full.requestsPerSecond)} appends/s, half ${seen.map(({ load: half }) => Math.round(half.requestsPerSecond)).join(', ')}; ${place.note}`,
            ],
          ),
        );
      } finally {
        await generator.stop();
        await probe.stop();
        await cluster.stop();
        await place.close();
      }
    }
    return rows;
  },
};
