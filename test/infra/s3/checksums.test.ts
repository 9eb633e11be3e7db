import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SINGLE_UPLOAD_BYTES_MAX } from '../../../core/ports/object-store.ts';
import { errorReply } from '../../support/s3/s3-operations.ts';
import type { S3Request } from '../../support/s3/s3-operations.ts';
import { errorOf, pieces, startBench, text } from './tools.ts';
import type { Bench } from './tools.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await bench.close();
});

const NAMES = ['x-amz-checksum-', 'x-amz-sdk-checksum-', 'x-amz-trailer'];
const checksumOf = ({ headers }: S3Request) =>
  Object.keys(headers).find((name) => NAMES.some((start) => name.startsWith(start)));

test('a server that knows no headers of checksums does all that is needed', async () => {
  bench.s3.replyWhen((request) => (checksumOf(request) === undefined ? undefined : errorReply(400, 'InvalidArgument')));
  await bench.objects.put('k', text('value'));
  expect(await bench.objects.get('k')).toEqual(text('value'));
  expect(await bench.objects.head('k')).toMatchObject({ sizeBytes: 5 });
  expect(await bench.objects.create('c', text('1'))).toBe('created');
  expect(await bench.objects.createLocked!('l', text('1'), Date.UTC(2100, 0, 1))).toBe('created');
  await bench.objects.upload('large', SINGLE_UPLOAD_BYTES_MAX + 1, pieces(SINGLE_UPLOAD_BYTES_MAX + 1));
  expect(await bench.objects.head('large')).toMatchObject({ sizeBytes: SINGLE_UPLOAD_BYTES_MAX + 1 });
  await bench.objects.remove(['k', 'c', 'large']);
  expect(bench.s3.keys('bucket')).toEqual(['p/l']);
});

test('a request with a lock has the checksum that it must have', async () => {
  await bench.objects.createLocked!('l', text('1'), Date.UTC(2100, 0, 1));
  expect(bench.s3.requests.at(-1)!.headers).toMatchObject({
    'content-md5': 'xMpCOKC5I4INzFCab3WEmw==',
    'x-amz-object-lock-mode': 'COMPLIANCE',
  });
});

test('the variables of the SDK ask for checksums', async () => {
  vi.stubEnv('AWS_REQUEST_CHECKSUM_CALCULATION', 'when_supported');
  vi.stubEnv('AWS_RESPONSE_CHECKSUM_VALIDATION', 'when_supported');
  const objects = await bench.open();
  await objects.put('k', text('value'));
  expect(bench.s3.requests.at(-1)!.headers).toHaveProperty('x-amz-checksum-crc32');
  await objects.get('k');
  expect(bench.s3.requests.at(-1)!.headers['x-amz-checksum-mode']).toBe('ENABLED');
});

test('a server without something is named by what it said, and only what it refused is asked for', async () => {
  const refusal = (header: string) => ({
    status: 501,
    body: `<Error><Code>NotImplemented</Code><Message>A header implies what is not implemented.</Message><Header>${header}</Header></Error>`,
  });
  bench.s3.replyWhen(() => refusal('If-None-Match'));
  expect((await errorOf(bench.objects.create('k', text('1')))).message).toMatch(
    /header If-None-Match: A header implies .*Use a server with conditional writes/,
  );
  bench.s3.replyWhen(() => refusal('x-amz-storage-class'));
  const { message } = await errorOf(bench.objects.put('k', text('1')));
  expect(message).toMatch(/header x-amz-storage-class/);
  expect(message).not.toMatch(/conditional|multipart/);
});
