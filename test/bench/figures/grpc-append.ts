import { join } from 'node:path';
import { NODE_FLAGS, startHelper } from '../child.ts';
import { median, row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';
import { compare, comparedRows, startGrpcBench, USER } from '../grpc.ts';
import type { Compared } from '../grpc.ts';
import type { RawAppendRequest, RawAppendResult } from '../processes/raw-append.ts';
import type { StoreLoadRequest, StoreLoadResult } from '../processes/store-load.ts';

const IN_FLIGHT = 64;
const BATCH = 100;
const BATCHES_IN_FLIGHT = 8;
const RATE_MIN = 0.7;
const SINGLE_CPU_MAX = 2;
const BATCH_CPU_MAX = 2.5;
/** Without TLS it is not sent: it only makes the client choose a call for each append. */
const LOGIN = { username: 'admin', password: 'changeit' };

export const grpcAppend: Figure = {
  name: 'grpc-append',
  isLong: true,
  how: `Processes of their own: the node, a bare node:http2 server that answers at once with messages made before, and the load generator, which is the official client (@eventstore/db-client): ${IN_FLIGHT} appends of one event of 256 bytes under way at a time, each to its own stream; the same with credentials, where the client makes a call of each append (without TLS it does not send them), and over TLS, where it does, and they and the access lists of a user who is no administrator are in force (the bare server speaks TLS, too, and looks at nothing); and ${BATCHES_IN_FLIGHT} appends of ${BATCH} events. One server is idle while the other is measured; each tells its own processor time, all threads together. Two more rows add, to the bare server's time, that of a store that is given the same appends in its own process, without any network; the last row shows what a writer by hand and the bare server take together, as a multiple of the bare server: it encodes the same records, takes their MD5, writes and syncs them, ${BATCH * BATCHES_IN_FLIGHT} at a time.`,
  async run(settings) {
    let bench = await startGrpcBench(settings, 'grpc-append');
    const raw = startHelper([
      ...NODE_FLAGS,
      'test/bench/processes/raw-append.ts',
      join(settings.folder, 'grpc-append-raw'),
      String(BATCH * BATCHES_IN_FLIGHT),
    ]);
    const store = startHelper([
      ...NODE_FLAGS,
      'test/bench/processes/store-load.ts',
      join(settings.folder, 'grpc-append-store'),
    ]);
    const ms = settings.windowMs;
    const besideStore = async (
      title: string,
      { cpuMs }: Compared,
      request: Omit<StoreLoadRequest, 'ms'>,
    ): Promise<Row> => {
      const alone: number[] = [];
      await store.ask<StoreLoadResult>({ ...request, ms });
      for (let i = 0; i < settings.windows; i++) {
        const result = await store.ask<StoreLoadResult>({ ...request, ms });
        alone.push((result.cpuMs / result.events) * 1_000);
      }
      return row(
        `${title}: processor time beside bare server and store alone`,
        'ms/1 000',
        { limit: cpuMs.limit.map((bare, i) => bare + alone[i]!), ours: cpuMs.ours },
        null,
      );
    };
    /** How much the least is that durable appends take in all, as a multiple of a server that keeps nothing. */
    const floor = async (title: string, { cpuMs }: Compared): Promise<Row> => {
      const alone: number[] = [];
      await raw.ask<RawAppendResult>({ ms } satisfies RawAppendRequest);
      for (let i = 0; i < settings.windows; i++) {
        const result = await raw.ask<RawAppendResult>({ ms } satisfies RawAppendRequest);
        alone.push((result.cpuMs / result.records) * 1_000);
      }
      return row(
        `${title}: processor time of bare server and writer by hand, beside the bare server`,
        'ms/1 000',
        { limit: cpuMs.limit, ours: cpuMs.limit.map((bare, i) => bare + alone[i]!) },
        null,
        [`the writer by hand alone took ${median(alone).toFixed(2)} ms`],
      );
    };
    try {
      const single = await compare(bench, settings, { kind: 'append', inFlight: IN_FLIGHT, batch: 1, ms });
      const calls = await compare(bench, settings, { kind: 'append', inFlight: IN_FLIGHT, batch: 1, ms, login: LOGIN });
      const batches = await compare(bench, settings, { kind: 'append', inFlight: BATCHES_IN_FLIGHT, batch: BATCH, ms });
      await bench.stop();
      bench = await startGrpcBench(settings, 'grpc-append-tls', 'tls');
      const secured = await compare(bench, settings, {
        kind: 'append',
        inFlight: IN_FLIGHT,
        batch: 1,
        ms,
        login: USER,
      });
      return [
        ...comparedRows('append over gRPC, 64 in flight', single, RATE_MIN, SINGLE_CPU_MAX),
        await besideStore('append over gRPC, 64 in flight', single, { inFlight: IN_FLIGHT, batch: 1 }),
        ...comparedRows('append over gRPC, 64 in flight, a call each', calls, RATE_MIN, SINGLE_CPU_MAX),
        ...comparedRows(
          'append over gRPC with TLS and credentials, 64 in flight, a call each',
          secured,
          RATE_MIN,
          SINGLE_CPU_MAX,
        ),
        ...comparedRows('append over gRPC, batches of 100', batches, RATE_MIN, BATCH_CPU_MAX),
        await besideStore('append over gRPC, batches of 100', batches, { inFlight: BATCHES_IN_FLIGHT, batch: BATCH }),
        await floor('append over gRPC, batches of 100', batches),
      ];
    } finally {
      await raw.stop();
      await store.stop();
      await bench.stop();
    }
  },
};
