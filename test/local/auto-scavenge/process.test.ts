import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LicenceIssuer } from '../../support/licence-issuer.ts';
import { ran, startedNode } from '../spawn.ts';

/** A node of its own process. */

let folder: string;
beforeEach(async () => { folder = await mkdtemp(path.join(tmpdir(), 'skua-auto-')); });
afterEach(() => rm(folder, { recursive: true }));

const USERS = ['--disable-tls', '--chunk-size', '131072', '--stream-existence-filter-size', '10000'];
const LOGIN = { SKUA_USER: 'ops', SKUA_PASSWORD: 'changeit' };

async function command(url: string, ...words: string[]) {
  const { code, out, err } = await ran(['auto-scavenge', ...words, '--node', url], LOGIN);
  return { code, out, err };
}

describe('a node', () => {
  test('keeps its schedule and its pause over a restart', async () => {
    const words = ['--db', path.join(folder, 'db'), ...USERS];
    const first = await startedNode(words);
    expect(first.process.logged()).toContainEqual(expect.objectContaining({ level: 'info', msg: expect.stringMatching(/^AutoScavenge \S+ plugin enabled\.$/) }));
    expect(await command(first.url, 'status')).toEqual({ code: 0, err: '', out: expect.stringMatching(/^Not configured\./) });
    expect(await command(first.url, 'configure', '@daily')).toMatchObject({ code: 2, err: expect.stringMatching(/^error invalid_schedule: Invalid CRON expression\. Give five fields/) });
    // The 29th of February: far enough not to come while the test runs.
    expect(await command(first.url, 'configure', '0  0 29 2 *')).toEqual({ code: 0, err: '', out: expect.stringMatching(/^The schedule is 0 0 29 2 \*: the next cycle starts in (\d+ d )?/) });
    expect(await command(first.url, 'pause')).toMatchObject({ code: 0, out: expect.stringMatching(/^Paused\./) });
    expect((await first.stop()).code).toBe(0);

    const second = await startedNode(words);
    expect(JSON.parse((await command(second.url, 'status', '--json')).out)).toMatchObject({ enabled: true, state: 'Paused', schedule: '0 0 29 2 *', timeUntilNextCycle: expect.stringMatching(/^\d+\.\d\d:\d\d:\d\d(\.\d{7})?$/), cycle: null, lastCycle: null });
    expect(await command(second.url, 'resume')).toMatchObject({ code: 0, out: expect.stringMatching(/^Resumed\. State: Waiting: the next cycle starts in /) });
    expect((await second.stop()).code).toBe(0);
  });

  test('is off without a licence, with the reason, and on with a key of the issuer', async () => {
    const issuer = new LicenceIssuer(new Uint8Array(32));
    const file = path.join(folder, 'issuer.pub');
    await writeFile(file, issuer.publicKey);
    const key = issuer.issue({ features: ['AUTO_SCAVENGE'], expiresAtMs: Date.now() + 86_400_000 });
    const words = ['--mem-db', ...USERS, '--licensing-use-built-in', 'false'];
    const off = await startedNode(words);
    expect(await command(off.url, 'status')).toMatchObject({ code: 0, out: expect.stringMatching(/^Auto-scavenge is off\. /) });
    expect(await command(off.url, 'pause')).toMatchObject({ code: 4, err: expect.stringMatching(/^error auto_scavenge_off: AutoScavenge is not enabled\. /) });
    await off.stop();

    const on = await startedNode(['--db', path.join(folder, 'db'), ...USERS, '--licensing-license-key', key, '--licensing-issuer-key-file', file]);
    expect(on.process.logged().find(({ msg }) => /plugin enabled/.test(String(msg)))).toMatchObject({ licence: 'key', licenceExpires: expect.stringMatching(/Z$/) });
    expect(on.process.out + on.process.err).not.toContain(key);
    expect(await command(on.url, 'pause')).toMatchObject({ code: 0 });
    await on.stop();
  });

  test.each([['--dev', 'dev mode'], ['--mem-db', 'mem-db']])('81: does not start with %s when it is switched on', async (word, mode) => {
    const { code, err } = await ran(['start', word, '--auto-scavenge-enabled', '--node-port', '0']);
    expect([code, err]).toEqual([2, expect.stringContaining(`AutoScavenge is not compatible with ${mode}`)]);
  });
});
