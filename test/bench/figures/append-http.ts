import { join } from 'node:path';
import { startHttpLoad, startNode, startServer } from '../child.ts';
import { alternate, median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import type { LoadResult } from '../processes/http-load.ts';

const CONNECTIONS = 64;

export const appendHttp: Figure = {
  name: 'append-http',
  how: `Three processes: the node, a bare node:http server that reads the body and answers 201, and the load generator, which posts single events of 256 bytes (application/json with ES-EventType and ES-EventId) over ${CONNECTIONS} kept connections, each to its own stream, one request at a time. One server is idle while the other is measured.`,
  async run(settings) {
    const bare = await startServer(['test/bench/processes/bare-http.ts']);
    const node = await startNode(join(settings.folder, 'append-http')).catch(async (error: unknown) => {
      await bare.stop();
      throw error;
    });
    const generator = startHttpLoad();
    const seen: { limit: LoadResult[]; ours: LoadResult[] } = { limit: [], ours: [] };
    const load = async (port: number, into: LoadResult[]): Promise<number> => {
      const result = await generator.load({ port, connections: CONNECTIONS, ms: settings.windowMs });
      into.push(result);
      return result.requestsPerSecond;
    };
    try {
      for (let i = 0; i < 2; i++) {
        await load(bare.port, []);
        await load(node.port, []);
      }
      const measured = await alternate(
        settings.windows,
        () => load(bare.port, seen.limit),
        () => load(node.port, seen.ours),
      );
      const of = (side: LoadResult[], what: (result: LoadResult) => number): string =>
        median(side.map(what)).toFixed(1);
      return [
        row('append over HTTP, 64 connections', 'requests/s', measured, { kind: 'at least', value: 0.75 }, [
          `latency p50 ${of(seen.ours, (r) => r.p50Ms)} ms, p99 ${of(seen.ours, (r) => r.p99Ms)} ms (bare server ${of(seen.limit, (r) => r.p50Ms)} and ${of(seen.limit, (r) => r.p99Ms)} ms)`,
          `the load generator took ${of(seen.ours, (r) => 100 * r.cpu)} % of a core (bare server ${of(seen.limit, (r) => 100 * r.cpu)} %)`,
        ]),
      ];
    } finally {
      await generator.stop();
      await bare.stop();
      await node.stop();
    }
  },
};
