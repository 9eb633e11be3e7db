import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { connect } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import { createInterface } from 'node:readline';
import { StreamsService } from '../../../handlers/grpc/messages/streams.ts';
import { toBytes } from '../../grpc/codec.ts';
import { EVENT_JSON } from '../events.ts';

/**
 * Whom an attack must not trouble: a probe that asks for `/ping` at a steady pace, somebody with a login who appends
 * over HTTP, one append after another, and who reads a page of a stream over gRPC, one after another.
 */
export interface NeighboursRequest {
  readonly port: number;
  readonly ms: number;
  /** Value of `Authorization`. */
  readonly authorization: string;
  readonly appendTo: string;
  readonly readFrom: string;
}
export interface NeighboursResult {
  readonly probes: number;
  /** Answered with something else than 200, or not at all. They count as having taken the whole window. */
  readonly probesFailed: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  readonly appendsPerSecond: number;
  /** What else appends were answered with, and how often. */
  readonly appendsFailed: Readonly<Record<string, number>>;
  readonly pagesPerSecond: number;
  readonly pagesFailed: Readonly<Record<string, number>>;
}

const HOST = '127.0.0.1';
const PROBE_EVERY_MS = 5;
/** An answer that takes longer is given up. */
const ANSWER_MS_MAX = 30_000;
const PAGE_EVENTS = 100;
/** Whoever was refused tries again after so long. */
const REFUSED_PAUSE_MS = 10;
const { Read } = StreamsService.methods;

/** The status of an answer that has come whole, or what came instead. */
function ask(
  port: number,
  agent: Agent,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<string> {
  return new Promise((resolve) => {
    const sent = request({ host: HOST, port, agent, method, path, headers, timeout: ANSWER_MS_MAX }, (reply) => {
      reply
        .on('error', (error) => resolve(error.message))
        .on('end', () => resolve(String(reply.statusCode)))
        .resume();
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer')));
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end(body);
  });
}

/**
 * Asks whether it was answered or not: each answer's time is from when it was sent, and the next one does not wait for
 * it.
 */
async function probe({ port, ms }: NeighboursRequest): Promise<{ times: number[]; failed: number }> {
  const agent = new Agent({ keepAlive: true });
  const times: number[] = [];
  const asked: Promise<void>[] = [];
  let failed = 0;
  const once = async (): Promise<void> => {
    const sentMs = performance.now();
    const status = await ask(port, agent, 'GET', '/ping');
    if (status !== '200') failed++;
    times.push(status === '200' ? performance.now() - sentMs : ms);
  };
  await new Promise<void>((resolve) => {
    const begin = performance.now();
    const ticking = setInterval(() => {
      asked.push(once());
      if (performance.now() - begin < ms) return;
      clearInterval(ticking);
      resolve();
    }, PROBE_EVERY_MS);
  });
  await Promise.all(asked);
  agent.destroy();
  return { times, failed };
}

/** How many a second came to the ending that is wished for, and how often there was another one. */
interface Repeated {
  readonly perSecond: number;
  readonly failed: Record<string, number>;
}

async function repeat(ms: number, wished: string, once: () => Promise<string>): Promise<Repeated> {
  const failed: Record<string, number> = {};
  let count = 0;
  const begin = performance.now();
  do {
    const ending = await once();
    if (ending === wished) count++;
    else {
      failed[ending] = (failed[ending] ?? 0) + 1;
      await new Promise((resolve) => {
        setTimeout(resolve, REFUSED_PAUSE_MS);
      });
    }
  } while (performance.now() - begin < ms);
  return { perSecond: (count / (performance.now() - begin)) * 1_000, failed };
}

async function append({ port, ms, authorization, appendTo }: NeighboursRequest): Promise<Repeated> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const result = await repeat(ms, '201', () =>
    ask(
      port,
      agent,
      'POST',
      `/streams/${appendTo}`,
      {
        authorization,
        'content-type': 'application/json',
        'es-eventtype': 'OrderPlaced',
        'es-eventid': randomUUID(),
        'content-length': String(EVENT_JSON.length),
      },
      EVENT_JSON,
    ),
  );
  agent.destroy();
  return result;
}

async function read({ port, ms, authorization, readFrom }: NeighboursRequest): Promise<Repeated> {
  const message = toBytes('event_store.client.streams.ReadReq', {
    options: {
      stream: { stream_identifier: { stream_name: Buffer.from(readFrom).toString('base64') }, start: {} },
      count: String(PAGE_EVENTS),
      no_filter: {},
      uuid_option: { string: {} },
    },
  });
  const asked = Buffer.concat([Buffer.alloc(5), message]);
  asked.writeUInt32BE(message.length, 1);
  let session: ClientHttp2Session | null = null;
  const result = await repeat(ms, 'gRPC 0', () => {
    if (session === null || session.closed || session.destroyed)
      session = connect(`http://${HOST}:${port}`).on('error', () => {});
    return page(session, asked, authorization);
  });
  (session as ClientHttp2Session | null)?.destroy();
  return result;
}

function page(session: ClientHttp2Session, asked: Uint8Array, authorization: string): Promise<string> {
  return new Promise((resolve) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': Read.path,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization,
    });
    let status: unknown;
    let bytes = 0;
    stream.setTimeout(ANSWER_MS_MAX, () => stream.close());
    for (const event of ['response', 'trailers'] as const)
      stream.on(event, (headers: Record<string, unknown>) => {
        status = headers['grpc-status'] ?? status;
      });
    stream.on('data', (part: Buffer) => {
      bytes += part.length;
    });
    stream.on('error', () => {});
    stream.on('close', () =>
      resolve(
        status === '0' && bytes < PAGE_EVENTS * EVENT_JSON.length
          ? 'not all events'
          : `gRPC ${String(status ?? 'without status')}`,
      ),
    );
    stream.end(asked);
  });
}

async function observe(asked: NeighboursRequest): Promise<NeighboursResult> {
  const [{ times, failed }, appends, pages] = await Promise.all([probe(asked), append(asked), read(asked)]);
  const sorted = Float64Array.from(times).sort();
  return {
    probes: sorted.length,
    probesFailed: failed,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)]!,
    longestMs: sorted.at(-1)!,
    appendsPerSecond: appends.perSecond,
    appendsFailed: appends.failed,
    pagesPerSecond: pages.perSecond,
    pagesFailed: pages.failed,
  };
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await observe(JSON.parse(line) as NeighboursRequest))}\n`);
  process.exit(0);
}
