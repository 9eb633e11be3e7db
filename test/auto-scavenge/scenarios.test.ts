import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { DAILY, DAY, HOUR, HOURLY, Kit, MINUTE, T0, unreachable, WEEKLY } from './kit.ts';
import type { KitOptions } from './kit.ts';

/**
 * The scenarios by their numbers, each with its expectation. Those from 75 to 95 are about HTTP, licences and options
 * and stand in the tests of those.
 */

type Row = readonly [number: number | string, name: string, options: KitOptions, run: (kit: Kit) => Promise<void>];
const SINGLE: KitOptions = { members: 'A' };
const THREE: KitOptions = {};

function table(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    test.each(rows.map((row) => [`${row[0]}: ${row[1]}`, row] as const))('%s', async (_, [, , options, run]) =>
      run(new Kit(options)),
    );
  });
}

table('16.1 configuration and schedule', [
  [
    1,
    'the first schedule',
    SINGLE,
    async (kit) => {
      await kit.g();
      expect(await kit.answer(kit.driver.configure(DAILY))).toBe('done');
      expect(kit.stored()).toBe('cfg');
      expect(await kit.status()).toEqual(['Waiting', DAILY, 24 * 60]);
    },
  ],
  [
    2,
    'another schedule',
    SINGLE,
    async (kit) => {
      kit.given('cfg(D)');
      await kit.g();
      await kit.after(2 * HOUR);
      expect(await kit.answer(kit.driver.configure(WEEKLY))).toBe('done');
      expect(kit.stored()).toBe('cfg');
      expect(await kit.status()).toEqual(['Waiting', WEEKLY, (6 * 24 - 2) * 60]);
    },
  ],
  [
    3,
    'nothing without a schedule',
    SINGLE,
    async (kit) => {
      await kit.g();
      expect(kit.stored()).toBe('');
      expect(await kit.state()).toBe('NotConfigured');
    },
  ],
  [
    4,
    'configuring starts no cycle',
    SINGLE,
    async (kit) => {
      await kit.g();
      await kit.after(HOUR);
      await kit.driver.configure(HOURLY);
      await kit.g();
      expect(kit.stored()).toBe('cfg');
    },
  ],
  [
    5,
    'configuring after a cycle starts no second one',
    SINGLE,
    async (kit) => {
      kit.given('cfg(D)');
      await kit.g();
      await kit.after(DAY);
      await kit.g();
      await kit.after(3 * HOUR);
      await kit.driver.configure(HOURLY);
      await kit.g();
      expect(kit.stored()).toBe('started{A} des(A) nstart(A,#1) ndone(A) done{A} cfg');
    },
  ],
  [
    6,
    'a further cycle',
    SINGLE,
    async (kit) => {
      kit.given('cfg(D)');
      kit.given('started{A}', HOUR);
      kit.given('done{A}', 2 * HOUR);
      kit.clock.advance(2 * HOUR);
      kit.leadBy('A');
      kit.running('A');
      await kit.g();
      await kit.after(22 * HOUR);
      expect(kit.stored()).toBe('started{A} des(A) nstart(A,#1)');
    },
  ],
  [
    7,
    'missed starts are skipped',
    SINGLE,
    async (kit) => {
      kit.given('cfg(D)');
      kit.clock.advance(3 * DAY);
      kit.leadBy('A');
      await kit.g();
      await kit.after(HOUR);
      expect(kit.stored()).toBe('');
    },
  ],
  [
    8,
    'a start that comes under a new leader',
    SINGLE,
    async (kit) => {
      kit.given('cfg(D)');
      kit.clock.advance(23 * HOUR);
      kit.leadBy('A');
      kit.running('A');
      await kit.g();
      await kit.after(HOUR);
      expect(kit.stored()).toBe('started{A} des(A) nstart(A,#1)');
    },
  ],
  [
    9,
    'no start while paused',
    SINGLE,
    async (kit) => {
      kit.given('cfg(D) paused');
      kit.clock.advance(23 * HOUR);
      kit.leadBy('A');
      await kit.g();
      await kit.after(HOUR);
      expect(kit.stored()).toBe('');
    },
  ],
  [
    10,
    'a cycle goes on under a new leader',
    SINGLE,
    async (kit) => {
      kit.given('cfg(D) started{A}');
      kit.clock.advance(3 * DAY);
      kit.leadBy('A');
      kit.running('A');
      await kit.g();
      await kit.after(HOUR);
      expect(kit.stored()).toBe('des(A) nstart(A,#1)');
    },
  ],
  [
    11,
    'the same schedule again',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      await kit.after(30 * MINUTE);
      expect(await kit.answer(kit.driver.configure(HOURLY))).toBe('done');
      expect(kit.stored()).toBe('cfg');
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 30]);
    },
  ],
  [
    12,
    'configuring during a cycle',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      kit.running('B');
      await kit.g();
      expect(await kit.answer(kit.driver.configure(DAILY))).toBe('done');
      expect(kit.stored()).toBe('cfg');
      expect(await kit.state()).toBe('InProgress');
      kit.calls.length = 0;
      await kit.g();
      expect(kit.calls).toEqual(['ask B']);
    },
  ],
  [
    13,
    'due while members are missing; 14: begins late rather than never',
    { members: 'A B', clusterSize: 3 },
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      await kit.after(HOUR);
      await kit.g(2);
      expect(kit.stored()).toBe('');
      expect(kit.lines.filter((line) => line.includes('due'))).toHaveLength(1);
      kit.members.push('C');
      kit.running('B');
      await kit.after(15 * MINUTE);
      expect(kit.stored()).toBe('started{A,B,C} des(B) nstart(B,#1)');
    },
  ],
  [
    15,
    'a cycle longer than the period',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H)');
      kit.running('A');
      await kit.g();
      await kit.after(HOUR);
      kit.says('A', 'Success');
      await kit.after(HOUR + 10 * MINUTE);
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 50]);
    },
  ],
  [
    16,
    'what is no schedule; 7 is Sunday',
    SINGLE,
    async (kit) => {
      await kit.g();
      for (const schedule of [
        '61 * * * *',
        '* * * *',
        '',
        '@daily',
        '* * * * * *',
        '0 0 30 2 *',
        '0 0 L * *',
        '? * * * *',
        'H * * * *',
      ]) {
        expect(await kit.answer(kit.driver.configure(schedule)), schedule).toBe('invalid_schedule');
      }
      expect(kit.stored()).toBe('');
      expect(await kit.answer(kit.driver.configure('* * * * 7'))).toBe('done');
    },
  ],
  [
    18,
    'the schedule is shown as configured, white space normalised',
    SINGLE,
    async (kit) => {
      await kit.g();
      await kit.driver.configure('  */15  * * *\t* ');
      expect((await kit.driver.status()).schedule).toBe('*/15 * * * *');
    },
  ],
  [
    19,
    'day of month or day of week',
    SINGLE,
    async (kit) => {
      await kit.g();
      await kit.driver.configure('0 0 13 * 5');
      expect(await kit.status()).toEqual(['Waiting', '0 0 13 * 5', 4 * 24 * 60]);
    },
  ],
  [
    20,
    'the next start is strictly later',
    SINGLE,
    async (kit) => {
      kit.clock.advance(10 * HOUR);
      await kit.g();
      await kit.driver.configure(HOURLY);
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 60]);
    },
  ],
]);

table('16.2 status', [
  [
    21,
    'waiting',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 60]);
    },
  ],
  [
    22,
    'not configured',
    SINGLE,
    async (kit) => {
      await kit.g();
      expect(await kit.status()).toEqual(['NotConfigured', null, null]);
      expect(kit.stored()).toBe('');
    },
  ],
  [
    23,
    'paused while idle',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H) paused');
      await kit.g();
      await kit.after(65 * MINUTE);
      expect(await kit.status()).toEqual(['Paused', HOURLY, 55]);
      expect(kit.stored()).toBe('');
    },
  ],
  [
    24,
    'paused in a cycle',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H) started{A} paused');
      await kit.g();
      await kit.after(65 * MINUTE);
      expect(await kit.status()).toEqual(['Paused', HOURLY, 0]);
      expect(kit.stored()).toBe('');
    },
  ],
  [
    25,
    'paused without a schedule',
    SINGLE,
    async (kit) => {
      kit.given('paused');
      expect(await kit.status()).toEqual(['Paused', null, null]);
    },
  ],
  [
    26,
    'pausing',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1) preq');
      expect(await kit.status()).toEqual(['Pausing', HOURLY, 0]);
    },
  ],
  [
    27,
    'due and unhealthy',
    { members: 'A B', clusterSize: 3 },
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      await kit.after(2 * HOUR);
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 0]);
    },
  ],
  [
    28,
    'not the leader',
    { leader: 'B' },
    async (kit) => {
      expect(await kit.answer(kit.driver.status())).toBe('not_leader');
      await expect(kit.driver.status()).rejects.toMatchObject({ data: { leader: 'B:2113' } });
      kit.leader = 'nobody';
      await expect(kit.driver.status()).rejects.toMatchObject({ data: { leader: null } });
    },
  ],
]);

table('16.3 complete cycles', [
  [
    29,
    'non-leaders first, the leader resigns',
    THREE,
    async (kit) => {
      kit.given('cfg(H)');
      kit.running('B', 'C');
      await kit.g();
      await kit.after(HOUR);
      expect(kit.stored()).toBe('started{A,B,C} des(B) nstart(B,#1)');
      kit.says('B', 'Success');
      await kit.g();
      expect(kit.stored()).toBe('ndone(B) des(C) nstart(C,#2)');
      kit.says('C', 'Success');
      await kit.g();
      expect(kit.stored()).toBe('ndone(C) des(A)');
      expect(kit.calls.filter((call) => call === 'resign' || call === 'start A')).toEqual(['resign']);
      // 33: it resigns again as long as nobody else leads.
      await kit.g(3);
      expect(kit.stored()).toBe('');
      expect(kit.calls.filter((call) => call === 'resign')).toHaveLength(4);
    },
  ],
  [
    30,
    'the new leader scavenges the old one',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1) ndone(B) des(C) nstart(C,#2) ndone(C) des(A)');
      kit.leadBy('B');
      await kit.g(2);
      expect(kit.stored()).toBe('nstart(A,#1) ndone(A) done{A,B,C}');
      const { lastCycle } = await kit.driver.status();
      expect(lastCycle).toMatchObject({
        clusterScavengeId: 'K',
        nodes: [
          { node: 'A:2113', result: 'Success' },
          { node: 'B:2113', scavengeId: '#1' },
          { node: 'C:2113', state: 'completed' },
        ],
      });
    },
  ],
  [
    31,
    'a single node scavenges itself',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      await kit.after(HOUR);
      await kit.g();
      expect(kit.stored()).toBe('started{A} des(A) nstart(A,#1) ndone(A) done{A}');
      expect(kit.calls).not.toContain('resign');
      expect(await kit.state()).toBe('Waiting');
    },
  ],
  [
    32,
    'read-only replicas by their checkpoints',
    { members: 'A B C r1 r2', checkpoints: { r2: 150 } },
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      await kit.after(HOUR);
      await kit.g(4);
      expect(kit.stored()).toBe(
        'started{A,B,C,r1,r2} des(r1) nstart(r1,#1) ndone(r1) des(B) nstart(B,#2) ndone(B) des(r2) nstart(r2,#3) ndone(r2) des(C) nstart(C,#4) ndone(C) des(A)',
      );
      expect(kit.calls.filter((call) => call === 'resign')).not.toHaveLength(0);
    },
  ],
  [
    34,
    'the designated node becomes leader before its start',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B)');
      kit.leadBy('B');
      await kit.g();
      expect(kit.stored()).toBe('');
      expect(kit.calls).toEqual(['resign']);
    },
  ],
  [
    35,
    'the node that is being scavenged becomes leader',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      kit.running('B', 'C');
      kit.leadBy('B');
      await kit.g();
      expect(kit.stored()).toBe('');
      kit.says('B', 'Success');
      await kit.g();
      expect(kit.stored()).toBe('ndone(B) des(C) nstart(C,#1)');
    },
  ],
  [
    36,
    'equal checkpoints: never the leader first',
    { checkpoints: { A: 1, B: 1, C: 1 } },
    async (kit) => {
      kit.given('cfg(H) started{A,B,C}');
      await kit.g();
      expect(kit.stored()).toMatch(/^des\([BC]\)/);
    },
  ],
  [
    37,
    'the leader is last even when it is furthest behind',
    { checkpoints: { A: 1 } },
    async (kit) => {
      kit.given('cfg(H) started{A,B,C}');
      await kit.g(3);
      expect(kit.stored()).toMatch(/^des\(B\).*ndone\(C\) des\(A\)$/);
    },
  ],
  [
    38,
    'the next start counts from the end of a long cycle',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H)');
      kit.running('A');
      await kit.g();
      await kit.after(HOUR);
      kit.stored();
      kit.says('A', 'Success');
      await kit.after(3 * HOUR + 5 * MINUTE);
      expect(kit.stored()).toBe('ndone(A) done{A}');
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 55]);
    },
  ],
  [
    39,
    'one voting node and a replica',
    { members: 'A r1', clusterSize: 1 },
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      await kit.after(HOUR);
      await kit.g(2);
      expect(kit.stored()).toBe(
        'started{A,r1} des(r1) nstart(r1,#1) ndone(r1) des(A) nstart(A,#2) ndone(A) done{A,r1}',
      );
      expect(kit.calls).not.toContain('resign');
    },
  ],
]);

table('16.4 pause and resume', [
  [
    40,
    'pause stops the run (200: it stopped within a second)',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      kit.running('B');
      await kit.g();
      expect(await kit.answer(kit.driver.pause())).toBe('paused');
      expect(kit.stored()).toBe('preq paused');
      expect(kit.calls).toContain('stop B #1');
      expect((await kit.driver.status()).cycle?.clusterScavengeId).toBe('K');
    },
  ],
  [
    41,
    'pause while waiting',
    THREE,
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      expect(await kit.answer(kit.driver.pause())).toBe('paused');
      expect(kit.stored()).toBe('paused');
    },
  ],
  [
    42,
    'pause while no start succeeds',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B)');
      kit.node('B', { start: unreachable });
      await kit.g();
      expect(await kit.answer(kit.driver.pause())).toBe('paused');
      expect(kit.stored()).toBe('preq paused');
      expect(kit.calls).toContain('stop B current');
    },
  ],
  [
    43,
    'resume goes on with the cycle',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) paused');
      kit.running('B');
      await kit.g();
      expect(await kit.answer(kit.driver.resume())).toBe('done');
      await kit.g();
      expect(kit.stored()).toBe('resumed des(B) nstart(B,#1)');
      expect((await kit.driver.status()).cycle?.clusterScavengeId).toBe('K');
    },
  ],
  [
    44,
    'the stop succeeds in the end (202)',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      kit.running('B');
      let stops = 0;
      kit.node('B', { stop: () => (++stops < 3 ? unreachable() : { kind: 'stopped' }) });
      await kit.g();
      expect(await kit.answer(kit.driver.pause())).toBe('pausing');
      expect(kit.stored()).toBe('preq');
      await kit.g(2);
      expect(kit.stored()).toBe('paused');
    },
  ],
  [
    45,
    'the node leaves while it is to be stopped',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      kit.node('B', { last: unreachable, stop: unreachable });
      await kit.g();
      expect(await kit.answer(kit.driver.pause())).toBe('pausing');
      kit.members = ['A', 'C'];
      await kit.g();
      expect(kit.stored()).toBe('preq');
      kit.members = ['A', 'C', 'X'];
      await kit.g();
      expect(kit.stored()).toBe('members(+X,-B) paused');
    },
  ],
  [
    46,
    'pause twice, not configured',
    SINGLE,
    async (kit) => {
      expect(await kit.answer(kit.driver.pause())).toBe('paused');
      expect(await kit.answer(kit.driver.pause())).toBe('paused');
      expect(kit.stored()).toBe('paused');
      expect(await kit.state()).toBe('Paused');
    },
  ],
  [
    47,
    'configure while paused',
    SINGLE,
    async (kit) => {
      kit.given('paused');
      await kit.driver.configure(HOURLY);
      expect(await kit.status()).toEqual(['Paused', HOURLY, 60]);
      await kit.driver.resume();
      expect(kit.stored()).toBe('cfg resumed');
      expect(await kit.state()).toBe('Waiting');
    },
  ],
  [
    48,
    'resume without a schedule',
    SINGLE,
    async (kit) => {
      kit.given('paused');
      await kit.driver.resume();
      expect(kit.stored()).toBe('resumed');
      expect(await kit.state()).toBe('NotConfigured');
    },
  ],
  [
    49,
    'resume while pausing',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1) preq');
      kit.node('B', { stop: unreachable });
      await kit.g();
      expect(await kit.answer(kit.driver.resume())).toBe('auto_scavenge_pausing');
      // 50
      expect(await kit.answer(kit.driver.pause())).toBe('pausing');
      expect(kit.stored()).toBe('');
    },
  ],
  [
    51,
    'starts during a pause are not made up for',
    SINGLE,
    async (kit) => {
      kit.given('cfg(H)');
      await kit.g();
      await kit.after(10 * MINUTE);
      await kit.driver.pause();
      await kit.after(3 * HOUR);
      await kit.driver.resume();
      expect(kit.stored()).toBe('paused resumed');
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 50]);
    },
  ],
  [
    52,
    'resume of what goes on',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      expect(await kit.answer(kit.driver.resume())).toBe('done');
      expect(kit.stored()).toBe('');
    },
  ],
  [
    53,
    'pause while no node is chosen',
    { members: 'A B', clusterSize: 3 },
    async (kit) => {
      kit.given('cfg(H) started{A,B,C}');
      await kit.g();
      expect(await kit.answer(kit.driver.pause())).toBe('paused');
      expect(kit.stored()).toBe('paused');
      expect(kit.calls).toEqual([]);
    },
  ],
  [
    54,
    'the run has ended by itself (404 counts as stopped)',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      expect(await kit.answer(kit.driver.pause())).toBe('paused');
      expect(kit.stored()).toBe('preq paused');
    },
  ],
  [
    55,
    'the run takes longer than a second to stop',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      kit.node('B', { stop: () => ({ kind: 'stopping' }) });
      expect(await kit.answer(kit.driver.pause())).toBe('pausing');
      expect(kit.stored()).toBe('preq');
      kit.node('B', { stop: () => ({ kind: 'stopped' }) });
      await kit.g();
      expect(kit.stored()).toBe('paused');
    },
  ],
  [
    56,
    'members change while paused',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} paused');
      kit.members = ['A', 'B', 'C', 'X', 'r1'];
      kit.clusterSize = 4;
      await kit.g();
      expect(kit.stored()).toBe('members(+X,r1,-)');
      expect(await kit.state()).toBe('Paused');
    },
  ],
  [
    57,
    'a pause survives a change of leader',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} paused');
      kit.leadBy('C');
      await kit.g();
      expect(kit.stored()).toBe('');
      expect(await kit.status()).toEqual(['Paused', HOURLY, 0]);
    },
  ],
]);

table('16.5 trouble with nodes', [
  [
    58,
    'a single node under another address',
    { members: 'Y', self: 'Y' },
    async (kit) => {
      kit.given('cfg(H) started{X} des(X) nstart(X,#99)');
      kit.running('Y');
      await kit.g();
      expect(kit.stored()).toBe('members(+Y,-X) des(Y) nstart(Y,#1)');
      expect((await kit.driver.status()).cycle?.clusterScavengeId).toBe('K');
    },
  ],
  [
    59,
    'a scavenge of a user is waited for',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B)');
      kit.running('B');
      let starts = 0;
      kit.node('B', { start: () => (++starts < 4 ? { kind: 'busy' } : { kind: 'started', scavengeId: '#1' }) });
      for (let i = 0; i < 3; i++) await kit.after(20 * MINUTE);
      expect(kit.stored()).toBe('');
      await kit.g();
      expect(kit.stored()).toBe('nstart(B,#1)');
    },
  ],
  [
    60,
    'no answer for a while',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#1)');
      kit.node('B', { last: unreachable });
      await kit.g(10);
      expect(kit.stored()).toBe('');
    },
  ],
  [
    61,
    'stopped by an operator',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.says('B', 'Stopped');
      kit.running('C');
      await kit.g();
      expect(kit.stored()).toBe('ndone(B,Stopped) des(C) nstart(C,#1)');
      expect(kit.lines.some((line) => line.startsWith('warning'))).toBe(true);
    },
  ],
  [
    62,
    'failed',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.says('B', 'Errored');
      kit.running('C');
      await kit.g();
      expect(kit.stored()).toBe('ndone(B,Errored) des(C) nstart(C,#1)');
    },
  ],
  [
    63,
    'cut off by a restart of the node',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.history('#99', 'Interrupted');
      kit.says('B', 'Unknown', 'none');
      await kit.g();
      expect(kit.stored()).toBe('des(B) nstart(B,#1)');
    },
  ],
  [
    64,
    'cut off, no history',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.says('B', 'Unknown', 'none');
      await kit.g();
      expect(kit.stored()).toBe('des(B) nstart(B,#1)');
    },
  ],
  [
    65,
    'restarted after it had ended',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.history('#99', 'Success');
      kit.says('B', 'Unknown', 'none');
      kit.running('C');
      await kit.g();
      expect(kit.stored()).toBe('ndone(B) des(C) nstart(C,#1)');
    },
  ],
  [
    66,
    'a later scavenge has succeeded',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.says('B', 'Success', '#9');
      kit.running('C');
      await kit.g();
      expect(kit.stored()).toBe('ndone(B) des(C) nstart(C,#1)');
    },
  ],
  [
    67,
    'a later scavenge goes on',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.says('B', 'InProgress', '#9');
      await kit.g();
      expect(kit.stored()).toBe('');
      expect(kit.lines.some((line) => line.startsWith('warning'))).toBe(true);
    },
  ],
  [
    '67a',
    'a later scavenge was stopped: what became of ours says its history',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.history('#99', 'Success');
      kit.says('B', 'Stopped', '#9');
      kit.running('C');
      await kit.g();
      expect(kit.stored()).toBe('ndone(B) des(C) nstart(C,#1)');
    },
  ],
  [
    68,
    'the designated replica leaves',
    { members: 'A B C r1' },
    async (kit) => {
      kit.given('cfg(H) started{A,B,C,r1} des(r1) nstart(r1,#99)');
      kit.running('r1', 'B');
      await kit.g();
      kit.members = ['A', 'B', 'C'];
      await kit.g();
      expect(kit.stored()).toBe('members(+,-r1) des(B) nstart(B,#1)');
    },
  ],
  [
    69,
    'the designated node leaves; 70: it comes back',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.running('B');
      kit.members = ['A', 'C'];
      await kit.g();
      kit.members = ['A', 'B', 'C'];
      await kit.g();
      expect(kit.stored()).toBe('');
      expect(kit.calls).toEqual(['ask B', 'ask B']);
    },
  ],
  [
    71,
    'a clone appears',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.running('B', 'C');
      kit.members = ['A', 'B', 'C', 'X'];
      await kit.g();
      expect(kit.stored()).toBe('');
      kit.says('B', 'Success');
      await kit.g(2);
      expect(kit.stored()).toBe('ndone(B)');
      kit.members = ['A', 'B', 'C'];
      await kit.g();
      expect(kit.stored()).toBe('des(C) nstart(C,#1)');
    },
  ],
  [
    72,
    'a replica that leaves and comes back is scavenged again',
    { members: 'A B C r1' },
    async (kit) => {
      kit.given('cfg(H) started{A,B,C,r1} des(r1) nstart(r1,#98) ndone(r1) des(B) nstart(B,#99)');
      kit.running('B');
      kit.members = ['A', 'B', 'C'];
      await kit.g();
      kit.members = ['A', 'B', 'C', 'r1'];
      await kit.g();
      expect(kit.stored()).toBe('members(+,-r1) members(+r1,-)');
      expect((await kit.driver.status()).cycle?.nodes.at(-1)).toEqual({
        node: 'r1:2113',
        state: 'waiting',
        scavengeId: null,
        result: null,
      });
    },
  ],
  [
    73,
    'the lead is lost',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.running('B');
      await kit.g();
      kit.leader = 'C';
      kit.calls.length = 0;
      await kit.g();
      expect(kit.stored()).toBe('');
      expect(kit.calls).toEqual([]);
      expect(await kit.answer(kit.driver.status())).toBe('not_leader');
    },
  ],
  [
    74,
    'another writer was first: the state is read again, the driver lives on',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      await kit.g(0);
      kit.beforeAppend = () => {
        kit.beforeAppend = () => {};
        kit.given('preq paused');
      };
      await kit.g(2);
      expect(kit.stored()).toBe('');
      expect(await kit.state()).toBe('Paused');
      expect(await kit.answer(kit.driver.resume())).toBe('done');
      await kit.g();
      expect(kit.stored()).toMatch(/^resumed des\(B\)/);
    },
  ],
]);

table('commands and the driver', [
  [
    80,
    'a write that fails is told, and the driver lives on',
    SINGLE,
    async (kit) => {
      await kit.g();
      kit.beforeAppend = () => {
        throw new SkuaError('disk_full', 'Full.');
      };
      expect(await kit.answer(kit.driver.configure(HOURLY))).toBe('disk_full');
      kit.beforeAppend = () => {};
      expect(await kit.answer(kit.driver.configure(HOURLY))).toBe('done');
    },
  ],
  [
    87,
    'switched off at run time',
    THREE,
    async (kit) => {
      kit.given('cfg(H) started{A,B,C} des(B) nstart(B,#99)');
      kit.running('B');
      await kit.g();
      kit.isOff = 'The licence has expired.';
      kit.calls.length = 0;
      await kit.g();
      expect(kit.calls).toEqual([]);
      expect(kit.driver.enabled()).toEqual({ enabled: false, reason: 'The licence has expired.' });
      expect(await kit.answer(kit.driver.status())).toBe('auto_scavenge_off');
      expect(await kit.answer(kit.driver.pause())).toBe('auto_scavenge_off');
      kit.isOff = null;
      await kit.g();
      expect(kit.calls).toEqual(['ask B']);
    },
  ],
  [
    94,
    'too many commands',
    SINGLE,
    async (kit) => {
      const answers = Array.from({ length: 33 }, () => kit.answer(kit.driver.status()));
      const codes = await Promise.all(answers);
      expect(codes.filter((code) => code === 'auto_scavenge_busy')).toHaveLength(1);
    },
  ],
  [
    'clock',
    'the wall clock is set back by years: starts are computed from there',
    SINGLE,
    async (kit) => {
      kit.clock.now = Date.UTC(2031, 0, 1);
      await kit.g();
      await kit.driver.configure(HOURLY);
      kit.clock.now = T0;
      await kit.g();
      expect(await kit.status()).toEqual(['Waiting', HOURLY, 60]);
      await kit.after(HOUR);
      expect(kit.stored()).toMatch(/^cfg started/);
    },
  ],
]);
