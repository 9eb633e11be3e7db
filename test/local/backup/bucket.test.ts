import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { append, CHUNK_BYTES } from '../../backup/copy-kit.ts';
import { InProcessS3 } from '../../support/s3/in-process-s3.ts';
import { openTestStore } from '../../support/test-store.ts';
import { run } from '../run.ts';

/** Backups to a bucket from the command line, and the exit codes of what a bucket may answer. */

let s3: InProcessS3;
let folder: string;
const at = (name: string) => path.join(folder, name);

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-bucket-'));
  for (const [name, value] of Object.entries({
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'very-secret',
    AWS_REGION: 'us-east-1',
  }))
    vi.stubEnv(name, value);
  s3 = await InProcessS3.start();
  s3.state.buckets.set('backups', new Map());
  const open = await openTestStore({
    storage: new FilesystemStorage({ root: at('data') }),
    chunkSizeBytes: CHUNK_BYTES,
  });
  await append(open, 's', 100);
  await open.close();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await s3.close();
  rmSync(folder, { recursive: true, force: true });
});

test('create, verify and restore', async () => {
  const place = ['s3://backups/node-1', '--s3-endpoint', s3.endpoint];
  expect(await run('backup', 'create', '--db', at('data'), '--repository', ...place)).toMatchObject({
    code: 0,
    err: '',
  });
  expect(await run('backup', 'verify', '--repository', ...place)).toMatchObject({ code: 0, err: '' });
  expect(await run('restore', '--db', at('restored'), '--from', ...place)).toMatchObject({ code: 0, err: '' });
  expect((await run('verify', at('restored'))).code).toBe(0);
});

test.each([
  { what: 'no such bucket', bucket: 'nothing', code: 3, says: 'bucket_not_found' },
  { what: 'no permission', status: 403, answer: 'AccessDenied', code: 4, says: 'storage_denied' },
  { what: 'another region', status: 301, answer: 'PermanentRedirect', code: 3, says: 'wrong_region' },
  { what: 'a clock that is wrong', status: 403, answer: 'RequestTimeTooSkewed', code: 4, says: 'clock_skewed' },
])('$what ends with $code', async ({ bucket = 'backups', status, answer, code, says }) => {
  if (status !== undefined) s3.faultWhen(() => ({ action: { status, code: answer } }));
  const ended = await run(
    'backup',
    'create',
    '--db',
    at('data'),
    '--repository',
    `s3://${bucket}/x`,
    '--s3-endpoint',
    s3.endpoint,
  );
  expect(ended).toMatchObject({ code, err: expect.stringContaining(says) });
  expect(ended.err).not.toContain('very-secret');
});
