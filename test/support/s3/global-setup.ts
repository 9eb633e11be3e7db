import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { containers } from './containers.ts';
import { RUN_FOLDER } from './s3-for-tests.ts';
import { runScript } from './s3-servers.ts';

/** Around a whole run of the tests: what its processes started of S3 servers ends with it. Nothing is started here. */
export async function setup(): Promise<void> {
  process.env[RUN_FOLDER] = await mkdtemp(join(tmpdir(), 'skua-s3-'));
}

export async function teardown(): Promise<void> {
  const folder = process.env[RUN_FOLDER];
  if (folder === undefined) return;
  if (await access(join(folder, 'ceph')).then(() => true, () => false)) await runScript('stop', folder).catch(() => {});
  const started = await readFile(join(folder, 'containers'), 'utf8').catch(() => '');
  for (const id of new Set(started.split('\n').filter((line) => line !== ''))) await (await containers())?.removeContainer(id);
  await rm(folder, { recursive: true, force: true });
}
