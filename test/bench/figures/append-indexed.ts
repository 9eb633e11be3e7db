import { join } from 'node:path';
import { changeSetting } from '../../../core/streams/change-setting/change-setting.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { NODE_FLAGS, startHelper, startHttpLoad } from '../child.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import { startMeasured } from '../measured.ts';
import type { MeasuredServer } from '../measured.ts';
import { openFolder } from '../open-folder.ts';
import type { GrpcLoadRequest, GrpcLoadResult } from '../processes/grpc-load.ts';
import type { StoreLoadRequest, StoreLoadResult } from '../processes/store-load.ts';

const IN_FLIGHT = 64;
const IN_PROCESS_CPU_MAX = 1.15;
const NETWORK_CPU_MAX = 1.07;

/** Appends in a process of their own, without the index of categories and types (limit) and with it. */
async function inProcess(settings: Settings, batch: number): Promise<Row> {
  const start = (name: string, ...words: string[]) =>
    startHelper([
      ...NODE_FLAGS,
      'test/bench/processes/store-load.ts',
      join(settings.folder, `append-indexed-${name}-${batch}`),
      ...words,
    ]);
  const without = start('without', 'no-names');
  const within = start('with');
  const load = async (store: typeof within): Promise<number> => {
    const request: StoreLoadRequest = { inFlight: IN_FLIGHT, batch, ms: settings.windowMs };
    const { cpuMs, events } = await store.ask<StoreLoadResult>(request);
    return (cpuMs / events) * 1_000;
  };
  try {
    await load(without);
    await load(within);
    const measured = await alternate(
      settings.windows,
      () => load(without),
      () => load(within),
    );
    return row(
      `append in process, ${IN_FLIGHT} clients, batches of ${batch}: processor time with the index of names, beside without it`,
      'ms/1 000',
      measured,
      { kind: 'at most', value: IN_PROCESS_CPU_MAX },
    );
  } finally {
    await without.stop();
    await within.stop();
  }
}

interface Node {
  readonly server: MeasuredServer;
  readonly rates: number[];
}

async function startIndexed(settings: Settings, name: string, names: boolean): Promise<Node> {
  const folder = join(settings.folder, `append-indexed-${name}`);
  if (!names) {
    const open = await openFolder(folder);
    await changeSetting(open.store, systemIds, { names });
    await open.close();
  }
  const server = await startMeasured(['local/main.ts', 'start', '--db', folder, '--node-port', '0', '--insecure']);
  return { server, rates: [] };
}

/** The same of two nodes. `load` answers with how many events were appended, and in how many seconds. */
async function overNetwork(
  settings: Settings,
  how: string,
  load: (port: number) => Promise<{ readonly events: number; readonly seconds: number }>,
): Promise<Row[]> {
  const without = await startIndexed(settings, `${how}-without`, false);
  const within = await startIndexed(settings, `${how}-with`, true).catch(async (error: unknown) => {
    await without.server.stop();
    throw error;
  });
  const window = async ({ server, rates }: Node): Promise<number> => {
    const before = await server.usage();
    const { events, seconds } = await load(server.port);
    const after = await server.usage();
    rates.push(events / seconds);
    return ((after.cpuMs - before.cpuMs) / events) * 1_000;
  };
  try {
    for (const node of [without, within]) {
      await window(node);
      node.rates.length = 0;
    }
    const measured = await alternate(
      settings.windows,
      () => window(without),
      () => window(within),
    );
    const title = `append over ${how}, ${IN_FLIGHT} at a time`;
    return [
      row(`${title}: processor time with the index of names, beside without it`, 'ms/1 000', measured, {
        kind: 'at most',
        value: NETWORK_CPU_MAX,
      }),
      row(
        `${title}: rate with the index of names, beside without it`,
        'requests/s',
        { limit: without.rates, ours: within.rates },
        null,
      ),
    ];
  } finally {
    await without.server.stop();
    await within.server.stop();
  }
}

async function overHttp(settings: Settings): Promise<Row[]> {
  const generator = startHttpLoad();
  const seconds = settings.windowMs / 1_000;
  try {
    return await overNetwork(settings, 'HTTP', async (port) => {
      const result = await generator.load({ port, connections: IN_FLIGHT, ms: settings.windowMs });
      return { events: result.requestsPerSecond * seconds, seconds };
    });
  } finally {
    await generator.stop();
  }
}

async function overGrpc(settings: Settings): Promise<Row[]> {
  const generator = startHelper(['test/bench/processes/grpc-load.ts']);
  try {
    return await overNetwork(settings, 'gRPC', (port) => {
      const request: GrpcLoadRequest = {
        target: { port },
        kind: 'append',
        inFlight: IN_FLIGHT,
        batch: 1,
        ms: settings.windowMs,
      };
      return generator.ask<GrpcLoadResult>(request);
    });
  } finally {
    await generator.stop();
  }
}

export const appendIndexed: Figure = {
  name: 'append-indexed',
  isLong: true,
  how: `The same appends of events of 256 bytes and eight types to ${IN_FLIGHT} streams of one category, into two stores: without the index of categories and types, which is the limit, and with it; in a process of their own each, one resting while the other is measured. Each tells the processor time of all its threads, so that what is written and merged in the background counts too.`,
  async run(settings) {
    const cases: readonly [string, () => Promise<Row[]>][] = [
      ['batches of 10', async () => [await inProcess(settings, 10)]],
      ['single', async () => [await inProcess(settings, 1)]],
      ['HTTP', () => overHttp(settings)],
      ['gRPC', () => overGrpc(settings)],
    ];
    const rows: Row[] = [];
    for (const [name, measure] of cases) if (name.includes(settings.only)) rows.push(...(await measure()));
    return rows;
  },
};
