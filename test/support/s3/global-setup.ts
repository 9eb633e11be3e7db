import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { containers } from './containers.ts';
import { RUN_FOLDER } from './s3-for-tests.ts';
import { runScript } from './s3-servers.ts';

/**
 * Around a whole run of the tests: what its processes started ends with it, S3 servers in good order, all else also
 * where the run is killed or interrupted.
 */
export async function setup(): Promise<void> {
  // Each group of files sets up, in the one process of the run: once is enough.
  const own = join(tmpdir(), `skua-s3-${process.pid}-`);
  if (process.env[RUN_FOLDER]?.startsWith(own) === true) return;
  const folder = await mkdtemp(own);
  // Out of reach of Ctrl+C, and without the variable by which it knows the others.
  reaper = spawn(process.execPath, [fileURLToPath(new URL('../reaper.mjs', import.meta.url)), RUN_FOLDER, folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  reaper.unref();
  (reaper.stdin as Socket).unref();
  process.env[RUN_FOLDER] = folder;
}

let reaper: ChildProcess | undefined;

export async function teardown(): Promise<void> {
  const folder = process.env[RUN_FOLDER];
  if (folder === undefined) return;
  if (
    await access(join(folder, 'ceph')).then(
      () => true,
      () => false,
    )
  )
    await runScript('stop', folder).catch(() => {});
  const started = await readFile(join(folder, 'containers'), 'utf8').catch(() => '');
  for (const id of new Set(started.split('\n').filter((line) => line !== '')))
    await (await containers())?.removeContainer(id);
  await rm(folder, { recursive: true, force: true });
  delete process.env[RUN_FOLDER];
  reaper?.stdin?.end();
}
