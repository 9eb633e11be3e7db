import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openObjects, parseLocation } from '../../../infra/objects/open-objects.ts';

test('a place is a bucket or a directory', () => {
  expect(parseLocation('s3://bucket/pre/fix/')).toEqual({
    kind: 's3',
    bucket: 'bucket',
    prefix: 'pre/fix',
    endpoint: null,
    region: null,
  });
  expect(parseLocation('s3://my.bucket-1', { endpoint: 'http://127.0.0.1:9000', region: 'eu-north-1' })).toEqual({
    kind: 's3',
    bucket: 'my.bucket-1',
    prefix: '',
    endpoint: 'http://127.0.0.1:9000',
    region: 'eu-north-1',
  });
  expect(parseLocation('S3://bucket')).toMatchObject({ kind: 's3' });
  expect(parseLocation('backups/here')).toEqual({ kind: 'directory', path: resolve('backups/here') });
  expect(parseLocation('/mnt/with space/ü')).toEqual({ kind: 'directory', path: '/mnt/with space/ü' });
});

test.each([
  '',
  's3://',
  's3:///prefix',
  's3://b',
  's3://bucket/a//b',
  's3://bucket/../x',
  's3://bucket/with space',
  's3://bucket/?x=1',
  's3://user:word@bucket/x',
  'http://bucket',
  'gs://bucket/x',
  's3:bucket/prefix',
  's3:/bucket/prefix',
  'S3:https://server.example/bucket',
  `s3://bucket/${'p/'.repeat(300)}p`,
  'a\0b',
])('"%s" is no place', (text) => {
  expect(() => parseLocation(text)).toThrow(expect.objectContaining({ code: 'bad_option' }));
});

test.each(['s3://base--usw2-az1--x-s3', 's3://point--usw2-az1--xa-s3/prefix'])(
  '"%s" is a directory bucket, whose listing has no order',
  (text) => {
    expect(() => parseLocation(text)).toThrow(
      expect.objectContaining({ code: 'bad_option', message: expect.stringContaining('directory bucket') }),
    );
  },
);

test.each(['127.0.0.1:9000', 'ftp://host', 'http://user:word@host', ''])(
  '"%s" is no endpoint, and is not repeated',
  (endpoint) => {
    expect(() => parseLocation('s3://bucket', { endpoint })).toThrow(
      expect.objectContaining({ code: 'bad_option', message: expect.not.stringContaining('word') }),
    );
  },
);

test('an opened directory is where it was asked for', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skua-open-'));
  const objects = await openObjects(parseLocation(folder));
  await objects.put('k', new Uint8Array(1));
  expect(objects.place).toBe(folder);
  expect((await objects.list('')).objects).toHaveLength(1);
  await rm(folder, { recursive: true });
});

test('the S3 SDK is loaded by a bucket and by nothing else', async () => {
  const program = (place: string) => `
    import { registerHooks } from 'node:module';
    let isLoaded = false;
    registerHooks({ load(url, context, next) { isLoaded ||= url.includes('@aws-sdk'); return next(url, context); } });
    const { openObjects } = await import(${JSON.stringify(new URL('../../../infra/objects/open-objects.ts', import.meta.url).href)});
    const objects = await openObjects(${place});
    await objects.close();
    console.log(isLoaded);`;
  const run = async (place: string) =>
    (await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program(place)])).stdout.trim();
  expect(await run(`{ kind: 'directory', path: '/nowhere' }`)).toBe('false');
  expect(await run(`{ kind: 's3', bucket: 'bucket', prefix: '', endpoint: 'http://127.0.0.1:1', region: 'r' }`)).toBe(
    'true',
  );
});
