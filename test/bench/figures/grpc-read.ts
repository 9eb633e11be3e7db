import { join } from 'node:path';
import { startHelper } from '../child.ts';
import { median, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import { compare, startGrpcBench } from '../grpc.ts';
import type { Compared } from '../grpc.ts';
import { startMeasured } from '../measured.ts';
import type { GrpcLoadRequest, GrpcLoadResult } from '../processes/grpc-load.ts';

const STREAM = 'bench-grpc-00';
const EVENTS = 10_000;
/** Of the stream that is read behind each start: more bytes than the cache has. */
const LONG_EVENTS = 200_000;
const EVENTS_QUICK = 400;
const BATCH = 100;
const RATE_MIN = 0.7;
/** Processor time of the server for a thousand events. */
const CPU_MS_MAX = 25;
/** The same of the first read behind a start, and of one behind some others. */
const COLD_MS_MAX = 6;
const WARM_MS_MAX = 2.5;
/** Reads of the long stream with which a node is warm. */
const WARM_UPS = 3;

export const grpcRead: Figure = {
  name: 'grpc-read',
  isLong: true,
  how: `Processes as in grpc-append; the bare server sends the same block of messages made before, again and again. The official client reads the first ${EVENTS} events of 256 bytes of a stream, and of $all, again and again, one call at a time. Then a node of its own for each window is started on ${LONG_EVENTS} such events, which are read once, ${WARM_UPS - 1} times more, and once again; here the limit is a number.`,
  async run(settings) {
    const bench = await startGrpcBench(settings, 'grpc-read');
    const events = settings.isSmoke ? EVENTS_QUICK : EVENTS;
    const long = settings.isSmoke ? EVENTS_QUICK : LONG_EVENTS;
    const rows: Row[] = [];
    try {
      // One append at a time, so that the stream has at least so many events.
      for (let left = long; left > 0;)
        left -= (
          await bench.load({
            target: { port: bench.node.port },
            kind: 'append',
            inFlight: 1,
            batch: BATCH,
            ms: settings.windowMs,
          })
        ).events;
      for (const [title, stream] of [
        ['reading a stream over gRPC', STREAM],
        ['reading $all over gRPC', null],
      ] as const)
        rows.push(
          ...comparedRows(
            title,
            await compare(bench, settings, { kind: 'read', stream, events, ms: settings.windowMs }),
          ),
        );
    } finally {
      await bench.stop();
    }
    return [...rows, ...(await coldRows(settings, long))];
  },
};

function comparedRows(title: string, { rates, cpuMs, notes }: Compared): Row[] {
  return [
    row(title, 'events/s', rates, { kind: 'at least', value: RATE_MIN }, notes),
    numberRow(`${title}: the server's processor time`, CPU_MS_MAX, cpuMs.ours, [
      `the bare server took ${median(cpuMs.limit).toFixed(2)} ms`,
    ]),
  ];
}

function numberRow(title: string, max: number, ours: number[], notes: readonly string[] = []): Row {
  return row(title, 'ms/1 000', { limit: [max], ours }, { kind: 'at most', value: 1 }, notes);
}

/** A node is cold once, so each window has its own. */
async function coldRows(settings: Settings, events: number): Promise<Row[]> {
  const [cold, warm] = [[] as number[], [] as number[]];
  const generator = startHelper(['test/bench/processes/grpc-load.ts']);
  try {
    for (let i = 0; i < settings.windows; i++) {
      const folder = join(settings.folder, 'grpc-read');
      const node = await startMeasured(['local/main.ts', 'start', '--db', folder, '--node-port', '0', '--insecure']);
      const asked: GrpcLoadRequest = { target: { port: node.port }, kind: 'read', stream: STREAM, events, ms: 0 };
      const read = async (): Promise<number> => {
        const before = await node.usage();
        const result = await generator.ask<GrpcLoadResult>(asked);
        return (((await node.usage()).cpuMs - before.cpuMs) / result.events) * 1_000;
      };
      try {
        cold.push(await read());
        for (let done = 1; done < WARM_UPS; done++) await read();
        warm.push(await read());
      } finally {
        await node.stop();
      }
    }
  } finally {
    await generator.stop();
  }
  return [
    numberRow(`reading ${events} events over gRPC, the first ones after a start: processor time`, COLD_MS_MAX, cold),
    numberRow(`reading ${events} events over gRPC, warm: processor time`, WARM_MS_MAX, warm),
  ];
}
