import { describe, expect, it } from 'vitest';
import { STATUS_ACTIVE, STATUS_ARCHIVED, STATUS_SPENT } from '../../core/ports/scavenge-state.ts';
import { clean, CLEAN_JOB } from '../../core/scavenge/cleaning.ts';
import { IndexWorld, STATE_OPTIONS } from './index-kit.ts';

/** Streams in each status, with their metastreams. */
function prepared(unsafeIgnoreHardDelete: boolean): IndexWorld {
  const world = new IndexWorld();
  world.settings = { ...world.settings, unsafeIgnoreHardDelete };
  world.original('active', { status: STATUS_ACTIVE, maxAge: 5 });
  world.original('archived', { status: STATUS_ARCHIVED, isTombstoned: true });
  world.original('spent', { status: STATUS_SPENT, truncateBefore: 3 });
  world.metastream('$$active', { discardPoint: 2 });
  world.metastream('$$archived', { isTombstoned: true });
  return world;
}

function rows(world: IndexWorld): string[] {
  const state = world.states.open(STATE_OPTIONS);
  const names = ['active', 'archived', 'spent'];
  const originals = names.filter((name) => state.original(name, world.hashOf(name).hi, world.hashOf(name).lo) !== undefined);
  const metastreams = names.map((name) => `$$${name}`).filter((name) => state.metastream(name, world.hashOf(name).hi, world.hashOf(name).lo) !== undefined);
  const stage = state.checkpoint()?.stage ?? 'none';
  state.close();
  return [...originals, ...metastreams, stage];
}

describe('cleaning, scavenge.md section 9', () => {
  it.each([[false, ['active', 'archived', 'Done']], [true, ['active', 'Done']]] as const)('forgets metastreams and spent streams when no chunk has weight (hard deletes ignored: %s)', async (unsafe, left) => {
    const world = prepared(unsafe);
    world.change((state) => { state.addWeight(3, 0); });
    expect(await world.jobs().run(CLEAN_JOB, { settings: world.settings })).toEqual({});
    expect(rows(world)).toEqual(left);
    expect(world.states.open(STATE_OPTIONS).checkpoint()).toEqual({ point: world.settings.point, stage: 'Done' });
  });

  it('keeps everything while a chunk has weight', async () => {
    const world = prepared(false);
    world.change((state) => { state.addWeight(3, 1); });
    await world.jobs().run(CLEAN_JOB, { settings: world.settings });
    expect(rows(world)).toEqual(['active', 'archived', 'spent', '$$active', '$$archived', 'Done']);
  });

  it('refuses weight where hard deletes are ignored, and changes nothing', async () => {
    const world = prepared(true);
    world.change((state) => { state.addWeight(3, 1); });
    await expect(world.jobs().run(CLEAN_JOB, { settings: world.settings })).rejects.toMatchObject({ code: 'scavenge_failed' });
    expect(rows(world)).toEqual(['active', 'archived', 'spent', '$$active', '$$archived', 'ExecutingIndex']);
  });

  it('does nothing when it is stopped before it begins', async () => {
    const world = prepared(false);
    const stop = new AbortController();
    const jobs = world.jobs({
      [CLEAN_JOB]: (args: never, context) => {
        stop.abort();
        return clean(args, context);
      },
    });
    const running = jobs.run(CLEAN_JOB, { settings: world.settings }, { signal: stop.signal });
    await expect(running).rejects.toMatchObject({ code: 'aborted' });
    expect(rows(world)).toEqual(['active', 'archived', 'spent', '$$active', '$$archived', 'ExecutingIndex']);
  });
});
