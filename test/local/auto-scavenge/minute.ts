import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusDocument } from '../../../local/auto-scavenge/client.ts';
import { startedProcess } from '../spawn.ts';

/**
 * A schedule of every minute on a real node, outside of the suite since it takes some minutes: the cycle begins by itself, is
 * paused in the middle and resumed, goes on after the process was killed, and completes.
 * `node test/local/auto-scavenge/minute.ts`
 */

const STREAMS = 64;
const EVENTS_PER_STREAM = 40;
const EVENT_BYTES = 16_000;
const POLL_MS = 100;
const WAIT_MS_MAX = 150_000;

const folder = await mkdtemp(path.join(tmpdir(), 'skua-minute-'));
// Told a port of its own, the node is the same member after a restart.
const words = ['--db', path.join(folder, 'db'), '--disable-tls', '--chunk-size', '131072', '--node-port-advertise-as', '2113'];
const startMs = performance.now();
const headers = { authorization: `Basic ${btoa('ops:changeit')}`, 'content-type': 'application/json' };
const admin = { authorization: `Basic ${btoa('admin:changeit')}` };

function say(text: string): void {
  console.log(`${((performance.now() - startMs) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
}

async function call(url: string, method: string, route: string, body: string | null = null): Promise<Response> {
  const response = await fetch(`${url}/auto-scavenge/${route}`, { method, headers, body });
  if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${await response.text()}`);
  return response;
}

async function statusOf(url: string): Promise<StatusDocument> {
  return (await call(url, 'GET', 'status')).json() as Promise<StatusDocument>;
}

async function until(url: string, what: string, isReached: (status: StatusDocument) => boolean): Promise<StatusDocument> {
  const endMs = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const status = await statusOf(url);
    if (isReached(status)) {
      say(`${what}: ${JSON.stringify(status)}`);
      return status;
    }
    if (performance.now() > endMs) throw new Error(`Never: ${what}. ${JSON.stringify(status)}`);
    await sleep(POLL_MS);
  }
}

async function fill(url: string): Promise<void> {
  const data = 'x'.repeat(EVENT_BYTES);
  for (let event = 0; event < EVENTS_PER_STREAM; event++) {
    await Promise.all(Array.from({ length: STREAMS }, async (_, stream) => {
      const body = JSON.stringify([{ eventId: randomUUID(), eventType: 'made', data: { event, data } }]);
      const { status } = await fetch(`${url}/streams/load-${stream}`, { method: 'POST', headers: { ...admin, 'content-type': 'application/vnd.eventstore.events+json' }, body });
      if (status !== 201) throw new Error(`append: ${status}`);
    }));
  }
  for (let stream = 0; stream < STREAMS; stream += 2) await fetch(`${url}/streams/load-${stream}`, { method: 'DELETE', headers: admin });
}

const isRunning = ({ cycle }: StatusDocument) => cycle?.nodes.some(({ state }) => state === 'running') === true;

try {
  let node = await startedProcess(words);
  await fill(node.url);
  say('filled');
  await call(node.url, 'POST', 'configure', '{"schedule":"* * * * *"}');
  await until(node.url, 'waiting', ({ state }) => state === 'Waiting');
  const { cycle } = await until(node.url, 'running', isRunning);
  const id = cycle!.clusterScavengeId;
  const pause = await call(node.url, 'POST', 'pause');
  say(`pause answered ${pause.status}`);
  await until(node.url, 'paused', ({ state }) => state === 'Paused');
  await call(node.url, 'POST', 'resume');
  await until(node.url, 'running again', (status) => isRunning(status) || status.cycle === null);
  node.process.child.kill('SIGKILL');
  await node.process.ended;
  say('killed');
  node = await startedProcess(words);
  const { lastCycle } = await until(node.url, 'completed', (status) => status.lastCycle?.clusterScavengeId === id);
  say(`results: ${lastCycle!.nodes.map(({ node: each, result }) => `${each} ${result}`).join(', ')}`);
  for (const line of node.process.logged().filter(({ msg }) => /auto.?scavenge/i.test(String(msg)))) say(`log: ${String(line['msg'])}`);
  const { code } = await node.stop();
  if (code !== 0) throw new Error(`The node ended with ${code}.`);
  say('done');
} finally {
  await rm(folder, { recursive: true });
}
