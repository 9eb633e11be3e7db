import { afterEach, beforeEach, expect, test } from 'vitest';
import { listAll } from '../../../core/ports/object-store.ts';
import { errorOf, startBench, text } from './tools.ts';
import type { Bench } from './tools.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

function fill(count: number): string[] {
  const objects = bench.s3.state.buckets.get('bucket')!;
  const keys = Array.from({ length: count }, (_, n) => `k${String(n).padStart(5, '0')}`);
  for (const key of keys)
    objects.set(`p/${key}`, { bytes: Buffer.from(key), etag: '"e"', modified: new Date(0), metadata: {} });
  return keys;
}

const partial = (keys: string[], code: string) =>
  `<DeleteResult>${keys.map((key) => `<Error><Key>p/${key}</Key><Code>${code}</Code><Message>no</Message></Error>`).join('')}</DeleteResult>`;

test('many objects go a thousand at a time', async () => {
  const keys = fill(2_500);
  await bench.objects.remove(keys);
  expect(bench.s3.requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST']);
  expect(bench.s3.keys('bucket')).toEqual([]);
});

test.each([
  [501, 'NotImplemented'],
  [400, 'MissingContentMD5'],
  [400, 'InvalidArgument'],
  [405, 'MethodNotAllowed'],
])('a server that answers %i %s gets single requests from then on', async (status, code) => {
  const keys = fill(20);
  bench.s3.faultWhen((request) => (request.method === 'POST' ? { action: { status, code } } : undefined));
  await bench.objects.remove(keys.slice(0, 10));
  await bench.objects.remove(keys.slice(10));
  expect(bench.s3.keys('bucket')).toEqual([]);
  expect(bench.s3.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
});

test('keys that failed are tried again alone, and a refusal for one is an error', async () => {
  const keys = fill(3);
  let n = 0;
  bench.s3.replyWhen((request) =>
    request.method === 'POST' && ++n === 1 ? { status: 200, body: partial(['k00001'], 'InternalError') } : undefined,
  );
  await bench.objects.remove(keys);
  const [first, second] = bench.s3.requests;
  expect(first!.body.toString().match(/<Key>/g)).toHaveLength(3);
  expect(second!.body.toString().match(/<Key>[^<]*/g)).toEqual(['<Key>p/k00001']);
  bench.s3.replyWhen(() => ({ status: 200, body: partial(['k00002'], 'AccessDenied') }));
  expect((await errorOf(bench.objects.remove(keys))).code).toBe('storage_denied');
});

test('what others put under the prefix is not listed, and does not end a listing', async () => {
  const objects = bench.s3.state.buckets.get('bucket')!;
  const stored = { bytes: Buffer.alloc(0), etag: '"e"', modified: new Date(0), metadata: {} };
  for (const key of ['p/', 'p/a folder/', 'p/a b', 'p/a&amp;<b>', 'p//x', 'other/k']) objects.set(key, stored);
  await bench.objects.put('z', text('z'));
  for (const max of [1, 2, 1_000]) {
    const keys: string[] = [];
    for await (const { key } of listAll(bench.objects, '', { max })) keys.push(key);
    expect(keys).toEqual(['z']);
  }
});
