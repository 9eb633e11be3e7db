import { rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ANY } from '../../../core/streams/api.ts';
import { startNode } from '../child.ts';
import type { Server } from '../child.ts';
import { encodedStream, encodedStreams, indexedLog } from '../encoded-log.ts';
import { EVENT_JSON, newEvent } from '../events.ts';
import { median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { openFolder } from '../open-folder.ts';

/** 20 M events fill 100 of these. */
const CHUNK_BYTES = 33_554_432;
const DATA = `{${' '.repeat(48)}}`;
const EVENTS_A_STREAM = 20;
/** Requests of each kind that are sent before a node counts as warm, and those that are then measured. */
const WARM_UPS = 300;
const WARM = 200;
/** Streams are taken in turns far apart, so that each is asked for once. */
const STRIDE = 7_919;

/** One request over a kept connection; milliseconds until its whole answer is there. */
function timed(node: Server, agent: Agent, method: 'GET' | 'POST', path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const body = method === 'POST' ? EVENT_JSON : '';
    const headers =
      method === 'POST'
        ? {
            'content-type': 'application/json',
            'es-eventtype': 'Noted',
            'es-eventid': crypto.randomUUID(),
            'content-length': String(body.length),
          }
        : { accept: 'application/json' };
    request({ host: '127.0.0.1', port: node.port, agent, method, path, headers }, (response) => {
      response.resume();
      response.on('end', () => {
        if (response.statusCode === (method === 'POST' ? 201 : 200)) resolve(performance.now() - begin);
        else reject(new Error(`${method} ${path} was answered with ${response.statusCode}.`));
      });
    })
      .on('error', reject)
      .end(body);
  });
}

interface Started {
  readonly startMs: number;
  readonly firstReadMs: number;
  readonly firstAppendMs: number;
  readonly warmReadMs: number;
  readonly warmAppendMs: number;
}

/** Starts a node, asks it for `first`, and for the streams of `of` a first time and then many times. */
async function start(
  folder: string,
  first: string,
  of: ((n: number) => string) | null,
  warm: number,
): Promise<Started> {
  const begin = performance.now();
  const node = await startNode(folder);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    await timed(node, agent, 'GET', `/streams/${first}`);
    const startMs = performance.now() - begin;
    if (of === null) return { startMs, firstReadMs: 0, firstAppendMs: 0, warmReadMs: 0, warmAppendMs: 0 };
    let n = 0;
    const read = (): Promise<number> => timed(node, agent, 'GET', `/streams/${of(n++)}/${n % EVENTS_A_STREAM}`);
    const append = (): Promise<number> => timed(node, agent, 'POST', `/streams/${of(n++)}`);
    const firstAppendMs = await append();
    const firstReadMs = await read();
    const several = async (ask: () => Promise<number>, times: number): Promise<number> => {
      const all: number[] = [];
      for (let i = 0; i < times; i++) all.push(await ask());
      return median(all);
    };
    await several(append, warm === WARM ? WARM_UPS : warm);
    await several(read, warm === WARM ? WARM_UPS : warm);
    return {
      startMs,
      firstReadMs,
      firstAppendMs,
      warmAppendMs: await several(append, warm),
      warmReadMs: await several(read, warm),
    };
  } finally {
    agent.destroy();
    await node.stop();
  }
}

export const scaleStart: Figure = {
  name: 'scale-start',
  isLong: true,
  how: `From the spawn of \`skua start\` to the first 200 on a read, on a directory that was stopped cleanly: one with 20 M events of 160 bytes in 1 M streams (100 chunks of 32 MiB, encoded by the bench; their index is built by the store), and as the limit one with a single event. After the first answer the same connection appends an event to a stream that nobody asked for since the start, and then reads one of another: the first append and the first read. The limits of these are the medians of ${WARM} later ones, each of a stream of its own, after ${WARM_UPS} of each kind.`,
  async run(settings) {
    const folder = join(settings.folder, 'scale-start');
    const empty = join(settings.folder, 'scale-empty');
    await indexedLog(
      folder,
      { events: settings.scaleEvents, chunkBytes: settings.isSmoke ? 1_048_576 : CHUNK_BYTES, data: DATA },
      settings.say,
    );
    const streams = encodedStreams(settings.scaleEvents);
    const open = await openFolder(empty);
    await open.store.append(encodedStream(0), ANY, [newEvent(0)]);
    await open.close();
    const measured = { limit: [] as number[], ours: [] as number[] };
    const append = { limit: [] as number[], ours: [] as number[] };
    const read = { limit: [] as number[], ours: [] as number[] };
    let run = 0;
    const full = (): Promise<Started> => {
      run++;
      return start(
        folder,
        encodedStream(run),
        (n) => encodedStream((run * 1_000 + (n + 1) * STRIDE) % streams),
        settings.isSmoke ? 5 : WARM,
      );
    };
    // The first start proves the tables that were written last.
    await start(empty, encodedStream(0), null, 0);
    await full();
    for (let i = 0; i < settings.windows; i++) {
      measured.limit.push((await start(empty, encodedStream(0), null, 0)).startMs);
      const started = await full();
      measured.ours.push(started.startMs);
      append.limit.push(started.warmAppendMs);
      append.ours.push(started.firstAppendMs);
      read.limit.push(started.warmReadMs);
      read.ours.push(started.firstReadMs);
    }
    rmSync(folder, { recursive: true });
    rmSync(`${folder}.complete`);
    return [
      row('start with 20 M events in 100 chunks', 'ms', measured, { kind: 'at most', value: 1.2 }),
      row('first append after it, beside a warm one', 'ms', append, { kind: 'at most', value: 5 }),
      row('first read after it, beside a warm one', 'ms', read, { kind: 'at most', value: 5 }),
    ];
  },
};
