import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** Appends at one member and watches another one show it. */
export interface LagRequest {
  readonly leader: number;
  readonly follower: number;
  readonly ms: number;
}
/** Milliseconds from the answer of an append to the event at the other member. */
export interface LagResult {
  readonly probes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Between two probes, in milliseconds. */
const PAUSE_MS = 5;
/** An event that does not come within this time counts as come then. */
const WAIT_MS_MAX = 10_000;
const agent = new Agent({ keepAlive: true });

function append(port: number, stream: string, id: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'es-eventtype': 'probe',
      'es-eventid': id,
      'content-length': '2',
    };
    const asked = request(
      { host: '127.0.0.1', port, method: 'POST', path: `/streams/${stream}`, agent, headers },
      (response) => {
        response.resume();
        response.on('end', () =>
          response.statusCode === 201
            ? resolve(performance.now())
            : reject(new Error(`The probe was answered with ${response.statusCode}.`)),
        );
      },
    );
    asked.on('error', reject);
    asked.end('{}');
  });
}

async function measure({ leader, follower, ms }: LagRequest): Promise<LagResult> {
  const stream = `lag-${randomUUID()}`;
  const seen = new Map<string, (atMs: number) => void>();
  const first = randomUUID();
  const watching = new Promise<void>((resolve) => {
    seen.set(first, () => resolve());
  });
  await append(leader, stream, first);
  const follow = (): void => {
    const asked = request(
      {
        host: '127.0.0.1',
        port: follower,
        path: `/streams/${stream}`,
        agent: false,
        headers: { accept: 'text/event-stream' },
      },
      (response) => {
        // Not there yet: the stream itself lags.
        if (response.statusCode !== 200) {
          response.resume();
          response.on('end', () => {
            setTimeout(follow, PAUSE_MS);
          });
          return;
        }
        let rest = '';
        response.setEncoding('utf8').on('data', (text: string) => {
          const now = performance.now();
          const lines = (rest + text).split('\n');
          rest = lines.pop()!;
          for (const line of lines) {
            const id = /"eventId":"([0-9a-f-]+)"/.exec(line)?.[1];
            if (id !== undefined) seen.get(id)?.(now);
          }
        });
        ending.signal.addEventListener('abort', () => asked.destroy());
      },
    );
    asked.on('error', () => {});
    asked.end();
  };
  const ending = new AbortController();
  follow();
  await watching;
  const lags: number[] = [];
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; await sleep(PAUSE_MS)) {
    const id = randomUUID();
    const shown = new Promise<number>((resolve) => {
      seen.set(id, resolve);
    });
    const answered = await append(leader, stream, id);
    const at = await Promise.race([shown, sleep(WAIT_MS_MAX, answered + WAIT_MS_MAX)]);
    seen.delete(id);
    lags.push(Math.max(0, at - answered));
  }
  ending.abort();
  const sorted = lags.toSorted((a, b) => a - b);
  return {
    probes: sorted.length,
    p50Ms: sorted[Math.floor(sorted.length * 0.5)]!,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)]!,
    maxMs: sorted.at(-1)!,
  };
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await measure(JSON.parse(line) as LagRequest))}\n`);
}
