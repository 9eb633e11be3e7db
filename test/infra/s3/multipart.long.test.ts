import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SINGLE_UPLOAD_BYTES_MAX, UPLOAD_PARTS_MAX, uploadPartBytes } from '../../../core/ports/object-store.ts';
import { errorOf, pieces, startBench, text } from './tools.ts';
import type { Bench } from './tools.ts';

const MIB = 1_048_576;
let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const parts = () => bench.s3.requests.filter(({ query }) => query.has('partNumber'));
const stored = () => bench.s3.state.buckets.get('bucket')!.get('p/k')?.bytes;

test('an object of up to 16 MiB is one request, a larger one comes in parts, all with checksums where they are asked for', async () => {
  vi.stubEnv('AWS_REQUEST_CHECKSUM_CALCULATION', 'WHEN_SUPPORTED');
  const objects = await bench.open();
  vi.unstubAllEnvs();
  await objects.upload('k', SINGLE_UPLOAD_BYTES_MAX, pieces(SINGLE_UPLOAD_BYTES_MAX));
  expect(bench.s3.requests).toHaveLength(1);
  expect(bench.s3.requests[0]!.headers['x-amz-checksum-crc32']).toMatch(/^.{8}$/);
  await objects.upload('k', 20 * MIB + 1, pieces(20 * MIB + 1));
  expect(
    parts()
      .map(({ body }) => body.length)
      .sort((a, b) => a - b),
  ).toEqual([4 * MIB + 1, 8 * MIB, 8 * MIB]);
  for (const part of parts()) expect(part.headers['x-amz-checksum-crc32']).toMatch(/^.{8}$/);
  const completion = bench.s3.requests.at(-1)!;
  expect(completion.body.toString().match(/<ChecksumCRC32>/g)).toHaveLength(3);
});

test('parts of huge objects grow, so that there are never too many', () => {
  for (const size of [SINGLE_UPLOAD_BYTES_MAX + 1, 80_000 * MIB, 80_000 * MIB + 1, 5 * 1_048_576 * MIB]) {
    const part = uploadPartBytes(size);
    expect(Math.ceil(size / part)).toBeLessThanOrEqual(UPLOAD_PARTS_MAX);
    expect(part % MIB).toBe(0);
  }
  expect(uploadPartBytes(80_000 * MIB)).toBe(8 * MIB);
});

test('four parts are on their way at most, and the source is not read far ahead', async () => {
  const gate = Promise.withResolvers<void>();
  const four = Promise.withResolvers<void>();
  let underWay = 0,
    most = 0,
    read = 0;
  bench.s3.faultWhen((request) => {
    if (!request.query.has('partNumber')) return undefined;
    most = Math.max(most, ++underWay);
    if (underWay === 4) four.resolve();
    return {
      action: 'none',
      wait: gate.promise.then(() => {
        underWay--;
      }),
    };
  });
  const source = async function* () {
    for await (const piece of pieces(48 * MIB)) {
      read += piece.length;
      yield piece;
    }
  };
  const uploading = bench.objects.upload('k', 48 * MIB, source());
  await four.promise;
  for (let turn = 0; turn < 50; turn++)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  expect(read).toBeLessThanOrEqual(5 * 8 * MIB + MIB);
  gate.resolve();
  await uploading;
  expect(most).toBe(4);
  expect(stored()?.length).toBe(48 * MIB);
});

test('parts whose requests fail or lose their replies are sent again', async () => {
  const tries = new Map<string, number>();
  bench.s3.faultWhen((request) => {
    const part = request.query.get('partNumber');
    if (part === null) return undefined;
    const n = (tries.get(part) ?? 0) + 1;
    tries.set(part, n);
    if (n === 1) return { action: 'drop', moment: 'after' };
    return n === 2 ? { action: { status: 503, code: 'SlowDown' } } : undefined;
  });
  await bench.objects.upload('k', 24 * MIB, pieces(24 * MIB));
  expect(stored()?.length).toBe(24 * MIB);
  expect(stored()![17 * MIB]).toBe(17);
});

test('a completion whose reply was lost counts, when the object is the one that was uploaded', async () => {
  bench.s3.faultWhen((request) =>
    request.method === 'POST' && request.query.has('uploadId') ? { action: 'drop', moment: 'after' } : undefined,
  );
  await bench.objects.upload('k', 20 * MIB, pieces(20 * MIB));
  expect(stored()?.length).toBe(20 * MIB);
});

test('a completion that never happened is no success, although an older object is there', async () => {
  await bench.objects.put('k', text('older'));
  bench.s3.faultWhen((request) =>
    request.method === 'POST' && request.query.has('uploadId')
      ? { action: { status: 500, code: 'InternalError' } }
      : undefined,
  );
  expect((await errorOf(bench.objects.upload('k', 20 * MIB, pieces(20 * MIB)))).code).toBe('io_error');
  expect(stored()?.toString()).toBe('older');
  expect(bench.s3.state.uploads.size).toBe(0);
});

test('uploads that killed processes left are aborted after a week, those of others are not touched', async () => {
  const now = bench.clock.nowMs();
  const upload = (key: string, ageMs: number) => ({
    begun: new Date(now - ageMs),
    bucket: 'bucket',
    key,
    metadata: {},
    parts: new Map(),
  });
  const day = 86_400_000;
  const { uploads } = bench.s3.state;
  uploads
    .set('old', upload('p/a', 8 * day))
    .set('young', upload('p/b', 6 * day))
    .set('of another', upload('q/a', 8 * day));
  await bench.objects.upload('k', 20 * MIB, pieces(20 * MIB));
  expect([...uploads.keys()]).toEqual(['young', 'of another']);
});

test('who may not list uploads can upload all the same', async () => {
  bench.s3.faultWhen((request) =>
    request.method === 'GET' && request.query.has('uploads')
      ? { action: { status: 403, code: 'AccessDenied' } }
      : undefined,
  );
  await bench.objects.upload('k', 20 * MIB, pieces(20 * MIB));
  expect(stored()?.length).toBe(20 * MIB);
});

describe('a failed upload is taken back', () => {
  test('when a part is refused, and the other parts end', async () => {
    // The others get no answer: only the refusal of the third one can end them.
    bench.s3.faultWhen((request) =>
      request.query.has('partNumber')
        ? { action: request.query.get('partNumber') === '3' ? { status: 403, code: 'QuotaExceeded' } : 'stall' }
        : undefined,
    );
    expect((await errorOf(bench.objects.upload('k', 40 * MIB, pieces(40 * MIB)))).code).toBe('disk_full');
    expect(bench.s3.state.uploadsBegun).toBe(1);
    expect(bench.s3.state.uploads.size).toBe(0);
    expect(parts().length).toBeLessThanOrEqual(4);
  });

  test('when its source fails', async () => {
    const source = async function* () {
      yield* pieces(30 * MIB);
      throw new RangeError('broken');
    };
    await expect(bench.objects.upload('k', 60 * MIB, source())).rejects.toThrow('broken');
    expect(bench.s3.state.uploads.size).toBe(0);
    expect(bench.s3.keys('bucket')).toEqual([]);
  });

  test('when it is aborted while parts are on their way', async () => {
    const ending = new AbortController();
    bench.s3.faultWhen((request) => {
      if (!request.query.has('partNumber')) return undefined;
      setImmediate(() => ending.abort());
      return { action: 'stall' };
    });
    expect((await errorOf(bench.objects.upload('k', 40 * MIB, pieces(40 * MIB), ending.signal))).code).toBe('aborted');
    expect(bench.s3.state.uploads.size).toBe(0);
  });
});
