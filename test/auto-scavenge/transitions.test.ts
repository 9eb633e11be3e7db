import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { HOUR, Kit, MINUTE, unreachable } from './kit.ts';
import type { KitOptions } from './kit.ts';

/**
 * The transition table, a row a test. Row 41 is about HTTP. Row 40 has no counterpart: a driver of ours does not stop
 * for good. After a write that failed it reads the state anew (rows 38 and 39), and commands are answered as before.
 */

/** Every state, and the events that lead to it. B is away, so that nothing moves on by itself. */
const STATES = {
  NC: '',
  W: 'cfg(H)',
  C: 'cfg(H) started{A,B,C}',
  S: 'cfg(H) started{A,B,C} des(B)',
  M: 'cfg(H) started{A,B,C} des(B) nstart(B,#99)',
  P: 'cfg(H) started{A,B,C} des(B) nstart(B,#99) preq',
  PC: 'cfg(H) started{A,B,C} paused',
  PI: 'cfg(H) paused',
} as const;
type Code = keyof typeof STATES;
const SHOWN: Readonly<Record<Code, string>> = {
  NC: 'NotConfigured',
  W: 'Waiting',
  C: 'InProgress',
  S: 'InProgress',
  M: 'InProgress',
  P: 'Pausing',
  PC: 'Paused',
  PI: 'Paused',
};
const ALL = Object.keys(STATES) as Code[];

function at(code: Code, options: KitOptions = {}): Kit {
  const kit = new Kit(options);
  if (STATES[code] !== '') kit.given(STATES[code]);
  kit.node('B', { start: unreachable, last: unreachable, stop: unreachable });
  kit.running('C');
  return kit;
}

/** What a command answers, stores and leads to, before time goes on. */
async function command(kit: Kit, run: (kit: Kit) => Promise<unknown>): Promise<string> {
  const answer = await kit.answer(run(kit));
  return `${String(answer)} | ${kit.stored()} | ${await kit.state()}`;
}

const configure = (kit: Kit) => kit.driver.configure('0 0 * * *');
const pause = (kit: Kit) => kit.driver.pause();
const resume = (kit: Kit) => kit.driver.resume();

describe('commands', () => {
  test.each(ALL)('1: not on the leader (%s)', async (code) => {
    const kit = at(code, { leader: 'C' });
    for (const run of [configure, pause, resume, (k: Kit) => k.driver.status()])
      expect(await kit.answer(run(kit))).toBe('not_leader');
    expect(kit.stored()).toBe('');
  });

  test.each(ALL)('5, 6: configure in %s', async (code) => {
    expect(await command(at(code), configure)).toBe(`done | cfg | ${code === 'NC' ? 'Waiting' : SHOWN[code]}`);
  });

  test.each(ALL)('7: configure with what is no schedule in %s', async (code) => {
    expect(await command(at(code), (kit) => kit.driver.configure('never'))).toBe(
      `invalid_schedule |  | ${SHOWN[code]}`,
    );
  });

  test.each([
    ['NC', 'paused | paused | Paused', 8],
    ['W', 'paused | paused | Paused', 8],
    ['C', 'paused | paused | Paused', 9],
    ['S', 'pausing | preq | Pausing', 10],
    ['M', 'pausing | preq | Pausing', 10],
    ['P', 'pausing |  | Pausing', 11],
    ['PI', 'paused |  | Paused', 12],
    ['PC', 'paused |  | Paused', 12],
  ] as const)('pause in %s: %s (row %i)', async (code, expected, _) => {
    expect(await command(at(code), pause)).toBe(expected);
  });

  test.each([
    ['S', 10],
    ['M', 10],
    ['P', 11],
  ] as const)('pause in %s, which stops at once: 200 (row %i)', async (code, _) => {
    const kit = at(code);
    kit.node('B', { stop: () => ({ kind: 'stopped' }) });
    expect(await command(kit, pause)).toBe(`paused | ${code === 'P' ? '' : 'preq '}paused | Paused`);
  });

  test.each([
    ['PI', 'done | resumed | Waiting', 13],
    ['PC', 'done | resumed | InProgress', 15],
    ['P', 'auto_scavenge_pausing |  | Pausing', 16],
    ['NC', 'done |  | NotConfigured', 17],
    ['W', 'done |  | Waiting', 17],
    ['C', 'done |  | InProgress', 17],
    ['S', 'done |  | InProgress', 17],
    ['M', 'done |  | InProgress', 17],
  ] as const)('resume in %s: %s (row %i)', async (code, expected, _) => {
    expect(await command(at(code), resume)).toBe(expected);
  });

  test.each(ALL)('18: status in %s stores nothing', async (code) => {
    expect(await command(at(code), async (kit) => (await kit.driver.status()).state)).toBe(
      `${SHOWN[code]} |  | ${SHOWN[code]}`,
    );
  });
});

describe('roles', () => {
  test.each(ALL)('2 to 4: %s is loaded when the lead is taken, and forgotten when it is lost', async (code) => {
    const kit = at(code, { leader: 'C' });
    await kit.g();
    expect([kit.stored(), kit.calls]).toEqual(['', []]);
    kit.leader = 'A';
    expect(await kit.state()).toBe(SHOWN[code]);
    kit.leader = 'C';
    await kit.g();
    expect(await kit.answer(kit.driver.status())).toBe('not_leader');
  });
});

/** What one tick stores. */
async function tick(kit: Kit): Promise<string> {
  await kit.g();
  return kit.stored();
}

describe('time', () => {
  test('25: the leader resigns; alone it stays', async () => {
    const kit = new Kit();
    kit.given('cfg(H) started{A,B,C} des(A)');
    expect(await tick(kit)).toBe('');
    expect(kit.calls).toEqual(['resign']);
    kit.dead.add('B').add('C');
    expect(await tick(kit)).toBe('');
    expect(kit.calls).toEqual(['resign']);
  });

  test.each(['Unknown', 'Interrupted', 'Whatever'])('29: %s', async (result) => {
    const kit = at('M');
    kit.says('B', result, '#99');
    expect(await tick(kit)).toBe('des(B)');
  });

  test.each(['NC', 'PI', 'PC'] as const)('42: nothing in %s', async (code) => {
    const kit = at(code);
    await kit.after(3 * HOUR);
    expect([kit.stored(), kit.calls]).toEqual(['', []]);
  });
});

describe('members', () => {
  const changed = (code: Code, members: string) => {
    const kit = at(code);
    kit.members = members.split(' ');
    return kit;
  };

  test.each(['C', 'S', 'M', 'P', 'PC'] as const)('34: in %s a replica joins', async (code) => {
    const kit = changed(code, 'A B C r1');
    expect(await tick(kit)).toMatch(/^members\(\+r1,-\)/);
    expect(await kit.state()).toBe(SHOWN[code]);
  });

  test.each(['S', 'M'] as const)('35: in %s the designated node is replaced', async (code) => {
    const kit = changed(code, 'A C X');
    expect(await tick(kit)).toMatch(/^members\(\+X,-B\) des\([XC]\)/);
  });

  test('36, 30: while pausing the designated node is replaced', async () => {
    expect(await tick(changed('P', 'A C X'))).toBe('members(+X,-B) paused');
  });

  test.each(ALL)('37: in %s with a member missing, or all as before', async (code) => {
    const kit = changed(code, 'A C');
    expect(await tick(kit)).not.toContain('members');
    kit.members = ['A', 'B', 'C'];
    expect(await tick(kit)).not.toContain('members');
  });

  test.each(['NC', 'W', 'PI'] as const)('37: in %s members may change', async (code) =>
    expect(await tick(changed(code, 'A C X'))).toBe(''),
  );
});

describe('writes that fail', () => {
  const failing = async (code: string) => {
    const kit = at('M');
    kit.says('B', 'Success', '#99');
    kit.beforeAppend = () => {
      throw new SkuaError(code as 'disk_full', 'No.');
    };
    return { kit, stored: await tick(kit) };
  };

  test.each(['not_leader', 'disk_full', 'wrong_expected_version', 'stream_deleted'])(
    '38, 39: %s: nothing is applied, the next tick tries again',
    async (code) => {
      const { kit, stored } = await failing(code);
      expect(stored).toBe('');
      expect(await kit.state()).toBe('InProgress');
      kit.beforeAppend = () => {};
      expect(await tick(kit)).toMatch(/^ndone\(B\) des\(C\)/);
    },
  );
});

describe('lost nodes', () => {
  test.each([
    ['S', 'start B'],
    ['M', 'ask B'],
  ] as const)('in %s: Errored after half an hour without an answer', async (code, call) => {
    const kit = at(code);
    kit.stored();
    for (let minute = 0; minute <= 29; minute++) await kit.after(MINUTE);
    expect(kit.stored()).toBe('');
    // In the second half the node is only asked whether it is there.
    expect(kit.calls.filter((text) => text === call)).toHaveLength(15);
    expect(kit.calls.filter((text) => text === 'probe B')).toHaveLength(15);
    await kit.after(MINUTE);
    expect(kit.stored()).toMatch(/^ndone\(B,Errored\) des\(C\)/);
  });

  test('a useful answer begins it anew; a sleeping leader proves nothing', async () => {
    const kit = at('M');
    for (let minute = 0; minute < 29; minute++) await kit.after(MINUTE);
    kit.says('B', 'InProgress', '#99');
    await kit.after(MINUTE);
    kit.node('B', { last: unreachable });
    await kit.after(10 * HOUR);
    expect(kit.stored()).toBe('');
    await kit.after(29 * MINUTE);
    expect(kit.stored()).toBe('');
    await kit.after(MINUTE);
    expect(kit.stored()).toMatch(/^ndone\(B,Errored\)/);
  });

  test('pausing ends all the same', async () => {
    const kit = at('P');
    for (let minute = 0; minute <= 30; minute++) await kit.after(MINUTE);
    expect(kit.stored()).toBe('ndone(B,Errored) paused');
  });

  test('away for long when its turn comes: not waited for again', async () => {
    const kit = new Kit();
    kit.given('cfg(H) started{A,B,C} des(C) nstart(C,#98)');
    kit.dead.add('B');
    kit.node('B', { start: unreachable });
    kit.running('C');
    for (let minute = 0; minute <= 30; minute++) await kit.after(MINUTE);
    kit.says('C', 'Success');
    await kit.g();
    expect(kit.stored()).toBe('ndone(C) des(B) ndone(B,Errored) des(A)');
  });

  test('nodes that can be reached come first', async () => {
    const kit = new Kit();
    kit.given('cfg(H) started{A,B,C}');
    kit.dead.add('B');
    await kit.g();
    expect(kit.stored()).toMatch(/^des\(C\)/);
  });

  test('a voting member that is missing for good holds up no cycle; those that join count', async () => {
    const kit = at('C', { members: 'A C', clusterSize: 3 });
    kit.node('C', {});
    kit.says('C', 'Success');
    for (let minute = 0; minute < 30; minute++) await kit.after(MINUTE);
    expect(kit.stored()).toBe('');
    kit.members.push('r1');
    await kit.after(MINUTE);
    expect(kit.stored()).toMatch(/^members\(\+r1,-\) des\(r1\)/);
    await kit.g(3);
    expect(kit.stored()).toMatch(/^ndone\(r1\) .*ndone\(C\) des\(B\) ndone\(B,Errored\) des\(A\)$/);
  });

  test('a leader that nobody relieves', async () => {
    const kit = new Kit();
    kit.given('cfg(H) started{A} des(A)');
    kit.members = ['A', 'B', 'C'];
    await kit.g();
    for (let minute = 0; minute < 31; minute++) await kit.after(MINUTE);
    expect(kit.stored()).toMatch(/^members\(\+B,C,-\) ndone\(A,Errored\) des\(B\)/);
  });

  test('a node that loses its run again and again', async () => {
    const kit = at('M');
    kit.node('B', {
      start: () => ({ kind: 'started', scavengeId: kit.nextId() }),
      last: () => ({ kind: 'last', scavengeId: null, result: 'Unknown' }),
    });
    await kit.g(20);
    const stored = kit.stored();
    expect(stored.match(/des\(B\)/g)).toHaveLength(9);
    expect(stored).toMatch(/ndone\(B,Errored\) des\(C\)/);
  });
});

describe('late orders', () => {
  test('an order that is refused as late is made anew', async () => {
    const kit = at('S');
    const attempts: number[] = [];
    kit.node('B', {
      start: ({ attempt }) => {
        attempts.push(attempt);
        return attempts.length === 1 ? { kind: 'late' } : { kind: 'started', scavengeId: '#7' };
      },
    });
    await kit.g(2);
    expect(kit.stored()).toBe('des(B) nstart(B,#7)');
    expect(attempts).toEqual([1, 2]);
  });

  test('a repeat carries the same attempt, an order to stop a higher one', async () => {
    const kit = at('S');
    const orders: number[] = [];
    kit.node('B', {
      start: ({ attempt }) => {
        orders.push(attempt);
        return { kind: 'unreachable', reason: 'lost' };
      },
    });
    const stop = kit.stopScavenge.bind(kit);
    kit.stopScavenge = (node, order, id) => {
      orders.push(order.attempt);
      return stop(node, order, id);
    };
    await kit.g(2);
    await kit.driver.pause();
    expect(orders).toEqual([1, 1, 2]);
  });
});
