import { describe, expect, it } from 'vitest';
import { Turns } from '../../../handlers/http/turns.ts';

/** A process whose time passes by what is worked and rested alone, and what happened in it. */
function process(): { readonly turns: Turns; readonly happened: string[]; work(ms: number): string } {
  const happened: string[] = [];
  let nowMs = 0;
  const turns = new Turns({
    monotonicMs: () => nowMs,
    yield: () => Promise.resolve(),
    sleep: (ms) => {
      nowMs += ms;
      happened.push(`rest ${ms}`);
      return Promise.resolve();
    },
  });
  const work = (ms: number): string => {
    nowMs += ms;
    happened.push(`work ${ms}`);
    return `worked ${ms}`;
  };
  return { turns, happened, work };
}

function* slices(work: (ms: number) => string, lengths: readonly number[]): Generator<void, string, undefined> {
  for (const ms of lengths) {
    work(ms);
    yield;
  }
  return 'done';
}

describe('turns', () => {
  it('let long works that are alone go on without a rest', async () => {
    const { turns, happened, work } = process();
    expect(await Promise.all([turns.run(null, slices(work, [4, 4])), turns.run(null, slices(work, [5]))])).toEqual([
      'done',
      'done',
    ]);
    expect(happened).toEqual(['work 4', 'work 5', 'work 4']);
  });

  it('leave three quarters of the process to others while those are at work, and for a while behind', async () => {
    const { turns, happened, work } = process();
    turns.answered();
    await turns.run(null, slices(work, [4, 6, 2, 10]));
    // Nobody else was answered any more: after 50 ms they are taken to have gone.
    expect(happened).toEqual(['work 4', 'rest 12', 'work 6', 'rest 18', 'work 2', 'rest 6', 'work 10']);
  });

  it('count the rest of what a piece costs, and rest no longer than a tenth of a second', async () => {
    const { turns, happened, work } = process();
    turns.answered();
    await turns.slice(null, () => work(2), 1 / 4);
    turns.answered();
    await turns.slice(null, () => work(1_000));
    turns.answered();
    expect(await turns.slice(null, () => work(1))).toBe('worked 1');
    expect(happened).toEqual(['work 2', 'rest 24', 'work 1000', 'rest 100', 'work 1']);
  });

  it('go on behind a piece that fails, whose own caller alone is told', async () => {
    const { turns, happened, work } = process();
    const failed = turns.slice(null, () => {
      throw new Error('cannot be read');
    });
    const next = turns.slice(null, () => work(1));
    await expect(failed).rejects.toThrow('cannot be read');
    expect(await next).toBe('worked 1');
    expect(happened).toEqual(['work 1']);
  });

  it('go to callers one after another, however much each of them has begun', async () => {
    const { turns, happened, work } = process();
    const crowd = Array.from({ length: 50 }, () => turns.run('many', slices(work, [1, 1])));
    expect(await turns.run('one', slices(work, [2, 3, 4]))).toBe('done');
    expect(happened).toEqual(['work 1', 'work 2', 'work 1', 'work 3', 'work 1', 'work 4', 'work 1']);
    await Promise.all(crowd);
    expect(happened.filter((each) => each === 'work 1')).toHaveLength(100);
  });
});
