import { alternate, median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { startGrpcBench } from '../grpc.ts';
import type { MeasuredServer } from '../measured.ts';
import type { GrpcLoadResult } from '../processes/grpc-load.ts';

const PER_SECOND = 2_000;
const P99_MAX = 3;
const IDLE = 1_000;
const IDLE_QUICK = 50;
const IDLE_MIB_MAX = 50;

export const grpcSubscriptions: Figure = {
  name: 'grpc-subscriptions',
  isLong: true,
  how: `Processes as in grpc-append. The official client appends single events at ${PER_SECOND} a second, and a subscription of its own to their stream shows them again: the value is the 99th percentile, over a window, of the time from the append to the delivery. The bare server answers each append and sends an event for it at once, which is its round trip. The next row sets that beside the answer to the append, which waits for the same disk: what lies between is what the subscription adds. Then the resident size of the node, its heap collected before, with ${IDLE} subscriptions that have nothing to do, beside that without.`,
  async run(settings) {
    const bench = await startGrpcBench(settings, 'grpc-subscriptions');
    const { bare, node } = bench;
    const seen: GrpcLoadResult[] = [];
    const cpuMs: number[] = [];
    const follow = async (server: MeasuredServer, ms: number): Promise<number> => {
      const before = await server.usage();
      const result = await bench.load({ target: { port: server.port }, kind: 'follow', perSecond: PER_SECOND, ms });
      if (server === node) {
        seen.push(result);
        cpuMs.push((((await server.usage()).cpuMs - before.cpuMs) / result.events) * 1_000);
      }
      return result.p99Ms;
    };
    try {
      for (let i = 0; i < 2; i++) for (const server of [bare, node]) await follow(server, settings.windowMs);
      seen.length = cpuMs.length = 0;
      const latency = await alternate(
        settings.windows,
        () => follow(bare, settings.windowMs),
        () => follow(node, settings.windowMs),
      );
      const without = (await node.usage(true)).residentMiB;
      const idle = settings.isSmoke ? IDLE_QUICK : IDLE;
      await bench.load({ target: { port: node.port }, kind: 'hold', subscriptions: idle });
      const withThem = (await node.usage(true)).residentMiB;
      return [
        row(
          'live subscription over gRPC: append to delivery, p99 at 2 000 events/s',
          'ms',
          latency,
          { kind: 'at most', value: P99_MAX },
          [
            `p50 ${median(seen.map(({ p50Ms }) => p50Ms)).toFixed(2)} ms; p99 from the append to its answer ${median(seen.map(({ answeredP99Ms }) => answeredP99Ms)).toFixed(2)} ms; the node took ${median(cpuMs).toFixed(0)} ms of processor time for 1 000 appended and delivered; the client ${median(seen.map(({ cpu }) => 100 * cpu)).toFixed(0)} % of a core`,
          ],
        ),
        row(
          'live subscription over gRPC: delivery beside the answer to the append, p99',
          'ms',
          { limit: seen.map(({ answeredP99Ms }) => answeredP99Ms), ours: seen.map(({ p99Ms }) => p99Ms) },
          null,
        ),
        row(
          'resident size that 1 000 idle subscriptions take',
          'MiB',
          { limit: [IDLE_MIB_MAX], ours: [Math.max(0.01, withThem - without)] },
          { kind: 'below', value: 1 },
          [`${without.toFixed(0)} MiB without, ${withThem.toFixed(0)} MiB with ${idle}`],
        ),
      ];
    } finally {
      await bench.stop();
    }
  },
};
