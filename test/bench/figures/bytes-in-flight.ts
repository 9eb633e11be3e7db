import { execFileSync } from 'node:child_process';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { NODE_FLAGS, startServer } from '../child.ts';
import type { Server } from '../child.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';

const MIB = 1_048_576;
const READERS = 64;
const UPLOADS = 64;
const UPLOAD_BYTES = 30_000_000;
const EVENT_BYTES = 4_194_304;
/** What all replies, and all bodies, may hold; a node's own defaults are twice as much. */
const TOTAL_BYTES = 128 * MIB;
const SLACK_BYTES = 64 * MIB;
const RSS_EVERY_MS = 250;
/** The node takes so many windows at most until it stands still. */
const WINDOWS_MAX = 20;

export const bytesInFlight: Figure = {
  name: 'bytes-in-flight',
  how: `A node whose replies and whose request bodies may hold ${TOTAL_BYTES / MIB} MiB each. ${READERS} clients ask for a stream of events of 4 MiB as server-sent events and take nothing of it; ${UPLOADS} more send 30 MB batches but for the last byte, as fast as the node takes them. Resident size: how far it rises at most over that of a node that has read those events once, beside the two totals and ${SLACK_BYTES / MIB} MiB. Small reads: the 99th percentile of one client that reads an event of 100 bytes again and again over a kept connection meanwhile, beside the same before the others came.`,
  async run(settings) {
    const node = await startServer([
      ...NODE_FLAGS,
      'local/main.ts',
      'start',
      '--db',
      join(settings.folder, 'bytes-in-flight'),
      '--node-port',
      '0',
      '--insecure',
      '--max-reply-bytes-in-flight',
      `${TOTAL_BYTES / MIB}MiB`,
      '--max-upload-bytes-in-flight',
      `${TOTAL_BYTES / MIB}MiB`,
      '--client-stall-timeout',
      '3600',
    ]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets: Socket[] = [];
    try {
      await write(node, agent, 'small', 0, 100);
      for (let n = 0; n < (settings.isSmoke ? 4 : 24); n++) await write(node, agent, 'big', n, EVENT_BYTES);
      // The cache of blocks has a limit of its own, and is full before the others come.
      for (let n = 0; n < (settings.isSmoke ? 4 : 24); n++) await ask(node, agent, 'GET', `/streams/big/${n}`);
      const ms = settings.isSmoke ? 300 : 3_000;
      await smallReads(node, agent, settings.isSmoke ? 100 : 2_000);
      const idle = await smallReads(node, agent, ms);
      for (let i = 0; i < READERS; i++) sockets.push(standStill(node));
      for (let i = 0; i < UPLOADS; i++) sockets.push(upload(node));
      // Whoever comes first is served first: what is measured is how it is when everything is held.
      let before = await smallReads(node, agent, ms / 4);
      for (let sent = -1, windows = 0; sent !== sentBytes(sockets) && windows < WINDOWS_MAX; windows++) {
        sent = sentBytes(sockets);
        before = worse(before, await smallReads(node, agent, ms / 4));
      }
      const beside = await smallReads(node, agent, ms);
      const raised = Math.max(before.rssBytes, beside.rssBytes) - idle.rssBytes;
      return [
        row(
          'resident size that stalled readers and uploads take',
          'MiB',
          { limit: [(2 * TOTAL_BYTES + SLACK_BYTES) / MIB], ours: [raised / MIB] },
          { kind: 'below', value: 1 },
        ),
        row(
          'p99 of a small read beside them',
          'ms',
          { limit: [idle.p99Ms], ours: [beside.p99Ms] },
          { kind: 'at most', value: 3 },
          [
            `p50 ${beside.p50Ms.toFixed(2)} ms (before ${idle.p50Ms.toFixed(2)} ms), slowest ${beside.slowestMs.toFixed(1)} ms (before ${idle.slowestMs.toFixed(1)} ms)`,
            `while they came: p99 ${before.p99Ms.toFixed(2)} ms, slowest ${before.slowestMs.toFixed(1)} ms`,
          ],
        ),
      ];
    } finally {
      for (const socket of sockets) socket.destroy();
      agent.destroy();
      await node.stop();
    }
  },
};

interface Reads {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
  /** Largest resident size meanwhile. */
  readonly rssBytes: number;
}

function worse(a: Reads, b: Reads): Reads {
  return {
    p50Ms: Math.max(a.p50Ms, b.p50Ms),
    p99Ms: Math.max(a.p99Ms, b.p99Ms),
    slowestMs: Math.max(a.slowestMs, b.slowestMs),
    rssBytes: Math.max(a.rssBytes, b.rssBytes),
  };
}

function sentBytes(sockets: readonly Socket[]): number {
  return sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0);
}

async function smallReads(node: Server, agent: Agent, ms: number): Promise<Reads> {
  const times: number[] = [];
  let rssBytes = 0;
  let rssAtMs = 0;
  for (const startMs = performance.now(); times.length === 0 || performance.now() - startMs < ms;) {
    const sentMs = performance.now();
    if (sentMs - rssAtMs > RSS_EVERY_MS) {
      rssBytes = Math.max(rssBytes, residentBytes(node));
      rssAtMs = performance.now();
      continue;
    }
    const status = await ask(node, agent, 'GET', '/streams/small/0');
    if (status !== 200) throw new Error(`A small read was answered with ${status}.`);
    times.push(performance.now() - sentMs);
  }
  times.sort((a, b) => a - b);
  return {
    p50Ms: times[times.length >> 1]!,
    p99Ms: times[Math.floor(times.length * 0.99)]!,
    slowestMs: times.at(-1)!,
    rssBytes,
  };
}

function residentBytes({ process: { pid } }: Server): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1_024;
}

async function write(node: Server, agent: Agent, stream: string, n: number, bytes: number): Promise<void> {
  const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
  const status = await ask(
    node,
    agent,
    'POST',
    `/streams/${stream}`,
    { 'content-type': 'application/json', 'es-eventtype': 'made', 'es-eventid': id },
    `"${'x'.repeat(bytes - 2)}"`,
  );
  if (status !== 201) throw new Error(`An append was answered with ${status}.`);
}

function ask(
  { port }: Server,
  agent: Agent,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, agent, method, path, headers }, (reply) => {
      reply.resume();
      reply.on('end', () => resolve(reply.statusCode!));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

/** A reader that takes nothing. */
function standStill({ port }: Server): Socket {
  const socket = connect(port, '127.0.0.1', () =>
    socket.write('GET /streams/big HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n'),
  );
  socket.pause();
  return socket.on('error', () => {});
}

/** A client that sends all of its batch but for the last byte. */
function upload({ port }: Server): Socket {
  const piece = Buffer.alloc(65_536, 0x20);
  let left = UPLOAD_BYTES - 1;
  const send = () => {
    while (left > 0) {
      const part = piece.subarray(0, Math.min(left, piece.length));
      left -= part.length;
      if (!socket.write(part)) return;
    }
  };
  const socket = connect(port, '127.0.0.1', () => {
    socket.write(
      `POST /streams/uploads HTTP/1.1\r\nHost: x\r\nContent-Type: application/vnd.eventstore.events+json\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\n`,
    );
    send();
  });
  return socket.on('drain', send).on('error', () => {});
}
