import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { whileNoScavenge } from '../../../local/backup/pause-scavenge.ts';
import { NodeClient } from '../../../local/cli/node-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** Who stops scavenges for a backup sets them going again, whatever became of the backup. */

class NoWaits extends ManualClock {
  override sleep(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

let scavenge: string | null;
let auto: 'off' | 'Waiting' | 'InProgress' | 'Pausing' | 'Paused';
/** How often the status says Pausing before it says Paused. */
let pausing: number;
let startFails: number;
let stopAnswer: number;
let changes: string[];
let close: () => Promise<void>;
let node: NodeClient;
let told: string[];

beforeEach(async () => {
  [scavenge, auto, pausing, startFails, stopAnswer, changes, told] = [null, 'off', 0, 0, 200, [], []];
  const server = createServer((request, response) => {
    const json = (status: number, value: unknown) =>
      response
        .writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' })
        .end(JSON.stringify(value));
    if (request.method !== 'GET') changes.push(`${request.method} ${request.url}`);
    switch (`${request.method} ${request.url!.replace(/scavenge\/s\d/, 'scavenge/ID')}`) {
      case 'GET /auto-scavenge/enabled':
        return json(200, { enabled: auto !== 'off' });
      case 'GET /auto-scavenge/status':
        if (auto === 'Pausing' && pausing-- <= 0) auto = 'Paused';
        return json(200, { state: auto, schedule: null, timeUntilNextCycle: null });
      case 'POST /auto-scavenge/pause':
        auto = 'Pausing';
        return json(202, {});
      case 'POST /auto-scavenge/resume':
        auto = 'InProgress';
        return json(200, {});
      case 'GET /admin/scavenge/progress':
        return scavenge === null
          ? json(404, { code: 'scavenge_not_found', detail: 'None.' })
          : json(200, { scavengeId: scavenge });
      case 'DELETE /admin/scavenge/ID':
        if (stopAnswer === 200) scavenge = null;
        return stopAnswer === 200 ? json(200, 's1') : json(stopAnswer, { code: 'scavenge_not_found', detail: 'None.' });
      case 'POST /admin/scavenge':
        if (startFails-- > 0) return json(409, { code: 'scavenge_in_progress', detail: 'Running.', scavengeId: 's1' });
        scavenge = 's2';
        return json(200, { scavengeId: 's2' });
      default:
        return json(500, {});
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  node = new NodeClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {});
  close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
});
afterEach(() => close());

function run<T>(work: () => Promise<T>, signal = new AbortController().signal): Promise<T> {
  return whileNoScavenge({ node, clock: new NoWaits(), signal, tell: (message) => told.push(message) }, work);
}

test('nothing runs: nothing is changed', async () => {
  auto = 'Waiting';
  expect(await run(async () => 'done')).toBe('done');
  expect([changes, told]).toEqual([[], []]);
});

test('a running scavenge is stopped before the work and started after it, also when the work fails', async () => {
  for (const fails of [false, true]) {
    scavenge = 's1';
    changes.length = 0;
    const failure = new Error('no');
    const ran = run(async () => {
      expect(changes).toEqual(['DELETE /admin/scavenge/s1']);
      if (fails) throw failure;
    });
    await (fails ? expect(ran).rejects.toBe(failure) : ran);
    expect(changes).toEqual(['DELETE /admin/scavenge/s1', 'POST /admin/scavenge']);
  }
  expect(told).toContain('The scavenge resumed.');
});

test('a cycle is paused until it says so, and resumed after an interruption', async () => {
  auto = 'InProgress';
  pausing = 3;
  const stop = new AbortController();
  const ran = run(async () => {
    expect(auto).toBe('Paused');
    stop.abort(new Error('stop'));
    stop.signal.throwIfAborted();
  }, stop.signal);
  await expect(ran).rejects.toThrow('stop');
  expect(changes).toEqual(['POST /auto-scavenge/pause', 'POST /auto-scavenge/resume']);
  expect(auto).toBe('InProgress');
});

test('a run that came to its end by itself is not started again', async () => {
  scavenge = 's1';
  stopAnswer = 404;
  await run(async () => {});
  expect(changes).toEqual(['DELETE /admin/scavenge/s1']);
});

test('the start waits for a run that is still being stopped, and says what to do when it never succeeds', async () => {
  scavenge = 's1';
  startFails = 3;
  await run(async () => {});
  expect(changes.filter((change) => change.startsWith('POST'))).toHaveLength(4);
  scavenge = 's1';
  startFails = 1_000;
  changes.length = 0;
  expect(await run(async () => 'done')).toBe('done');
  expect(changes.filter((change) => change.startsWith('POST'))).toHaveLength(30);
  expect(told.at(-1)).toContain('skua scavenge start');
});
