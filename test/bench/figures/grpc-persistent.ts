import { alternate, median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { startGrpcBench } from '../grpc.ts';
import type { Load } from '../grpc.ts';
import type { GrpcLoadRequest, GrpcLoadResult } from '../processes/grpc-load.ts';

const STREAM = 'bench-grpc-00';
const EVENTS = 10_000;
const EVENTS_QUICK = 400;
const BATCH = 100;
const CONSUMERS = 4;
const BUFFER = 100;
const RATE_MIN = 0.4;

export const grpcPersistent: Figure = {
  name: 'grpc-persistent',
  isLong: true,
  how: `The node and the official client as in grpc-append. A window is a new group on a stream, with the settings that the client has by default but for its start: ${CONSUMERS} consumers, each with at most ${BUFFER} events unacked, get its first ${EVENTS} events and ack each by itself; it ends when all have come. Beside it the same client reads the same events of the same node, which is the figure of grpc-read.`,
  async run(settings) {
    const bench = await startGrpcBench(settings, 'grpc-persistent');
    const { node } = bench;
    const events = settings.isSmoke ? EVENTS_QUICK : EVENTS;
    const cpuMs: number[] = [];
    const seen: GrpcLoadResult[] = [];
    const window = async (load: Load): Promise<number> => {
      const before = await node.usage();
      const result = await bench.load({ ...load, target: { port: node.port } } as GrpcLoadRequest);
      if (load.kind === 'consume') {
        cpuMs.push((((await node.usage()).cpuMs - before.cpuMs) / result.events) * 1_000);
        seen.push(result);
      }
      return result.events / result.seconds;
    };
    const reading = (): Promise<number> => window({ kind: 'read', stream: STREAM, events, ms: settings.windowMs });
    const consuming = (): Promise<number> =>
      window({ kind: 'consume', stream: STREAM, events, consumers: CONSUMERS, bufferSize: BUFFER });
    try {
      for (let left = events; left > 0;)
        left -= (
          await bench.load({
            target: { port: node.port },
            kind: 'append',
            inFlight: 1,
            batch: BATCH,
            ms: settings.windowMs,
          })
        ).events;
      for (let i = 0; i < 2; i++) {
        await reading();
        await consuming();
      }
      cpuMs.length = seen.length = 0;
      const measured = await alternate(settings.windows, reading, consuming);
      return [
        row(
          `persistent subscription over gRPC, ${CONSUMERS} consumers, acked events`,
          'events/s',
          measured,
          { kind: 'at least', value: RATE_MIN },
          [
            `the node took ${median(cpuMs).toFixed(0)} ms of processor time for 1 000 events (${Math.min(...cpuMs).toFixed(0)} to ${Math.max(...cpuMs).toFixed(0)}); the client ${median(seen.map(({ cpu }) => 100 * cpu)).toFixed(0)} % of a core`,
          ],
        ),
      ];
    } finally {
      await bench.stop();
    }
  },
};
