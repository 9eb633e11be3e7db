import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { QuickJsSandbox } from '../../../infra/quickjs/quickjs-sandbox.ts';
import { GRAFFITI, HOSTILE } from './hostile-scripts.ts';
import { LIMITS, callOf, quickJsSandbox } from './sandbox-for-tests.ts';
import { bySize, RUNS_FIXED } from '../../support/run-size.ts';

const GOOD =
  'let calls = 0; function route({ body }) { calls++; return { stream: `good-${body.n}-${calls}`, schema: String(Math.random()) }; }';
const WORKERS_AND_SPARE = 3;

describe('hostile scripts', () => {
  let sandbox: QuickJsSandbox;
  beforeAll(() => {
    sandbox = quickJsSandbox({ timeoutMs: 500 });
  });
  afterAll(() => sandbox.close());

  const good = (n: number, connectorId: string) =>
    callOf(sandbox, GOOD, { connectorId, requestJson: JSON.stringify({ body: { n } }) });

  test.each(
    HOSTILE.map((hostile, i) => [hostile.name, hostile, i] as const).filter(
      (_, i) => i % bySize(6, 6, 1) === bySize(0, 3, 0),
    ),
  )('%s', async (_, hostile, i) => {
    const before = await good(i, 'good');
    const connectorId = `hostile-${i}`;
    const result = await callOf(sandbox, hostile.script, { connectorId });
    expect(hostile.outcomes, JSON.stringify(result)).toContain(result.kind);
    if (result.kind === 'failed' && hostile.reason !== undefined) expect(result.reason).toMatch(hostile.reason);
    if (result.kind === 'routed') expect(result.stream).toBe(hostile.stream);
    // The next call of the same connector and that of another find everything as it was.
    const expected = {
      kind: 'routed',
      stream: `good-${i}-1`,
      schema: (before as { schema: string }).schema,
      cpuMs: expect.any(Number),
    };
    expect([await good(i, connectorId), await good(i, 'good')]).toEqual([expected, expected]);
    sandbox.release(connectorId);
  });

  if (RUNS_FIXED)
    test('what comes of them is the same again', async () => {
      const decided = HOSTILE.filter(({ outcomes }) => outcomes.length === 1 && outcomes[0] !== 'timed-out');
      const withoutTime = async ({ script }: { script: string }) => ({
        ...(await callOf(sandbox, script, { connectorId: 'again' })),
        cpuMs: 0,
      });
      for (const hostile of decided) expect(await withoutTime(hostile)).toEqual(await withoutTime(hostile));
    });

  if (RUNS_FIXED)
    test('request text that is deep, long or no JSON fails the call alone', async () => {
      const requests = [
        '['.repeat(1e6),
        '['.repeat(1e5) + ']'.repeat(1e5),
        '',
        '{',
        '{"a":1}}',
        '\u0000',
        `{"body":"${'x'.repeat(LIMITS.memoryBytesMax)}"}`,
      ];
      for (const requestJson of requests)
        expect((await callOf(sandbox, GOOD, { requestJson })).kind, requestJson.slice(0, 20)).toMatch(
          /failed|timed-out/,
        );
      expect(await good(1, 'shop')).toMatchObject({ stream: 'good-1-1' });
    });

  if (RUNS_FIXED)
    test('a request of a megabyte is routed, again and again, in an engine that grows and is replaced', async () => {
      await using patient = quickJsSandbox({ timeoutMs: 5000 });
      const requestJson = JSON.stringify({
        body: Array.from({ length: 20_000 }, (_, n) => ({ n, text: 'Zürich'.repeat(4) })),
      });
      for (let i = 0; i < 20; i++) {
        expect(
          await callOf(patient, 'const route = ({ body }) => ({ stream: `${body.length} ${body.at(-1).text}` });', {
            requestJson,
          }),
        ).toMatchObject({ kind: 'routed', stream: `20000 ${'Zürich'.repeat(4)}` });
      }
    });

  if (RUNS_FIXED)
    test('a top level that needs much memory is no harm to the call', async () => {
      await using patient = quickJsSandbox({ timeoutMs: 5000 });
      const script =
        'const table = Array.from({ length: 1e5 }, (_, i) => ({ i })); let calls = 0; const route = () => ({ stream: `${table.length} ${++calls}` });';
      for (let i = 0; i < 4; i++)
        expect(await callOf(patient, script)).toMatchObject({ kind: 'routed', stream: '100000 1' });
    });

  if (RUNS_FIXED)
    test('no call sees anything of the one before it', async () => {
      for (let n = 0; n < 20; n++) {
        expect(
          await callOf(sandbox, GRAFFITI, { connectorId: 'graffiti', requestJson: JSON.stringify({ body: { n } }) }),
        ).toMatchObject({ kind: 'routed', stream: `clean ${n}` });
      }
      const together = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          callOf(sandbox, GRAFFITI, { connectorId: 'graffiti', requestJson: JSON.stringify({ body: { n } }) }),
        ),
      );
      expect(together.map((result) => (result as { stream: string }).stream)).toEqual(
        Array.from({ length: 50 }, (_, n) => `clean ${n}`),
      );
    });

  if (RUNS_FIXED)
    test('threads that were ended have been replaced', async () => {
      while (sandbox.threads < WORKERS_AND_SPARE) await good(1, 'good');
      expect(sandbox.threads).toBe(WORKERS_AND_SPARE);
    });
});
