import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ErrorCode } from '../../../core/base/errors.ts';
import { s3Failure } from '../../../infra/s3/s3-errors.ts';
import { errorOf, SECRET, startBench, text } from './tools.ts';
import type { Bench } from './tools.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await bench.close();
});

interface Case {
  status: number;
  code: string;
  expected: ErrorCode;
  attempts: number;
  says: RegExp;
  headers?: Record<string, string>;
}

const cases: Case[] = [
  {
    status: 404,
    code: 'NoSuchBucket',
    expected: 'bucket_not_found',
    attempts: 1,
    says: /bucket bucket does not exist/,
  },
  { status: 403, code: 'AccessDenied', expected: 'storage_denied', attempts: 1, says: /credentials.*list the bucket/ },
  { status: 403, code: 'InvalidAccessKeyId', expected: 'storage_denied', attempts: 1, says: /AWS_ACCESS_KEY_ID/ },
  { status: 403, code: 'SignatureDoesNotMatch', expected: 'storage_denied', attempts: 1, says: /credentials/ },
  { status: 401, code: 'Unauthorized', expected: 'storage_denied', attempts: 1, says: /credentials/ },
  {
    status: 301,
    code: 'PermanentRedirect',
    expected: 'wrong_region',
    attempts: 1,
    says: /in eu-north-1\. Set that region/,
    headers: { 'x-amz-bucket-region': 'eu-north-1' },
  },
  {
    status: 400,
    code: 'AuthorizationHeaderMalformed',
    expected: 'wrong_region',
    attempts: 1,
    says: /not in the region us-east-1/,
  },
  {
    status: 400,
    code: 'IllegalLocationConstraintException',
    expected: 'wrong_region',
    attempts: 1,
    says: /AWS_REGION/,
  },
  { status: 403, code: 'RequestTimeTooSkewed', expected: 'clock_skewed', attempts: 1, says: /clock of this machine/ },
  { status: 507, code: 'InsufficientStorage', expected: 'disk_full', attempts: 1, says: /no space left/ },
  { status: 403, code: 'QuotaExceeded', expected: 'disk_full', attempts: 1, says: /quota/ },
  { status: 400, code: 'EntityTooLarge', expected: 'disk_full', attempts: 1, says: /no space left/ },
  { status: 503, code: 'SlowDown', expected: 'storage_throttled', attempts: 6, says: /too busy/ },
  { status: 429, code: 'TooManyRequests', expected: 'storage_throttled', attempts: 6, says: /too busy/ },
  { status: 500, code: 'InternalError', expected: 'io_error', attempts: 6, says: /InternalError, HTTP 500/ },
  { status: 502, code: 'BadGateway', expected: 'io_error', attempts: 6, says: /HTTP 502/ },
  { status: 409, code: 'OperationAborted', expected: 'io_error', attempts: 6, says: /Another request/ },
  { status: 400, code: 'RequestTimeout', expected: 'storage_unreachable', attempts: 6, says: /can't be reached/ },
  { status: 501, code: 'NotImplemented', expected: 'io_error', attempts: 1, says: /does not support a request/ },
  { status: 400, code: 'InvalidArgument', expected: 'io_error', attempts: 1, says: /InvalidArgument/ },
];

describe('each failure of the server has its own error', () => {
  test.each(cases)(
    '$status $code is $expected after $attempts attempts',
    async ({ status, code, expected, attempts, says, headers }) => {
      bench.s3.faultWhen(() => ({ action: { status, code, ...(headers !== undefined && { headers }) } }));
      for (const work of [
        () => bench.objects.get('k'),
        () => bench.objects.put('k', text('x')),
        () => bench.objects.list(''),
        () => bench.objects.remove(['k']),
        () =>
          bench.objects.upload(
            'k',
            1,
            (async function* () {
              yield text('x');
            })(),
          ),
      ]) {
        const before = bench.s3.requests.length;
        const error = await errorOf(work());
        expect(error.code).toBe(expected);
        expect(error.message).toMatch(says);
        expect(error.data).toMatchObject({ status, serverCode: code, place: 's3://bucket/p' });
        expect(bench.s3.requests.length - before).toBe(attempts);
        expect(error.message + error.stack + JSON.stringify(error.data)).not.toContain(SECRET);
      }
    },
  );

  test.each(cases.filter(({ expected }) => expected !== 'io_error' && expected !== 'storage_unreachable'))(
    'a HEAD, whose reply has no body, tells $code too',
    async ({ status, code, expected, headers }) => {
      bench.s3.faultWhen(() => ({ action: { status, code, ...(headers !== undefined && { headers }) } }));
      expect((await errorOf(bench.objects.head('k'))).code).toBe(expected);
    },
  );
});

test('a bucket that does not exist is told by every call', async () => {
  const objects = await bench.open({ bucket: 'no-such-bucket' });
  for (const work of [
    () => objects.get('k'),
    () => objects.head('k'),
    () => objects.list(''),
    () => objects.put('k', text('x')),
    () => objects.create('k', text('x')),
    () => objects.remove(['a', 'b']),
  ]) {
    expect((await errorOf(work())).code).toBe('bucket_not_found');
  }
});

test('the absence of an object costs a HEAD one request once the bucket is known to exist', async () => {
  expect(await bench.objects.head('a')).toBeNull();
  const before = bench.s3.requests.length;
  expect(await bench.objects.head('b')).toBeNull();
  expect(bench.s3.requests.length - before).toBe(1);
});

test('a server that is not there is unreachable, and its port is named', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  const objects = await bench.open({ endpoint: `http://127.0.0.1:${port}` });
  const error = await errorOf(objects.list(''));
  expect(error.code).toBe('storage_unreachable');
  expect(error.message).toMatch(new RegExp(`127\\.0\\.0\\.1:${port}.*ECONNREFUSED`));
  expect(bench.clock.sleeps).toHaveLength(5);
});

test('a server that says nothing is unreachable after the idle time', async () => {
  bench.s3.faultWhen(() => ({ action: 'stall' }));
  const objects = await bench.open({}, { timeouts: { idleMs: 150 }, retries: { attemptsMax: 2 } });
  expect((await errorOf(objects.get('k'))).code).toBe('storage_unreachable');
  // Two attempts with a pause between them. On a busy machine the time may be over before the server has read the
  // request.
  expect(bench.clock.sleeps).toHaveLength(1);
  expect(bench.s3.requests.length).toBeLessThanOrEqual(2);
});

test('missing credentials are told with what to set', async () => {
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_PROFILE']) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/dev/null');
  vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
  const objects = await bench.open();
  const error = await errorOf(objects.list(''));
  expect(error.code).toBe('storage_denied');
  expect(error.message).toMatch(/Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
  expect(bench.s3.requests).toHaveLength(0);
});

test('without a region one is needed only where there is no endpoint', async () => {
  for (const name of ['AWS_REGION', 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL']) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
  const objects = await bench.open({ region: null });
  expect(await objects.get('k')).toBeNull();
  const error = await errorOf(bench.open({ region: null, endpoint: null }));
  expect(error.code).toBe('wrong_region');
  expect(error.message).toMatch(/AWS_REGION/);
});

test('the endpoint of the environment counts where the place has none', async () => {
  vi.stubEnv('AWS_ENDPOINT_URL_S3', bench.s3.endpoint);
  const objects = await bench.open({ endpoint: null });
  await objects.put('k', text('x'));
  expect(bench.s3.keys('bucket')).toEqual(['p/k']);
});

test("a clock that is wrong is corrected by the server's time where that helps", async () => {
  const hourLater = new Date(Date.now() + 3_600_000).toUTCString();
  const skewed = { action: { status: 403, code: 'RequestTimeTooSkewed', headers: { date: hourLater } } };
  bench.s3.faultNext(skewed);
  await bench.objects.put('k', text('x'));
  expect(bench.s3.requests).toHaveLength(2);
  const another = await bench.open();
  bench.s3.faultNext(skewed);
  expect(await another.create('c', text('x'))).toBe('created');
  bench.s3.faultWhen(() => ({ action: { status: 403, code: 'RequestTimeTooSkewed' } }));
  expect((await errorOf((await bench.open()).create('d', text('x')))).code).toBe('clock_skewed');
});

describe('failures of the network and the machine', () => {
  const target = { place: 's3://b', bucket: 'b', endpoint: 'https://s3.example.com', region: 'r' };
  const systemError = (code: string) => Object.assign(new Error(`getaddrinfo ${code}`), { code });
  test.each(['ENOTFOUND', 'EAI_AGAIN', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH'])(
    '%s is unreachable and tried again',
    (code) => {
      const { error, isRetryable, isDefinite } = s3Failure(systemError(code), target, 'k');
      expect(error.code).toBe('storage_unreachable');
      expect(error.message).toContain(code);
      expect([isRetryable, isDefinite]).toEqual([true, false]);
    },
  );
  test.each([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'CERT_HAS_EXPIRED',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ])('%s is a certificate that is not trusted', (code) => {
    const { error, isRetryable } = s3Failure(systemError(code), target, 'k');
    expect(error.code).toBe('storage_unreachable');
    expect(error.message).toMatch(/certificate.*NODE_EXTRA_CA_CERTS/);
    expect(isRetryable).toBe(false);
  });
});
