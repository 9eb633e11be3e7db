import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { ran, startedNode } from '../spawn.ts';

const USERS = ['--disable-tls', '--chunk-size', '131072', '--stream-existence-filter-size', '10000'];
const LOGIN = { SKUA_USER: 'ops', SKUA_PASSWORD: 'changeit' };

async function command(url: string, ...words: string[]) {
  const { code, out, err } = await ran(['auto-scavenge', ...words, '--node', url], LOGIN);
  return { code, out, err };
}

test('a node keeps its schedule and its pause over a restart', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-auto-'));
  const words = ['--db', path.join(folder, 'db'), ...USERS];
  const first = await startedNode(words);
  expect(first.process.logged()).toContainEqual(
    expect.objectContaining({ level: 'info', msg: expect.stringMatching(/^AutoScavenge \S+ plugin enabled\.$/) }),
  );
  expect(await command(first.url, 'status')).toEqual({
    code: 0,
    err: '',
    out: expect.stringMatching(/^Not configured\./),
  });
  expect(await command(first.url, 'configure', '@daily')).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^error invalid_schedule: Invalid CRON expression\. Give five fields/),
  });
  // The 29th of February: far enough not to come while the test runs.
  expect(await command(first.url, 'configure', '0  0 29 2 *')).toEqual({
    code: 0,
    err: '',
    out: expect.stringMatching(/^The schedule is 0 0 29 2 \*: the next cycle starts in (\d+ d )?/),
  });
  expect(await command(first.url, 'pause')).toMatchObject({ code: 0, out: expect.stringMatching(/^Paused\./) });
  expect((await first.stop()).code).toBe(0);

  const second = await startedNode(words);
  expect(JSON.parse((await command(second.url, 'status', '--json')).out)).toMatchObject({
    enabled: true,
    state: 'Paused',
    schedule: '0 0 29 2 *',
    timeUntilNextCycle: expect.stringMatching(/^\d+\.\d\d:\d\d:\d\d(\.\d{7})?$/),
    cycle: null,
    lastCycle: null,
  });
  expect(await command(second.url, 'resume')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Resumed\. State: Waiting: the next cycle starts in /),
  });
  expect((await second.stop()).code).toBe(0);
  await rm(folder, { recursive: true });
});
