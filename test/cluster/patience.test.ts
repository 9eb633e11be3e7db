import { afterEach, describe, expect, test } from 'vitest';
import { Patience } from '../../core/cluster/patience/patience.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** For how long clients' writes may be on their way (ForwardPatienceMs). */

const LIMIT_MS = 10_000;
const here = () => false;
let ending: AbortController;

afterEach(() => ending.abort());

function world() {
  const clock = new ManualClock();
  const patience = new Patience(clock, LIMIT_MS);
  ending = new AbortController();
  void patience.watch(ending.signal);
  return { clock, patience };
}

/** The machine was suspended: its monotonic clock stood, too. */
function suspend(clock: ManualClock, ms: number): void {
  clock.setNow(clock.nowMs() + ms);
}

describe('a write that waits', () => {
  test('is dropped once it has waited too long by the monotonic clock', async () => {
    const { clock, patience } = world();
    const held = patience.begin(here);
    await clock.advance(LIMIT_MS);
    expect([held.ageMs, held.refusal()]).toEqual([LIMIT_MS, null]);
    await clock.advance(1);
    expect(held.refusal()).toMatchObject({ code: 'write_expired', data: { ageMs: LIMIT_MS + 1, limitMs: LIMIT_MS } });
  });

  test('or by the wall clock, and a wall clock that is set back makes it no younger', async () => {
    const { clock, patience } = world();
    const [suspended, setBack] = [patience.begin(here), patience.begin(here)];
    suspend(clock, LIMIT_MS + 1);
    expect(suspended.refusal()).toMatchObject({ code: 'write_expired' });
    await clock.advance(LIMIT_MS + 1);
    suspend(clock, -3_600_000);
    expect(setBack.refusal()).toMatchObject({ code: 'write_expired' });
  });

  test('is dropped when nobody waits for its answer any more', () => {
    const { patience } = world();
    let isGone = false;
    const held = patience.begin(() => isGone);
    expect(held.refusal()).toBeNull();
    isGone = true;
    expect(held.refusal()).toMatchObject({ code: 'write_expired' });
  });
});

describe('what is read after a standstill', () => {
  test('counts as here since before it, until the sockets have been read', async () => {
    const { clock, patience } = world();
    await clock.advance(5_000);
    suspend(clock, 600_000);
    expect(patience.begin(here).ageMs).toBeGreaterThan(600_000);
    expect(patience.begin(here).refusal()).toMatchObject({ code: 'write_expired' });
    await clock.advance(999);
    expect(patience.begin(here).refusal()).toMatchObject({ code: 'write_expired' });
    await clock.advance(1_001);
    expect(patience.begin(here).ageMs).toBe(0);
  });

  test('a process that was only slow makes nothing older than it is', async () => {
    const { clock, patience } = world();
    await clock.advance(5_000);
    suspend(clock, 900);
    expect(patience.begin(here).ageMs).toBe(0);
  });
});

describe('what another member has passed on', () => {
  test('is as old as that member says by the clock here, on its way, too', async () => {
    const { clock, patience } = world();
    const atMs = clock.nowMs() - 4_000;
    expect(patience.beginPassedOn(atMs, here).ageMs).toBe(4_000);
    await clock.advance(3_000);
    const held = patience.beginPassedOn(atMs, here);
    await clock.advance(3_000);
    expect(held.refusal()).toBeNull();
    await clock.advance(1);
    expect(held.refusal()).toMatchObject({ code: 'write_expired' });
  });

  test('is new where that member does not know the clock here, or thinks that it is ahead', () => {
    const { clock, patience } = world();
    expect(patience.beginPassedOn(null, here).ageMs).toBe(0);
    expect(patience.beginPassedOn(clock.nowMs() + 60_000, here).ageMs).toBe(0);
  });
});
