import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { errorOf, startBench, text } from './tools.ts';
import type { Bench } from './tools.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const busy = (headers?: Record<string, string>) => ({
  action: { status: 503, code: 'SlowDown', ...(headers !== undefined && { headers }) },
});
const failed = { action: { status: 500, code: 'InternalError' } };
const dropped = { action: 'drop' } as const;
const lost = { action: 'drop', moment: 'after' } as const;
const cut = { action: 'truncate' } as const;

test('what passes is not noticed: busy, failed, dropped before and after its effect', async () => {
  bench.s3.faultNext(busy(), failed, dropped, lost);
  await bench.objects.put('k', text('value'));
  bench.s3.faultNext(dropped, busy());
  expect(await bench.objects.get('k')).toEqual(text('value'));
  bench.s3.faultNext(failed, lost);
  expect(await bench.objects.head('k')).toMatchObject({ sizeBytes: 5 });
  bench.s3.faultNext(dropped, cut, busy());
  expect((await bench.objects.list('')).objects).toHaveLength(1);
  bench.s3.faultNext(lost, failed);
  await bench.objects.remove(['k']);
  expect(bench.s3.keys('bucket')).toEqual([]);
});

test('a body that ends early is read again, and never taken for the object', async () => {
  await bench.objects.put('k', text('0123456789'));
  bench.s3.faultNext(cut, cut);
  expect(await bench.objects.get('k')).toEqual(text('0123456789'));
  bench.s3.faultWhen(() => cut);
  expect((await errorOf(bench.objects.get('k'))).code).toBe('storage_unreachable');
});

test('a body that does not fit its checksum is read again, and never taken for the object', async () => {
  vi.stubEnv('AWS_RESPONSE_CHECKSUM_VALIDATION', 'WHEN_SUPPORTED');
  const objects = await bench.open();
  vi.unstubAllEnvs();
  await objects.put('k', text('right'));
  const damaged = {
    status: 200,
    headers: { 'x-amz-checksum-crc32': 'AAAAAA==', 'content-length': '5' },
    body: 'wrong',
  };
  let left = 2;
  bench.s3.replyWhen(() => (left-- > 0 ? damaged : undefined));
  expect(await objects.get('k')).toEqual(text('right'));
  bench.s3.replyWhen(() => damaged);
  const error = await errorOf(objects.get('k'));
  expect(error.code).toBe('io_error');
  expect(error.message).toMatch(/damaged on its way/);
});

test('waits double, are longer for a busy server, and end with the attempts', async () => {
  bench.s3.faultWhen(() => failed);
  await errorOf(bench.objects.get('k'));
  expect(bench.clock.sleeps).toEqual([100, 200, 400, 800, 1_600]);
  bench.clock.sleeps.length = 0;
  bench.s3.faultWhen(() => busy());
  await errorOf(bench.objects.get('k'));
  expect(bench.clock.sleeps).toEqual([500, 1_000, 2_000, 4_000, 8_000]);
});

test('waits are spread by chance, from half to all', async () => {
  const objects = await bench.open({}, { random: () => 0 });
  bench.s3.faultWhen(() => failed);
  await errorOf(objects.get('k'));
  expect(bench.clock.sleeps).toEqual([50, 100, 200, 400, 800]);
});

test('no wait is shorter than the server asked for, and one beyond the time left is not begun', async () => {
  bench.s3.faultNext(busy({ 'retry-after': '7' }));
  await bench.objects.put('k', text('x'));
  expect(bench.clock.sleeps).toEqual([7_000]);
  bench.s3.faultWhen(() => busy({ 'retry-after': '25' }));
  expect((await errorOf(bench.objects.put('k', text('x')))).code).toBe('storage_throttled');
  expect(bench.clock.sleeps).toEqual([7_000, 25_000, 25_000]);
});

test('a create that succeeded or lost is told as it is', async () => {
  expect(await bench.objects.create('k', text('1'))).toBe('created');
  expect(await bench.objects.create('k', text('2'))).toBe('exists');
  expect(bench.s3.requests.map(({ headers }) => headers['if-none-match'])).toEqual(['*', '*']);
});

test.each([
  ['409', { action: { status: 409, code: 'ConditionalRequestConflict' } }, false],
  ['500', failed, false],
  ['500 after the effect', { ...failed, moment: 'after' as const }, true],
  ['503', busy(), false],
  ['504', { action: { status: 504, code: 'GatewayTimeout' } }, false],
  ['429', { action: { status: 429, code: 'TooManyRequests' } }, false],
  ['408', { action: { status: 408, code: 'RequestTimeout' } }, false],
  ['a dropped connection', dropped, false],
  ['a lost reply', lost, true],
])('a create that ends with %s is undecided after one request', async (_, fault, hasEffect) => {
  bench.s3.faultNext(fault);
  const error = await errorOf(bench.objects.create('k', text('mine')));
  expect(error.code).toBe('outcome_unknown');
  expect(error.data['key']).toBe('k');
  expect(bench.s3.requests).toHaveLength(1);
  expect(bench.clock.sleeps).toEqual([]);
  expect(bench.s3.keys('bucket')).toEqual(hasEffect ? ['p/k'] : []);
  // The way out that the contract names.
  expect(await bench.objects.create('k', text('mine'))).toBe(hasEffect ? 'exists' : 'created');
  expect(await bench.objects.get('k')).toEqual(text('mine'));
});

test('a create that the server refuses is definite', async () => {
  for (const [status, code, expected] of [
    [403, 'AccessDenied', 'storage_denied'],
    [507, 'InsufficientStorage', 'disk_full'],
    [501, 'NotImplemented', 'io_error'],
    [301, 'PermanentRedirect', 'wrong_region'],
  ] as const) {
    bench.s3.faultNext({ action: { status, code } });
    expect((await errorOf(bench.objects.create('k', text('x')))).code).toBe(expected);
  }
});

test('a signal ends requests that are under way, and the waits between them', async () => {
  const arrived = Promise.withResolvers<void>();
  bench.s3.faultWhen(() => {
    arrived.resolve();
    return { action: 'stall' };
  });
  const ending = new AbortController();
  const { signal } = ending;
  const works = [
    bench.objects.get('k', { signal }),
    bench.objects.head('k', signal),
    bench.objects.put('k', text('x'), signal),
    bench.objects.list('', { signal }),
    bench.objects.remove(['a', 'b'], signal),
  ];
  const errors = works.map((work) => errorOf(work));
  const creating = errorOf(bench.objects.create('c', text('x'), signal));
  await arrived.promise;
  while (bench.s3.requests.length < 6)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  ending.abort();
  for (const error of errors) expect((await error).code).toBe('aborted');
  expect((await creating).code).toBe('outcome_unknown');
  expect((await creating).data['reason']).toBe('aborted');
  expect(bench.s3.requests).toHaveLength(6);
});

test('a signal ends the reading of a body', async () => {
  await bench.objects.put('k', new Uint8Array(8_388_608));
  const ending = new AbortController();
  const gate = Promise.withResolvers<void>();
  bench.s3.faultWhen(() => ({ action: 'none', wait: gate.promise }));
  const reading = errorOf(bench.objects.get('k', { signal: ending.signal }));
  gate.resolve();
  setImmediate(() => ending.abort());
  expect((await reading).code).toBe('aborted');
});
