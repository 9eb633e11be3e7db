import { describe, expect, test } from 'vitest';
import { ByteBudget } from '../../core/base/byte-budget.ts';
import { Random } from '../support/random.ts';
import { ManualClock } from '../support/manual-clock.ts';

const OPTIONS = { of: 'replies', totalBytes: 1_000, reserveBytes: 200, smallBytes: 50, waitersMax: 8, waitMs: 5_000 };

function setup(options: Partial<typeof OPTIONS> = {}) {
  const clock = new ManualClock();
  return { clock, budget: new ByteBudget({ ...OPTIONS, ...options }, clock) };
}

/** The order in which promises end, and how. */
function watch() {
  const ended: string[] = [];
  const note = (name: string, promise: Promise<void>) =>
    void promise.then(
      () => ended.push(name),
      (error: { code: string }) => ended.push(`${name} ${error.code}`),
    );
  return {
    ended,
    note,
    settle: () =>
      new Promise((resolve) => {
        setImmediate(resolve);
      }),
  };
}

describe('a budget of bytes', () => {
  test('there is room until the total is held, and again when it has been given back', () => {
    const { budget } = setup();
    const [a, b] = [budget.share(), budget.share()];
    expect([a.tryGrow(500), b.tryGrow(300), b.tryGrow(1)]).toEqual([true, true, false]);
    a.release();
    expect([b.tryGrow(400), budget.heldBytes]).toEqual([true, 700]);
    b.close();
    expect([b.isClosed, b.tryGrow(1), budget.heldBytes]).toEqual([true, false, 0]);
  });
  test('small shares have a reserve that others can not take', () => {
    const { budget } = setup();
    expect(budget.share().tryGrow(800)).toBe(true);
    expect(budget.share().tryGrow(51)).toBe(false);
    expect([1, 2, 3, 4, 5].map(() => budget.share().tryGrow(50))).toEqual([true, true, true, true, false]);
  });
  test('who waits is served in the order of coming, and nobody overtakes', async () => {
    const { budget } = setup();
    const { ended, note, settle } = watch();
    const holder = budget.share();
    holder.tryGrow(800);
    note('large', budget.share().grow(700));
    note('less', budget.share().grow(60));
    expect(budget.share().tryGrow(60)).toBe(false);
    holder.resize(500);
    await settle();
    expect(ended).toEqual([]);
    holder.close();
    await settle();
    expect([ended, budget.heldBytes, budget.waiting]).toEqual([['large', 'less'], 760, 0]);
  });
  test('what is larger than the total has its turn alone', async () => {
    const { budget } = setup();
    const { ended, note, settle } = watch();
    const holder = budget.share();
    holder.tryGrow(100);
    note('huge', budget.share().grow(5_000));
    await settle();
    expect(ended).toEqual([]);
    holder.close();
    await settle();
    expect(ended).toEqual(['huge']);
  });
  test('the queue has an end, and a wait too: too_busy', async () => {
    const { budget, clock } = setup({ waitersMax: 1 });
    const { ended, note, settle } = watch();
    budget.share().tryGrow(800);
    note('waits', budget.share().grow(100));
    note('one too many', budget.share().grow(100));
    await settle();
    expect(ended).toEqual(['one too many too_busy']);
    await clock.advance(OPTIONS.waitMs);
    await settle();
    expect([ended, budget.waiting, clock.sleeping]).toEqual([['one too many too_busy', 'waits too_busy'], 0, 0]);
  });
  test('a share that is closed waits no more, and lets the next one through', async () => {
    const { budget, clock } = setup();
    const { ended, note, settle } = watch();
    budget.share().tryGrow(700);
    const gone = budget.share();
    note('gone', gone.grow(200));
    note('next', budget.share().grow(60));
    gone.close();
    await settle();
    expect([ended.toSorted(), clock.sleeping]).toEqual([['gone aborted', 'next'], 0]);
  });
  test('of what has arrived, the first who waits may go beyond the total, and then the next', async () => {
    const { budget } = setup();
    const { ended, note, settle } = watch();
    const [a, b] = [budget.share(), budget.share()];
    expect([a.add(500), b.add(400)]).toEqual([true, false]);
    note('b', b.room());
    await settle();
    expect(ended).toEqual(['b']);
    expect([a.add(1), b.add(300), b.add(300)]).toEqual([false, true, true]);
    note('a', a.room());
    await settle();
    expect(ended).toEqual(['b']);
    b.close();
    await settle();
    expect([ended, budget.heldBytes, a.add(10)]).toEqual([['b', 'a'], 501, true]);
  });
  test('who holds little has its part whatever another holds, and waits behind nobody who holds much', async () => {
    const { budget } = setup({ totalBytes: 1_600, reserveBytes: 400 });
    const { ended, note, settle } = watch();
    const greedy = Array.from({ length: 3 }, () => budget.share(null, 'greedy'));
    expect(greedy.map((share) => share.tryGrow(400))).toEqual([true, true, true]);
    note('greedy', budget.share(null, 'greedy').grow(100));
    const [other, more] = [budget.share(null, 'other'), budget.share(null, 'other')];
    expect([other.tryGrow(90), more.tryGrow(60)]).toEqual([true, false]);
    // What is small counts apart, so that who holds much still has room for it.
    expect([1, 2, 3].map(() => budget.share(null, 'greedy').tryGrow(40))).toEqual([true, true, false]);
    expect(budget.heldBytes).toBeLessThan(1_600);
    await settle();
    expect(ended).toEqual([]);
    greedy[0]!.close();
    await settle();
    expect(ended).toEqual(['greedy']);
  });
  test('places in the queue are shared as well, and who holds little is served first', async () => {
    const { budget } = setup({ waitersMax: 16 });
    const { ended, note, settle } = watch();
    const holder = budget.share();
    holder.add(1_000);
    for (let i = 0; i < 13; i++) note(`greedy ${i}`, budget.share(null, 'greedy').grow(100));
    await settle();
    expect(ended).toEqual(['greedy 12 too_busy']);
    note('other', budget.share(null, 'other').grow(60));
    holder.resize(940);
    await settle();
    expect(ended).toEqual(['greedy 12 too_busy', 'other']);
  });
  test('nothing is lost whatever is done in whatever order', async () => {
    const random = new Random(17);
    const { budget, clock } = setup({ waitersMax: 20 });
    const make = () => budget.share(null, random.int(0, 2) === 0 ? null : `caller ${random.int(0, 3)}`);
    const shares = Array.from({ length: 12 }, make);
    let waits = 0;
    for (let i = 0; i < 2_000; i++) {
      const at = random.int(0, shares.length - 1);
      const share = shares[at]!;
      const bytes = random.int(0, 399);
      const waited = (promise: Promise<void>) => {
        waits++;
        void promise.then(
          () => waits--,
          () => waits--,
        );
      };
      switch (random.int(0, 5)) {
        case 0:
          share.tryGrow(bytes);
          break;
        case 1:
          if (share.heldBytes === 0) waited(share.grow(bytes));
          break;
        case 2:
          if (!share.add(bytes)) waited(share.room());
          break;
        case 3:
          share.release();
          break;
        case 4:
          share.close();
          shares[at] = make();
          break;
        default:
          await clock.advance(bytes);
      }
      expect(budget.heldBytes).toBe(shares.reduce((sum, { heldBytes }) => sum + heldBytes, 0));
    }
    for (const share of shares) share.close();
    await clock.advance(OPTIONS.waitMs);
    expect([budget.heldBytes, budget.waiting, waits, clock.sleeping]).toEqual([0, 0, 0, 0]);
  });
});
