import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { EVENT_BYTES, EVENT_JSON } from '../events.ts';
import { answerLength } from './http-load.ts';

/**
 * Clients of a cluster while something happens to it: connections that are kept open, each asking, reading the answer,
 * and going on, also after answers that are no success and with another connection where one breaks. Nothing is sent
 * twice.
 */
export interface ClusterLoadRequest {
  readonly ports: readonly number[];
  /** Of all ports together; one append at a time each. */
  readonly connections: number;
  /** More, which append to a stream and delete it, in turns. */
  readonly deleting: number;
  readonly ms: number;
}
export interface ClusterLoadResult {
  readonly appends: number;
  readonly appended: number;
  readonly deletes: number;
  readonly deleted: number;
  /** Appends and deletions that were no success: how they were answered, and how often. */
  readonly failures: Readonly<Record<string, number>>;
  /** An answer of each kind, whole. */
  readonly examples: Readonly<Record<string, string>>;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Longest time between two appends that were acknowledged one after the other. */
  readonly longestGapMs: number;
}

interface Tally {
  appends: number;
  appended: number;
  deletes: number;
  deleted: number;
  readonly failures: Record<string, number>;
  readonly examples: Record<string, string>;
  readonly latencies: number[];
  readonly acknowledged: number[];
}

const RECONNECT_MS = 10;

class Connection {
  readonly #port: number;
  #socket: Socket | null = null;
  #pending: Buffer = Buffer.alloc(0);
  #answered: ((answer: string | null) => void) | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  /** The answer's head and body; null where the connection broke before it. */
  ask(text: string): Promise<string | null> {
    this.#socket ??= this.#open();
    const socket = this.#socket;
    return new Promise((resolve) => {
      this.#answered = resolve;
      socket.write(text, 'latin1');
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): Socket {
    const socket = connect(this.#port, '127.0.0.1');
    socket.setNoDelay(true);
    this.#pending = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
      const length = answerLength(this.#pending);
      if (length < 0) return;
      const text = this.#pending.toString('latin1', 0, length);
      this.#pending = this.#pending.subarray(length);
      this.#answer(text);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (this.#socket === socket) this.#socket = null;
      this.#answer(null);
    });
    return socket;
  }

  #answer(text: string | null): void {
    const answered = this.#answered;
    this.#answered = null;
    answered?.(text);
  }
}

function post(stream: string): string {
  return `POST /streams/${stream} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${EVENT_BYTES}\r\nES-EventType: OrderPlaced\r\nES-EventId: ${randomUUID()}\r\n\r\n${EVENT_JSON}`;
}

function fail(tally: Tally, what: string, answer: string | null): void {
  const how =
    answer === null ? 'no answer' : `${answer.slice(9, 12)} ${/"code":\s*"([a-z_]+)"/.exec(answer)?.[1] ?? ''}`.trim();
  const kind = `${what}: ${how}`;
  tally.failures[kind] = (tally.failures[kind] ?? 0) + 1;
  tally.examples[kind] ??= answer?.slice(answer.indexOf('\r\n\r\n') + 4) ?? '';
}

async function append(connection: Connection, stream: string, tally: Tally): Promise<boolean> {
  const sent = performance.now();
  tally.appends++;
  const answer = await connection.ask(post(stream));
  const now = performance.now();
  if (answer?.startsWith('HTTP/1.1 201') === true) {
    tally.appended++;
    tally.latencies.push(now - sent);
    tally.acknowledged.push(now);
    return true;
  }
  fail(tally, 'append', answer);
  await new Promise((resolve) => {
    setTimeout(resolve, RECONNECT_MS);
  });
  return false;
}

async function client(port: number, stream: string, isDeleting: boolean, untilMs: number, tally: Tally): Promise<void> {
  const connection = new Connection(port);
  while (performance.now() < untilMs) {
    const isThere = await append(connection, stream, tally);
    if (!isDeleting || !isThere) continue;
    tally.deletes++;
    const answer = await connection.ask(`DELETE /streams/${stream} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    if (answer?.startsWith('HTTP/1.1 204') === true) tally.deleted++;
    else fail(tally, 'delete', answer);
  }
  connection.close();
}

async function load({ ports, connections, deleting, ms }: ClusterLoadRequest): Promise<ClusterLoadResult> {
  const tally: Tally = {
    appends: 0,
    appended: 0,
    deletes: 0,
    deleted: 0,
    failures: {},
    examples: {},
    latencies: [],
    acknowledged: [],
  };
  const untilMs = performance.now() + ms;
  await Promise.all(
    Array.from({ length: connections + deleting }, (_, i) =>
      client(ports[i % ports.length]!, `bench-cluster-${i}`, i >= connections, untilMs, tally),
    ),
  );
  const sorted = Float64Array.from(tally.latencies).sort();
  const { acknowledged, latencies: _, ...counts } = tally;
  return {
    ...counts,
    p50Ms: sorted[Math.floor(sorted.length * 0.5)]!,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)]!,
    maxMs: sorted.at(-1)!,
    longestGapMs: acknowledged.reduce((longest, at, i) => Math.max(longest, at - (acknowledged[i - 1] ?? at)), 0),
  };
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await load(JSON.parse(line) as ClusterLoadRequest))}\n`);
}
