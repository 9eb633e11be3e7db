import { expect, test } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import type { OverviewView } from '../../../handlers/documents/node.ts';
import { watchDefaultPasswords } from '../../../local/node/security.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startedNode } from '../spawn.ts';

const HOUR_MS = 3_600_000;
const JSON_TYPE = { 'content-type': 'application/json' };
const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const WARNING = /the user admin or ops has the default password, or an empty one/;

test('the log and the overview of a node say that users have default passwords, until all are changed', async () => {
  const node = await startedNode(['--mem-db', '--disable-tls']);
  try {
    await node.process.seen(WARNING);
    expect(
      node.process
        .logged()
        .filter(({ msg }) => WARNING.test(String(msg)))
        .map(({ level }) => level),
    ).toEqual(['warn']);
    const change = async (user: string, from: string, to: string) =>
      (
        await fetch(`${node.url}/users/${user}/command/change-password`, {
          method: 'POST',
          headers: { ...JSON_TYPE, ...basic(user, from) },
          body: JSON.stringify({ currentPassword: from, newPassword: to }),
        })
      ).status;
    const found = async (password: string) => {
      const reply = await fetch(`${node.url}/admin/overview`, { headers: basic('admin', password) });
      return ((await reply.json()) as OverviewView).warnings
        .filter(({ code }) => code === 'default-passwords')
        .map(({ severity, view }) => [severity, view]);
    };
    expect(await found('changeit')).toEqual([['warning', 'users']]);
    expect(await change('admin', 'changeit', 'a Password 1')).toBe(200);
    // An overview is remembered for a moment.
    await expect.poll(() => found('a Password 1'), { timeout: 60_000 }).toEqual([['warning', 'users']]);
    expect(await change('ops', 'changeit', 'a Password 2')).toBe(200);
    await expect.poll(() => found('a Password 1'), { timeout: 60_000 }).toEqual([]);
  } finally {
    await node.stop();
  }
});

test('the log says so again each hour while it is so, and ends with the node', async () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log = {
    ...silentLog,
    warn: (message: string) => {
      lines.push(message);
    },
  };
  const end = new AbortController();
  let stand = true;
  let fails = false;
  const watch = watchDefaultPasswords(
    async () => {
      if (fails) throw new Error('The store is closed.');
      return stand;
    },
    { clock, log, signal: end.signal },
  );
  await clock.advance(0);
  expect(lines).toEqual([expect.stringMatching(WARNING)]);
  await clock.advance(HOUR_MS);
  expect(lines).toHaveLength(2);
  stand = false;
  await clock.advance(3 * HOUR_MS);
  expect(lines).toHaveLength(2);
  stand = true;
  await clock.advance(HOUR_MS);
  expect(lines).toHaveLength(3);
  fails = true;
  await clock.advance(HOUR_MS);
  expect(lines).toHaveLength(3);
  end.abort();
  await watch;
  expect(clock.sleeping).toBe(0);
});
