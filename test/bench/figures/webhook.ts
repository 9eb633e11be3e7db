import { join } from 'node:path';
import { startHelper, startServer } from '../child.ts';
import { alternate, median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import type { LoadRequest, LoadResult } from '../processes/http-load.ts';
import { ROUTING_SCRIPT, SECRET, signedCalls, startConnector, startWebhookNode } from '../webhooks.ts';

const CONNECTIONS = 64;

export const webhook: Figure = {
  name: 'webhook',
  how: `Three processes: the node, a bare node:http server that reads the body, computes its HMAC, compares that with the header and answers 202, and the load generator, which posts calls of 1024 bytes, signed as GitHub signs, over ${CONNECTIONS} kept connections, one request at a time. The node's connector is as by default: each call is verified, routed by a script that reads the body, remembered by its delivery id, which is another one each time, and written; it is answered 202 when accepted. A second row has the same with waitForWrite, answered 201 when durable. Only calls that were accepted count.`,
  async run(settings) {
    const bare = await startServer(['test/bench/processes/bare-http.ts', SECRET]);
    const node = await startWebhookNode(join(settings.folder, 'webhook')).catch(async (error: unknown) => {
      await bare.stop();
      throw error;
    });
    const generator = startHelper(['test/bench/processes/http-load.ts']);
    const load = async (port: number, connectorId: string, status: number, into: LoadResult[]): Promise<number> => {
      const request: LoadRequest = {
        port,
        connections: CONNECTIONS,
        ms: settings.windowMs,
        webhook: signedCalls(connectorId, status),
      };
      const result = await generator.ask<LoadResult>(request);
      // A connector whose pipeline is full says so, and those calls do not count; anything else is a fault.
      if (result.failures > 0 && !result.firstFailure.startsWith('HTTP/1.1 503'))
        throw new Error(`${result.failures} calls failed, the first with:\n${result.firstFailure}`);
      into.push(result);
      return result.requestsPerSecond;
    };
    const figure = async (title: string, connectorId: string, status: number, target: number | null) => {
      const seen: { limit: LoadResult[]; ours: LoadResult[] } = { limit: [], ours: [] };
      const limit = (into: LoadResult[]) => load(bare.port, connectorId, 202, into);
      const ours = (into: LoadResult[]) => load(node.port, connectorId, status, into);
      for (let i = 0; i < 2; i++) {
        await limit([]);
        await ours([]);
      }
      const measured = await alternate(
        settings.windows,
        () => limit(seen.limit),
        () => ours(seen.ours),
      );
      const of = (side: LoadResult[], what: (result: LoadResult) => number): string =>
        median(side.map(what)).toFixed(1);
      return row(title, 'calls/s', measured, target === null ? null : { kind: 'at least', value: target }, [
        `latency p50 ${of(seen.ours, (r) => r.p50Ms)} ms, p99 ${of(seen.ours, (r) => r.p99Ms)} ms (bare server ${of(seen.limit, (r) => r.p50Ms)} and ${of(seen.limit, (r) => r.p99Ms)} ms)`,
        `${seen.ours.reduce((sum, { failures }) => sum + failures, 0)} calls of all windows were answered 503`,
      ]);
    };
    try {
      await startConnector(node.port, 'accepted', ROUTING_SCRIPT);
      await startConnector(node.port, 'written', ROUTING_SCRIPT, { waitForWrite: true });
      return [
        await figure('accepted webhooks, 1 kB, HMAC, script, 64 connections', 'accepted', 202, 0.35),
        await figure('durably written webhooks, 1 kB, HMAC, script, 64 connections', 'written', 201, null),
      ];
    } finally {
      await generator.stop();
      await bare.stop();
      await node.stop();
    }
  },
};
