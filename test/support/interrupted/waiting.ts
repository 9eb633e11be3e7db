import { writeFileSync } from 'node:fs';
import { test } from 'vitest';
import { startedProcess } from '../../local/spawn.ts';

/** Run by `test/support/reaper.long.test.ts`, which ends the run while this waits: a node in a process of its own is there then. */
test('waits for ever', async () => {
  const node = await startedProcess(['--mem-db']);
  writeFileSync(process.env['SKUA_TEST_WAITING']!, node.url);
  await new Promise(() => {});
});
