import { expect, it } from 'vitest';
import { STATUS_SPENT } from '../../core/ports/scavenge-state.ts';
import { CLEAN_JOB } from '../../core/scavenge/cleaning.ts';
import { IndexWorld, STATE_OPTIONS } from './index-kit.ts';

/** What cleaning forgets and keeps is in the tables; this is a defect that no run should meet. */
it('cleaning refuses weight where hard deletes are ignored, and changes nothing', async () => {
  const world = new IndexWorld();
  world.settings = { ...world.settings, unsafeIgnoreHardDelete: true };
  world.original('spent', { status: STATUS_SPENT, truncateBefore: 3 });
  world.change((state) => {
    state.addWeight(3, 1);
  });
  await expect(world.jobs().run(CLEAN_JOB, { settings: world.settings })).rejects.toMatchObject({
    code: 'scavenge_failed',
  });
  const state = world.states.open(STATE_OPTIONS);
  expect([
    state.checkpoint()?.stage,
    state.original('spent', world.hashOf('spent').hi, world.hashOf('spent').lo)?.truncateBefore,
  ]).toEqual(['ExecutingIndex', 3]);
});
