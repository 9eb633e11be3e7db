import { join } from 'node:path';
import { startHelper, startHttpLoad } from '../child.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';
import type { LoadRequest, LoadResult } from '../processes/http-load.ts';
import { ROUTING_SCRIPT, signedCalls, startConnector, startWebhookNode } from '../webhooks.ts';

const CONNECTIONS = 8;
const PAUSE_MS = 5;
const SPINNING = 8;
/** So that the calls that a breaker refuses are no load of their own. */
const SPIN_PAUSE_MS = 20;

/** Never ends: a script of this kind is cut off, and after three times its calls are refused for a second. */
const ENDLESS = 'function route() { for (;;); }';
/** Takes most of the time that a script may take, and answers in the end. */
const SLOW =
  "function route() { let n = 0; for (let i = 0; i < 300_000; i++) n += i % 7; return { stream: 'slow-' + n }; }";

export const webhookLatency: Figure = {
  name: 'webhook-latency',
  how: `Signed calls of 1024 bytes posted over ${CONNECTIONS} connections with a pause of ${PAUSE_MS} ms to a connector whose node is idle otherwise, and while another connector of that node gets ${SPINNING} concurrent calls whose script never ends (another generator posts them, with a pause of ${SPIN_PAUSE_MS} ms after each answer). The second row has a script there that does end, after tens of milliseconds, so that it spins all the time and is never refused. The value is the 99th percentile of a window.`,
  async run(settings) {
    const node = await startWebhookNode(join(settings.folder, 'webhook-latency'));
    const generator = startHttpLoad();
    const spinner = startHelper(['test/bench/processes/http-load.ts']);
    const load = async (into: LoadResult[]): Promise<number> => {
      const result = await generator.load({
        port: node.port,
        connections: CONNECTIONS,
        ms: settings.windowMs,
        pauseMs: PAUSE_MS,
        webhook: signedCalls('quiet', 202),
      });
      into.push(result);
      return result.p99Ms;
    };
    const figure = async (connectorId: string, status: number, title: string, target: Row['target']): Promise<Row> => {
      const seen: LoadResult[] = [];
      const spun: LoadResult[] = [];
      const during = async (): Promise<number> => {
        const spinning = spinner.ask<LoadResult>({
          port: node.port,
          connections: SPINNING,
          ms: settings.windowMs + 200,
          pauseMs: SPIN_PAUSE_MS,
          webhook: signedCalls(connectorId, status),
        } satisfies LoadRequest);
        const p99 = await load(seen);
        spun.push(await spinning);
        return p99;
      };
      const measured = await alternate(settings.windows, () => load([]), during);
      const sum = (of: (result: LoadResult) => number): number => spun.reduce((total, result) => total + of(result), 0);
      return row(title, 'ms', measured, target, [
        `longest ${Math.max(...seen.map(({ maxMs }) => maxMs)).toFixed(1)} ms; meanwhile ${sum(({ requestsPerSecond }) => requestsPerSecond / spun.length).toFixed(0)} spinning calls a second were answered ${status}, and ${sum(({ failures }) => failures)} of all windows otherwise`,
      ]);
    };
    try {
      await startConnector(node.port, 'quiet', ROUTING_SCRIPT);
      await startConnector(node.port, 'endless', ENDLESS);
      await startConnector(node.port, 'slowly', SLOW);
      for (let i = 0; i < 2; i++) await load([]);
      return [
        await figure('endless', 500, "latency of webhooks while another connector's scripts never end, p99", {
          kind: 'at most',
          value: 2,
        }),
        await figure('slowly', 202, "latency of webhooks while another connector's scripts take long, p99", null),
      ];
    } finally {
      await generator.stop();
      await spinner.stop();
      await node.stop();
    }
  },
};
