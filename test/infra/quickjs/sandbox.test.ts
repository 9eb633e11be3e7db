import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { RoutingResult } from '../../../core/ports/routing-sandbox.ts';
import { PAUSE_MS, TIMEOUTS_IN_ROW_MAX } from '../../../infra/quickjs/connector-queue.ts';
import type { ToWorker } from '../../../infra/quickjs/script-messages.ts';
import type { QuickJsSandbox } from '../../../infra/quickjs/quickjs-sandbox.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { LIMITS, callOf, quickJsSandbox } from './sandbox-for-tests.ts';
import { bySize, IS_LONG_RUN, RUNS_FIXED } from '../../support/run-size.ts';

const GOOD = "const route = () => ({ stream: 's' });";
const SPINNING = 'function route() { for (;;); }';
/** Nothing inside the engine can interrupt it. */
const STUCK = 'function route() { return [].indexOf.call({ length: 2 ** 53 - 1 }, 1); }';
const WORKERS_AND_SPARE = 3;

let sandbox: QuickJsSandbox;
afterEach(() => sandbox.close());

const kinds = (results: readonly RoutingResult[]) => results.map(({ kind }) => kind);
const calls = (count: number, script: string, connectorId = 'shop') =>
  Array.from({ length: count }, () => callOf(sandbox, script, { connectorId }));

/** Ways of not ending. */
const SPINS: readonly [string, string] = ['spin', SPINNING];
const STICKS: readonly [string, string] = ['cannot be interrupted', STUCK];

if (RUNS_FIXED)
  describe('messages', () => {
    test('calls of a connector that come in one turn of the event loop go to a worker in one message', async () => {
      sandbox = quickJsSandbox();
      await Promise.all(calls(2, GOOD));
      const posted = vi.spyOn(Worker.prototype, 'postMessage');
      try {
        expect(kinds(await Promise.all(calls(8, GOOD)))).toEqual(Array.from({ length: 8 }, () => 'routed'));
        // A worker that was kept from its work gives some of them back, for another message.
        expect((posted.mock.calls[0]![0] as ToWorker & { kind: 'run' }).runs.length).toBe(8);
      } finally {
        posted.mockRestore();
      }
    });
  });

describe('pauses', () => {
  test.each(bySize([SPINS], [STICKS], [SPINS, STICKS]))(
    'after three timeouts in a row a connector gets nothing for a second, then one try at a time: scripts that %s',
    async (_, script) => {
      const clock = new ManualClock();
      sandbox = quickJsSandbox({ timeoutMs: 200 }, { clock });
      expect(kinds(await Promise.all(calls(5, script)))).toEqual([
        'timed-out',
        'timed-out',
        'timed-out',
        'unavailable',
        'unavailable',
      ]);
      await clock.advance(PAUSE_MS - 1);
      expect(await callOf(sandbox, GOOD)).toEqual({ kind: 'unavailable', reason: expect.any(String), retryAfterMs: 1 });
      expect(await callOf(sandbox, GOOD, { connectorId: 'other' })).toMatchObject({ kind: 'routed' });
      expect(await sandbox.check(GOOD)).toBeNull();
      await clock.advance(1);
      expect(kinds(await Promise.all(calls(2, script)))).toEqual(['timed-out', 'unavailable']);
      await clock.advance(PAUSE_MS);
      expect(await callOf(sandbox, GOOD)).toMatchObject({ kind: 'routed' });
      expect(kinds(await Promise.all(calls(TIMEOUTS_IN_ROW_MAX, script)))).toEqual([
        'timed-out',
        'timed-out',
        'timed-out',
      ]);
    },
  );

  if (IS_LONG_RUN)
    test.each([
      ['spin', 'for (;;);'],
      ['cannot be interrupted', '[].indexOf.call({ length: 2 ** 53 - 1 }, 1);'],
    ])('timeouts that are not in a row are no reason: scripts that %s', async (_, loop) => {
      sandbox = quickJsSandbox({ timeoutMs: 200 });
      const script = `function route({ body }) { if (body) ${loop} return null; }`;
      const results = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          callOf(sandbox, script, { requestJson: JSON.stringify({ body: i % 3 > 0 }) }),
        ),
      );
      expect(kinds(results)).toEqual(Array.from({ length: 12 }, (_, i) => (i % 3 > 0 ? 'timed-out' : 'skipped')));
    });

  if (IS_LONG_RUN)
    test('checks are never paused', async () => {
      sandbox = quickJsSandbox({ timeoutMs: 200 });
      for (let i = 0; i < TIMEOUTS_IN_ROW_MAX + 1; i++) expect(await sandbox.check('for (;;);')).toContain('200 ms');
      expect(await sandbox.check(GOOD)).toBeNull();
    });
});

describe('fairness', () => {
  if (RUNS_FIXED)
    test.each([SPINS, STICKS])(
      'many calls of one connector take one worker, however they %s; another connector never waits for them',
      async (_, script) => {
        // None of them ends within the time of the test, however slow the machine is.
        sandbox = quickJsSandbox({ timeoutMs: 300_000 });
        let ended = 0;
        const bad = calls(8, script, 'bad').map((call) =>
          call.then(
            () => {
              ended++;
            },
            () => {},
          ),
        );
        for (let i = 0; i < 200; i++)
          expect(await callOf(sandbox, GOOD, { connectorId: 'good' })).toMatchObject({ kind: 'routed' });
        expect(ended).toBe(0);
        await sandbox.close();
        await Promise.all(bad);
      },
    );

  if (IS_LONG_RUN)
    test('several connectors that are known to spin leave a worker to the others', async () => {
      sandbox = quickJsSandbox({ timeoutMs: 500 });
      const names = ['bad1', 'bad2', 'bad3'];
      await Promise.all(names.flatMap((name) => calls(1, SPINNING, name)));
      let ended = 0;
      const bad = names
        .flatMap((name) => calls(2, SPINNING, name))
        .map((call) =>
          call.then(
            () => {
              ended++;
            },
            () => {},
          ),
        );
      // Were both workers with those that spin, each of these would wait until one of them ends; more than these few
      // could take as long on a slow machine.
      for (let i = 0; i < 4; i++) await callOf(sandbox, GOOD, { connectorId: 'good' });
      expect(ended).toBeLessThan(2);
      await sandbox.close();
      await Promise.all(bad);
    });

  if (RUNS_FIXED)
    test('connectors take turns: a long queue of one does not hold up the other', async () => {
      sandbox = quickJsSandbox({ timeoutMs: 1000 });
      const order: string[] = [];
      const busy = 'function route() { for (let i = 0; i < 1e5; i++); return null; }';
      const run = (name: string, count: number) =>
        calls(count, busy, name).map((call) =>
          call.then(() => {
            order.push(name);
          }),
        );
      // Checks and these two share two workers, so at least two of the three take turns.
      const checks = Array.from({ length: 30 }, (_, i) =>
        sandbox.check(`for (let i = 0; i < 1e5; i++); function route() {} // ${i}`).then(() => {
          order.push('check');
        }),
      );
      await Promise.all([...run('a', 60), ...run('b', 60), ...checks]);
      for (const name of ['a', 'b', 'check']) expect(order.indexOf(name)).toBeLessThan(90);
    });
});

if (RUNS_FIXED)
  describe('limits', () => {
    test('waiting calls are bounded, of one connector and of all', async () => {
      sandbox = quickJsSandbox({ timeoutMs: 3000, callsQueuedMax: 30, connectorCallsQueuedMax: 20 });
      const perConnector = await Promise.all([...calls(21, GOOD, 'a'), ...calls(11, GOOD, 'b')]);
      expect(kinds(perConnector)).toEqual([
        ...Array.from({ length: 20 }, () => 'routed'),
        'unavailable',
        ...Array.from({ length: 10 }, () => 'routed'),
        'unavailable',
      ]);
      expect(perConnector[20]).toMatchObject({ retryAfterMs: expect.any(Number) });
      expect(kinds(await Promise.all(calls(20, GOOD, 'a')))).not.toContain('unavailable');
    });

    test('memory and stack follow the limits', async () => {
      const deep =
        'let depth = 0; function f() { depth++; f(); } function route() { try { f(); } catch {} return { stream: String(depth) }; }';
      const large = 'function route() { return { stream: String(new Uint8Array(8e6).length) }; }';
      const depths: number[] = [];
      for (const [stackBytesMax, memoryBytesMax] of [
        [64 * 1024, 4e6],
        [256 * 1024, 16e6],
      ] as const) {
        sandbox = quickJsSandbox({ stackBytesMax, memoryBytesMax });
        depths.push(Number(((await callOf(sandbox, deep)) as { stream: string }).stream));
        expect((await callOf(sandbox, large)).kind).toBe(memoryBytesMax > 8e6 ? 'routed' : 'failed');
        await sandbox.close();
      }
      expect(depths[0]).toBeGreaterThan(50);
      expect(depths[1]! / depths[0]!).toBeGreaterThan(3);
    });
  });

if (RUNS_FIXED)
  describe('threads', () => {
    test('a call during which the thread dies has failed; those behind it run in another thread', async () => {
      sandbox = quickJsSandbox({}, { workerUrl: new URL('./dying-worker.ts', import.meta.url) });
      const results = await Promise.all(
        ['live', 'live', 'die', 'live'].map((body) => callOf(sandbox, GOOD, { requestJson: body })),
      );
      expect(kinds(results)).toEqual(['skipped', 'skipped', 'failed', 'skipped']);
      expect(results[2]).toMatchObject({ reason: expect.stringContaining('ended') });
      const deaths = await Promise.all(Array.from({ length: 4 }, () => callOf(sandbox, GOOD, { requestJson: 'die' })));
      expect(kinds(deaths)).toEqual(['failed', 'failed', 'failed', 'unavailable']);
    });

    test('a thread that cannot start is no call that waits for ever', async () => {
      sandbox = quickJsSandbox({}, { workerUrl: pathToFileURL('/nowhere/worker.mjs') });
      expect(await callOf(sandbox, GOOD)).toMatchObject({
        kind: 'unavailable',
        reason: expect.stringContaining('thread'),
      });
      expect(await callOf(sandbox, GOOD)).toMatchObject({ kind: 'unavailable' });
      await sandbox.close();
      sandbox = quickJsSandbox({}, { engineUrl: pathToFileURL('/nowhere/engine.wasm') });
      expect(await callOf(sandbox, GOOD)).toMatchObject({
        kind: 'unavailable',
        reason: expect.stringContaining('engine.wasm'),
      });
    });

    test('there are none before the first call, one more than workers after it, and none after close', async () => {
      sandbox = quickJsSandbox();
      expect(sandbox.threads).toBe(0);
      await callOf(sandbox, GOOD);
      expect(sandbox.threads).toBe(WORKERS_AND_SPARE);
      const stuck = calls(3, STUCK).map((call) => expect(call).rejects.toMatchObject({ code: 'aborted' }));
      await sandbox.close();
      await Promise.all(stuck);
      expect(sandbox.threads).toBe(0);
    });

    test('a worker that was bundled needs nothing beside it', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'skua-sandbox-'));
      await build({
        entryPoints: [fileURLToPath(new URL('../../../infra/quickjs/script-worker.ts', import.meta.url))],
        outfile: join(folder, 'worker.mjs'),
        bundle: true,
        platform: 'node',
        format: 'esm',
        target: 'node24',
        logLevel: 'silent',
      });
      sandbox = quickJsSandbox({}, { workerUrl: pathToFileURL(join(folder, 'worker.mjs')) });
      expect(await callOf(sandbox, GOOD)).toMatchObject({ kind: 'routed' });
      await sandbox.close();
      await rm(folder, { recursive: true });
    });

    test('threads without work keep no process alive', async () => {
      const program = `import { QuickJsSandbox } from ${JSON.stringify(new URL('../../../infra/quickjs/quickjs-sandbox.ts', import.meta.url).href)};
      const sandbox = new QuickJsSandbox({ limits: ${JSON.stringify(LIMITS)} });
      console.log(await sandbox.check('function route() {}'));`;
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
      expect(stdout).toBe('null\n');
    });

    test('more scripts than a thread keeps', async () => {
      sandbox = quickJsSandbox();
      for (let round = 0; round < 2; round++) {
        for (let i = 0; i < 150; i++)
          expect(
            await callOf(sandbox, `const route = () => ({ stream: 'of ${i}' });`, { connectorId: `c${i}` }),
          ).toMatchObject({ stream: `of ${i}` });
      }
    });
  });
