import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { HOUR, Kit, MINUTE } from './kit.ts';

/**
 * The process dies at every single write of a cycle with a pause and a change of members in it, before the event is
 * stored or after; another one takes its place. Whatever the moment: the cycle comes to its end, no node is scavenged
 * twice, and none is started twice for one order.
 */

const END = /done\{[^}]*\}$/;

interface Run {
  readonly stored: string;
  readonly writes: number;
  readonly starts: Readonly<Record<string, number>>;
}

async function run(crashAt: number, moment: 'before' | 'after'): Promise<Run> {
  const kit = new Kit({ clusterSize: 1, members: 'A r1 r2' });
  const byAttempt = new Map<number, string>();
  const starts: Record<string, number> = {};
  for (const name of ['A', 'r1', 'r2', 'r3']) {
    kit.node(name, {
      start: ({ attempt }) => {
        if (!byAttempt.has(attempt)) {
          byAttempt.set(attempt, kit.nextId());
          starts[name] = (starts[name] ?? 0) + 1;
        }
        return { kind: 'started', scavengeId: byAttempt.get(attempt)! };
      },
    });
  }
  kit.given('cfg(H)');
  let writes = 0;
  let isDead = false;
  const crash = () => {
    isDead = true;
    throw new SkuaError('store_closed', 'The process is gone.');
  };
  kit.beforeAppend = () => {
    if (isDead) crash();
    if (writes++ === crashAt) {
      // Behind this the test itself takes the place of the store.
      if (moment === 'before') crash();
      queueMicrotask(() => {
        isDead = true;
      });
    }
  };
  const step = async (work: () => Promise<unknown>) => {
    await work().catch(() => {});
    if (!isDead) return;
    isDead = false;
    kit.driver = kit.newDriver();
    // The clients and timers of the dead process come back.
    await work().catch(() => {});
  };
  kit.clock.advance(HOUR);
  kit.running('r1', 'r2');
  await step(() => kit.g());
  await step(() => kit.driver.pause());
  await step(() => kit.g());
  await step(() => kit.driver.resume());
  await step(() => kit.g());
  kit.says('r1', 'Success');
  kit.says('r2', 'Success');
  kit.members.push('r3');
  for (let i = 0; i < 8; i++)
    await step(async () => {
      await kit.after(MINUTE);
    });
  return { stored: kit.stored(), writes, starts };
}

describe('a crash between any two writes', () => {
  test('is passed over', async () => {
    const undisturbed = await run(-1, 'before');
    expect(undisturbed.stored).toBe(
      'started{A,r1,r2} des(r1) nstart(r1,#1) preq paused resumed des(r1) nstart(r1,#2) members(+r3,-) ndone(r1) des(r3) nstart(r3,#3) ndone(r3) des(r2) nstart(r2,#4) ndone(r2) des(A) nstart(A,#5) ndone(A) done{A,r1,r2,r3}',
    );
    for (let crashAt = 0; crashAt < undisturbed.writes; crashAt++) {
      for (const moment of ['before', 'after'] as const) {
        const { stored, starts } = await run(crashAt, moment);
        const at = `${moment} write ${crashAt}: ${stored}`;
        expect(stored, at).toMatch(END);
        expect(stored.match(/started\{/g), at).toHaveLength(1);
        for (const node of ['A', 'r1', 'r2', 'r3']) {
          expect(stored.split(`ndone(${node})`), at).toHaveLength(2);
          expect(starts[node], at).toBeLessThanOrEqual(node === 'r1' ? 2 : 1);
        }
      }
    }
  });
});
