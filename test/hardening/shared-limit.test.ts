import { describe, expect, test } from 'vitest';
import { SharedLimit } from '../../core/base/shared-limit.ts';
import { Random } from '../support/random.ts';

/** How much a caller gets who takes one by one until it is refused. */
function takeAll(limit: SharedLimit, caller: string | null): number {
  let count = 0;
  while (limit.tryTake(caller)) count++;
  return count;
}

describe('a limit that callers share', () => {
  test('one alone takes three quarters, and who holds little still gets in', () => {
    const limit = new SharedLimit(1_600);
    expect([takeAll(limit, 'greedy'), takeAll(limit, 'other'), takeAll(limit, 'third')]).toEqual([1_200, 100, 100]);
    expect([limit.tryTake('greedy'), limit.tryTake(null), limit.held]).toEqual([false, false, 1_400]);
  });
  test('one largest request is little as well, though never the whole reserve', () => {
    const limit = new SharedLimit(1_600, { little: 300 });
    limit.take('greedy', 1_200);
    expect([limit.tryTake('other', 300), limit.tryTake('other', 1), limit.tryTake('third', 101)]).toEqual([
      true,
      false,
      false,
    ]);
    const narrow = new SharedLimit(1_600, { little: 1_000_000 });
    narrow.take('greedy', 1_200);
    expect(takeAll(narrow, 'other')).toBe(300);
  });
  test('what is given back is free for all, and nothing is kept of who holds nothing', () => {
    const limit = new SharedLimit(16);
    expect(takeAll(limit, 'a')).toBe(12);
    expect([limit.callers, limit.heldBy('a')]).toEqual([1, 12]);
    limit.giveBack('a', 12);
    expect([limit.callers, limit.held, takeAll(limit, 'b')]).toEqual([0, 0, 12]);
  });
  test('on random histories nobody takes all, and nobody who holds little is refused while there is room', () => {
    const random = new Random(35);
    for (let round = 0; round < 20; round++) {
      const total = random.int(16, 4_000);
      const limit = new SharedLimit(total);
      const held = new Map<string, number>();
      const sum = () => [...held.values()].reduce((all, one) => all + one, 0);
      for (let i = 0; i < 1_000; i++) {
        const caller = `caller ${random.int(0, 7)}`;
        const holds = held.get(caller) ?? 0;
        if (random.int(0, 3) > 0) {
          const amount = random.int(1, Math.max(1, Math.floor(total / 8)));
          const before = sum();
          const isTaken = limit.tryTake(caller, amount);
          if (isTaken) held.set(caller, holds + amount);
          expect(isTaken).toBe(
            before + amount <= Math.ceil((total * 3) / 4) ||
              (before + amount <= total && holds + amount <= Math.max(1, Math.floor(total / 16))),
          );
        } else if (holds > 0) {
          const amount = random.int(1, holds);
          limit.giveBack(caller, amount);
          held.set(caller, holds - amount);
        }
        expect([limit.held, limit.callers, limit.heldBy(caller)]).toEqual([
          sum(),
          [...held.values()].filter((one) => one > 0).length,
          held.get(caller) ?? 0,
        ]);
        expect(Math.max(0, ...held.values())).toBeLessThanOrEqual(Math.ceil((total * 3) / 4));
      }
    }
  });
});
