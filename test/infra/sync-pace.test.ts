import { describe, expect, test } from 'vitest';
import { SyncPace } from '../../infra/fs/sync-pace.ts';

function after(...syncs: readonly number[]): SyncPace {
  const pace = new SyncPace();
  for (const ms of syncs) pace.note(ms);
  return pace;
}

const quick = Array.from({ length: 4 }, () => 0.2);

describe('a sync is made on the spot', () => {
  test('only after four quick ones in a row', () => {
    expect(after(...quick.slice(1)).isOnTheSpot).toBe(false);
    expect(after(...quick).isOnTheSpot).toBe(true);
    expect(after(...quick.slice(1), 0.6, 0.2).isOnTheSpot).toBe(false);
  });

  test('until one was slow, and then not for a thousand', () => {
    expect(after(...quick, 0.9).isOnTheSpot).toBe(true);
    const pace = after(...quick, 1.1);
    for (let i = 0; i < 1_024 + 3; i++) {
      expect(pace.isOnTheSpot).toBe(false);
      pace.note(0.2);
    }
    expect(pace.isOnTheSpot).toBe(false);
    pace.note(0.2);
    expect(pace.isOnTheSpot).toBe(true);
  });

  test('never behind a large write', () => {
    const pace = after(...quick);
    pace.expectSlow();
    expect(pace.isOnTheSpot).toBe(false);
    const slow = after(...quick, 5);
    slow.expectSlow();
    for (let i = 0; i < 100; i++) slow.note(0.1);
    expect(slow.isOnTheSpot).toBe(false);
  });
});
