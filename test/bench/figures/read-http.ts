import { writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { alternate, median, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import { startMeasured } from '../measured.ts';
import type { MeasuredServer } from '../measured.ts';
import { sharedLog } from '../shared-log.ts';

/** Events of one answer. */
const LINES = 20_000;
const PAGE = 500;

interface Asked {
  readonly title: string;
  readonly path: string;
  readonly type: string;
  readonly events: number;
  readonly least: number | null;
}

/** The body, or only its length where nobody wants it. */
function fetched(port: number, { path, type }: Asked, into?: Buffer[]): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path, headers: { accept: type } }, (reply) => {
      let length = 0;
      if (reply.statusCode !== 200) return reject(new Error(`${path} is answered ${reply.statusCode}.`));
      reply.on('data', (piece: Buffer) => {
        length += piece.length;
        into?.push(piece);
      });
      reply.on('end', () => {
        resolve(length);
      });
      reply.on('error', reject);
    }).on('error', reject);
  });
}

async function compare(settings: Settings, node: MeasuredServer, asked: Asked): Promise<Row> {
  const body: Buffer[] = [];
  const bytes = await fetched(node.port, asked, body);
  const file = join(settings.folder, 'read-http.body');
  await writeFile(file, Buffer.concat(body));
  const bare = await startMeasured(['test/bench/processes/bare-body.ts', file]);
  const cpu = { limit: [] as number[], ours: [] as number[] };
  const rate = async (server: MeasuredServer, into: number[]): Promise<number> => {
    const before = (await server.usage()).cpuMs;
    const begin = performance.now();
    let events = 0;
    do {
      const seen = await fetched(server.port, asked);
      if (seen !== bytes) throw new Error(`An answer has ${seen} bytes where the first had ${bytes}.`);
      events += asked.events;
    } while (performance.now() - begin < settings.windowMs);
    const ms = performance.now() - begin;
    into.push((((await server.usage()).cpuMs - before) * 1_000) / events);
    return (events / ms) * 1_000;
  };
  try {
    for (let i = 0; i < 2; i++) {
      await rate(bare, []);
      await rate(node, []);
    }
    const measured = await alternate(
      settings.windows,
      () => rate(bare, cpu.limit),
      () => rate(node, cpu.ours),
    );
    const target = asked.least === null ? null : ({ kind: 'at least', value: asked.least } as const);
    return row(asked.title, 'events/s', measured, target, [
      `processor time of the server ${median(cpu.ours).toFixed(2)} µs an event (bare server ${median(cpu.limit).toFixed(2)} µs)`,
    ]);
  } finally {
    await bare.stop();
  }
}

export const readHttp: Figure = {
  name: 'read-http',
  how: `The log of read-forward behind a node, a bare node:http server that sends the same bytes from memory in pieces of 64 KiB, and this process, which counts the bytes that come. One server is idle while the other is measured. Read are the first ${LINES} events of $all as NDJSON, and a page of ${PAGE} of them as Atom with bodies, one answer after another.`,
  async run(settings) {
    const log = await sharedLog(settings);
    const node = await startMeasured(['local/main.ts', 'start', '--db', log.folder, '--node-port', '0', '--insecure']);
    const lines = Math.min(LINES, log.events);
    const page = Math.min(PAGE, log.events);
    try {
      return [
        await compare(settings, node, {
          title: '$all as NDJSON over HTTP',
          path: `/streams/%24all?limit=${lines}`,
          type: 'application/x-ndjson',
          events: lines,
          least: 0.5,
        }),
        await compare(settings, node, {
          title: `Atom pages of $all of ${PAGE}, with bodies`,
          path: `/streams/%24all/${'0'.repeat(32)}/forward/${page}?embed=body`,
          type: 'application/vnd.eventstore.atom+json',
          events: page,
          least: null,
        }),
      ];
    } finally {
      await node.stop();
    }
  },
};
