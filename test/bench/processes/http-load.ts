import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { EVENT_BYTES, EVENT_JSON } from '../events.ts';

/**
 * The load generator: connections that are kept open, each posting one event, reading the answer, and going on. It
 * speaks just enough HTTP/1.1 over plain sockets, so that it takes less work than any server it measures.
 */
export interface LoadRequest {
  readonly port: number;
  readonly connections: number;
  readonly ms: number;
  /** Between an answer and the next request. */
  readonly pauseMs?: number;
  /** Value of `Authorization`. */
  readonly authorization?: string;
  /** Read instead: the path of what every request asks for. */
  readonly read?: string;
  /** Posted instead of events. */
  readonly webhook?: WebhookLoad;
}
/** One call again and again, each time with another id. */
export interface WebhookLoad {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly idHeader: string;
  readonly expectedStatus: number;
}
export interface LoadResult {
  /** Those that were answered as expected. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Other answers than expected. */
  readonly failures: number;
  readonly firstFailure: string;
  /** Share of one core that this process took. */
  readonly cpu: number;
}

const END_OF_HEAD = Buffer.from('\r\n\r\n');
const END_OF_CHUNKS = Buffer.from('0\r\n\r\n');

/** Length of the whole answer at the start of `bytes`, or -1 when more must come. */
export function answerLength(bytes: Buffer): number {
  const head = bytes.indexOf(END_OF_HEAD);
  if (head < 0) return -1;
  const text = bytes.toString('latin1', 0, head);
  const length = /\r\ncontent-length: *(\d+)/i.exec(text);
  let end = head + 4;
  if (length !== null) end += Number(length[1]);
  else if (/\r\ntransfer-encoding: *chunked/i.test(text)) {
    const last = bytes.indexOf(END_OF_CHUNKS, head + 2);
    if (last < 0) return -1;
    end = last + END_OF_CHUNKS.length;
  }
  return end <= bytes.length ? end : -1;
}

interface Tally {
  readonly latencies: number[];
  failures: number;
  firstFailure: string;
}

/** What every request of a connection begins and ends with; the id stands between. */
function requestText(
  stream: string,
  { authorization, webhook, read }: LoadRequest,
): { head: string; tail: string; status: string } {
  if (read !== undefined)
    return { head: `GET ${read} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-Id: `, tail: '\r\n\r\n', status: '200' };
  const head = (path: string, length: number): string =>
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n`;
  if (webhook !== undefined) {
    const { path, body, headers, idHeader, expectedStatus } = webhook;
    const lines = Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
    return {
      head: `${head(path, Buffer.byteLength(body))}${lines}${idHeader}: `,
      tail: `\r\n\r\n${body}`,
      status: String(expectedStatus),
    };
  }
  const login = authorization === undefined ? '' : `Authorization: ${authorization}\r\n`;
  return {
    head: `${head(`/streams/${stream}`, EVENT_BYTES)}ES-EventType: OrderPlaced\r\n${login}ES-EventId: `,
    tail: `\r\n\r\n${EVENT_JSON}`,
    status: '201',
  };
}

/** One connection until `until`; resolves when its last answer has come. */
function drive(socket: Socket, stream: string, until: number, request: LoadRequest, tally: Tally): Promise<void> {
  const { pauseMs = 0 } = request;
  const { head, tail, status } = requestText(stream, request);
  return new Promise((resolve, reject) => {
    let pending: Buffer = Buffer.alloc(0);
    let sent = 0;
    const send = (): void => {
      sent = performance.now();
      socket.write(head + randomUUID() + tail, 'latin1');
    };
    socket.on('data', (chunk: Buffer) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const length = answerLength(pending);
      if (length < 0) return;
      const now = performance.now();
      tally.latencies.push(now - sent);
      if (pending.toString('latin1', 9, 12) !== status) {
        tally.failures++;
        if (tally.firstFailure === '') tally.firstFailure = pending.toString('latin1', 0, 600);
      }
      pending = pending.subarray(length);
      if (now < until) {
        if (pauseMs > 0) setTimeout(send, pauseMs);
        else send();
      } else {
        socket.removeAllListeners();
        socket.destroy();
        resolve();
      }
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('The server closed a connection.')));
    send();
  });
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.setNoDelay(true);
    socket.once('error', reject);
  });
}

async function load(request: LoadRequest): Promise<LoadResult> {
  const { port, connections, ms } = request;
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)));
  const tally: Tally = { latencies: [], failures: 0, firstFailure: '' };
  const cpu = process.cpuUsage();
  const begin = performance.now();
  await Promise.all(
    sockets.map((socket, i) => drive(socket, `bench-http-${String(i).padStart(2, '0')}`, begin + ms, request, tally)),
  );
  const elapsed = performance.now() - begin;
  const used = process.cpuUsage(cpu);
  const sorted = Float64Array.from(tally.latencies).sort();
  return {
    requestsPerSecond: ((sorted.length - tally.failures) / elapsed) * 1000,
    p50Ms: sorted[Math.floor(sorted.length * 0.5)]!,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)]!,
    maxMs: sorted.at(-1)!,
    failures: tally.failures,
    firstFailure: tally.firstFailure,
    cpu: (used.user + used.system) / 1000 / elapsed,
  };
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await load(JSON.parse(line) as LoadRequest))}\n`);
  }
}
