import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, Spawned } from '../local/spawn.ts';
import { RUN_FOLDER } from './s3/s3-for-tests.ts';

/** Longest that the end of a run and of what it has started may take on a busy machine. */
const END_MS_MAX = 120_000;

/** A run of vitest, to the moment at which a test of it has started a node. */
async function runWithNode(folder: string): Promise<{ run: Spawned; url: string }> {
  const said = path.join(folder, 'url');
  const run = new Spawned(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/support/interrupted/vitest.config.ts'], { SKUA_TEST_WAITING: said, [RUN_FOLDER]: undefined }, { cwd: ROOT });
  const read = () => { try { return readFileSync(said, 'utf8'); } catch { return ''; } };
  await expect.poll(read, { timeout: END_MS_MAX }).not.toBe('');
  return { run, url: read() };
}

test.each(['SIGTERM', 'SIGKILL', 'SIGINT'] as const)('a run of the tests that is ended by %s leaves no server behind', async (signal) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'skua-interrupted-'));
  const { run, url } = await runWithNode(folder);
  expect((await fetch(`${url}/health/live`)).status).toBe(204);
  run.child.kill(signal);
  await expect.poll(() => fetch(`${url}/health/live`).then(() => 'answers', () => 'gone'), { timeout: END_MS_MAX }).toBe('gone');
  await run.ended;
  rmSync(folder, { recursive: true, force: true });
});
