import { median, row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';
import { compare, startGrpcBench } from '../grpc.ts';
import type { Compared } from '../grpc.ts';

const EVENTS = 10_000;
const EVENTS_QUICK = 400;
const BATCH = 100;
const RATE_MIN = 0.7;
/** Processor time of the server for a thousand events. */
const CPU_MS_MAX = 25;

export const grpcRead: Figure = {
  name: 'grpc-read',
  isLong: true,
  how: `Processes as in grpc-append; the bare server sends the same block of messages made before, again and again. The official client reads the first ${EVENTS} events of 256 bytes of a stream, and of $all, again and again, one call at a time.`,
  async run(settings) {
    const bench = await startGrpcBench(settings, 'grpc-read');
    const events = settings.isSmoke ? EVENTS_QUICK : EVENTS;
    try {
      // One append at a time, so that the stream has at least so many events.
      for (let left = events; left > 0;)
        left -= (
          await bench.load({
            target: { port: bench.node.port },
            kind: 'append',
            inFlight: 1,
            batch: BATCH,
            ms: settings.windowMs,
          })
        ).events;
      return [
        ...rows(
          'reading a stream over gRPC',
          await compare(bench, settings, { kind: 'read', stream: 'bench-grpc-00', events, ms: settings.windowMs }),
        ),
        ...rows(
          'reading $all over gRPC',
          await compare(bench, settings, { kind: 'read', stream: null, events, ms: settings.windowMs }),
        ),
      ];
    } finally {
      await bench.stop();
    }
  },
};

function rows(title: string, { rates, cpuMs, notes }: Compared): Row[] {
  return [
    row(title, 'events/s', rates, { kind: 'at least', value: RATE_MIN }, notes),
    row(
      `${title}: the server's processor time`,
      'ms/1 000',
      { limit: [CPU_MS_MAX], ours: cpuMs.ours },
      { kind: 'at most', value: 1 },
      [`the bare server took ${median(cpuMs.limit).toFixed(2)} ms`],
    ),
  ];
}
