import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { issueNode, issueRoot } from '../support/certificates.ts';
import { startHelper } from './child.ts';
import { alternate, median, row } from './figure.ts';
import type { Row, Settings } from './figure.ts';
import { startMeasured } from './measured.ts';
import type { MeasuredServer } from './measured.ts';
import type { GrpcLoadRequest, GrpcLoadResult, GrpcTarget } from './processes/grpc-load.ts';

/**
 * What the figures of gRPC share: the node, the bare server beside it, and the official client in a process of its own
 * that loads one or the other.
 */
export interface GrpcBench {
  readonly node: MeasuredServer;
  readonly bare: MeasuredServer;
  /** File of the authority's certificate, where both speak TLS. */
  readonly authority?: string;
  load(request: GrpcLoadRequest): Promise<GrpcLoadResult>;
  stop(): Promise<void>;
}

/** Neither an administrator nor an operator, so that access lists are asked. */
export const USER = { username: 'kim', password: 'a-password-of-some-length' };

/** With TLS there are users, and their credentials and access lists are in force: USER is one of them. */
export async function startGrpcBench(
  settings: Settings,
  name: string,
  security: 'insecure' | 'tls' = 'insecure',
): Promise<GrpcBench> {
  const keys = security === 'tls' ? await writeKeys(join(settings.folder, `${name}-keys`)) : null;
  const bare = await startMeasured(['test/bench/processes/bare-grpc.ts', ...(keys === null ? [] : [keys.folder])]);
  const words =
    keys === null
      ? ['--insecure']
      : [
          '--certificate-file',
          keys.certificate,
          '--certificate-private-key-file',
          keys.key,
          '--trusted-root-certificates-path',
          keys.roots,
        ];
  const node = await startMeasured([
    'local/main.ts',
    'start',
    '--db',
    join(settings.folder, name),
    '--node-port',
    '0',
    ...words,
  ]).catch(async (error: unknown) => {
    await bare.stop();
    throw error;
  });
  const generator = startHelper(['test/bench/processes/grpc-load.ts']);
  const bench: GrpcBench = {
    node,
    bare,
    ...(keys !== null && { authority: keys.authority }),
    load: (asked) => generator.ask<GrpcLoadResult>(asked),
    async stop() {
      await generator.stop();
      await bare.stop();
      await node.stop();
    },
  };
  if (keys === null) return bench;
  return createUser(node.port, keys.root).then(
    () => bench,
    async (error: unknown) => {
      await bench.stop();
      throw error;
    },
  );
}

/** A certificate for this machine, and the authority that has signed it. */
async function writeKeys(folder: string) {
  const files = {
    folder,
    certificate: join(folder, 'node.crt'),
    key: join(folder, 'node.key'),
    roots: join(folder, 'roots'),
    authority: join(folder, 'roots', 'root.crt'),
  };
  mkdirSync(files.roots, { recursive: true });
  const root = await issueRoot();
  const node = await issueNode(root);
  writeFileSync(files.certificate, node.cert);
  writeFileSync(files.key, node.key);
  writeFileSync(files.authority, root.cert);
  return { ...files, root: root.cert };
}

function createUser(port: number, root: string): Promise<void> {
  const body = JSON.stringify({
    loginName: USER.username,
    fullName: 'Kim',
    groups: ['pickers'],
    password: USER.password,
  });
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: '127.0.0.1',
        port,
        path: '/users',
        method: 'POST',
        ca: root,
        auth: 'admin:changeit',
        headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
      },
      (response) => {
        response.resume();
        if (response.statusCode === 201) response.on('end', resolve);
        else reject(new Error(`The user was not created: ${response.statusCode}.`));
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

/** A request without the server that it goes to. */
export type Load = GrpcLoadRequest extends infer Request
  ? Request extends { readonly target: GrpcTarget }
    ? Omit<Request, 'target'>
    : never
  : never;

/** Windows of both sides: events a second, and what a thousand events took of the server's processors. */
export interface Compared {
  readonly rates: { limit: number[]; ours: number[] };
  readonly cpuMs: { limit: number[]; ours: number[] };
  readonly notes: readonly string[];
}

/**
 * Windows before those that count. A call goes through much more of the node's code than of the bare server's: after
 * two windows a third of what the node takes is still its compilation, and a load that follows another one changes what
 * is compiled; after eight it is a twentieth.
 */
const WARM_UPS = 8;
/** In a smoke run, which measures nothing. */
const WARM_UPS_QUICK = 1;

/** One load on both servers in turns. */
export async function compare(bench: GrpcBench, settings: Settings, load: Load): Promise<Compared> {
  const { bare, node } = bench;
  const cpuMs = { limit: [] as number[], ours: [] as number[] };
  const seen = { limit: [] as GrpcLoadResult[], ours: [] as GrpcLoadResult[] };
  const window = async (server: MeasuredServer, into: 'limit' | 'ours'): Promise<number> => {
    const before = await server.usage();
    const result = await bench.load({
      ...load,
      target: { port: server.port, ...(bench.authority !== undefined && { authority: bench.authority }) },
    } as GrpcLoadRequest);
    const after = await server.usage();
    cpuMs[into].push(((after.cpuMs - before.cpuMs) / result.events) * 1_000);
    seen[into].push(result);
    return result.events / result.seconds;
  };
  for (let i = settings.isSmoke ? WARM_UPS_QUICK : WARM_UPS; i > 0; i--) {
    await window(bare, 'limit');
    await window(node, 'ours');
  }
  for (const side of ['limit', 'ours'] as const) cpuMs[side].length = seen[side].length = 0;
  const rates = await alternate(
    settings.windows,
    () => window(bare, 'limit'),
    () => window(node, 'ours'),
  );
  const of = (side: GrpcLoadResult[], what: (result: GrpcLoadResult) => number): string =>
    median(side.map(what)).toFixed(1);
  return {
    rates,
    cpuMs,
    notes: [
      `an answer p50 ${of(seen.ours, (r) => r.p50Ms)} ms, p99 ${of(seen.ours, (r) => r.p99Ms)} ms (bare server ${of(seen.limit, (r) => r.p50Ms)} and ${of(seen.limit, (r) => r.p99Ms)} ms); the client took ${of(seen.ours, (r) => 100 * r.cpu)} % of a core (${of(seen.limit, (r) => 100 * r.cpu)} %)`,
    ],
  };
}

/** Rate, and processor time beside the bare server's. */
export function comparedRows(title: string, { rates, cpuMs, notes }: Compared, rateMin: number, cpuMax: number): Row[] {
  return [
    row(title, 'events/s', rates, { kind: 'at least', value: rateMin }, notes),
    row(`${title}: the server's processor time`, 'ms/1 000', cpuMs, { kind: 'at most', value: cpuMax }),
  ];
}
