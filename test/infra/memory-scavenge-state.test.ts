import { expect, test } from 'vitest';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { ScavengeCheckpoint, ScavengeStates } from '../../core/ports/scavenge-state.ts';
import { compareCodePoints } from '../../core/ports/scavenge-state.ts';

const OPTIONS = { pageSizeBytes: 16_384, cacheBytes: 0, hashUsersCacheEntries: 0 };
const done = (doneChunk: number): ScavengeCheckpoint => ({
  point: { position: 9, eventNumber: 0, effectiveNowMs: 0, threshold: 0 },
  stage: 'Accumulating',
  doneChunk,
});

/** Three commits: each weighs its chunk and registers a name with the same hash. */
function threeCommits(states: ScavengeStates): void {
  const state = states.open(OPTIONS);
  for (let chunk = 0; chunk < 3; chunk++) {
    state.begin();
    state.addWeight(chunk, 2);
    state.register(`s${chunk}`, 1, 1);
    state.commit(done(chunk));
  }
  state.close();
}

const contentOf = (states: ScavengeStates) => {
  const state = states.open(OPTIONS);
  return { weight: state.weight(0, 9), collisions: state.collisions(), doneChunk: state.checkpoint()?.doneChunk };
};

test('a crash loses what is open, and as many commits as are asked for', () => {
  const states = new MemoryScavengeStates();
  threeCommits(states);
  const state = states.open(OPTIONS);
  state.begin();
  state.addWeight(5, 100);
  expect(contentOf(states.restart())).toEqual({ weight: 6, collisions: ['s0', 's1', 's2'], doneChunk: 2 });
  expect(contentOf(states.restart(1))).toEqual({ weight: 4, collisions: ['s0', 's1'], doneChunk: 1 });
  expect(contentOf(states.restart(2))).toEqual({ weight: 2, collisions: [], doneChunk: 0 });
  expect(contentOf(states.restart(3))).toEqual({ weight: 0, collisions: [], doneChunk: undefined });
  expect(() => states.restart(4)).toThrow(RangeError);
  state.rollback();
  expect(contentOf(states)).toEqual({ weight: 6, collisions: ['s0', 's1', 's2'], doneChunk: 2 });
});

test('what a crash left goes on by itself', () => {
  const states = new MemoryScavengeStates();
  threeCommits(states);
  const crashed = states.restart(2);
  threeCommits(crashed);
  expect(contentOf(crashed)).toEqual({ weight: 8, collisions: ['s0', 's1', 's2'], doneChunk: 2 });
  expect(contentOf(crashed.restart(3))).toEqual({ weight: 2, collisions: [], doneChunk: 0 });
  expect(contentOf(states).weight).toBe(6);
});

test('the history is bounded', () => {
  const states = new MemoryScavengeStates({ historyCommits: 2 });
  threeCommits(states);
  expect(contentOf(states.restart(2)).weight).toBe(2);
  expect(() => states.restart(3)).toThrow(RangeError);
});

test('a storage always has the same', () => {
  const storage = new MemoryStorage();
  expect(MemoryScavengeStates.of(storage)).toBe(MemoryScavengeStates.of(storage));
  expect(MemoryScavengeStates.of(storage)).not.toBe(MemoryScavengeStates.of(new MemoryStorage()));
});

test('names are ordered as their UTF-8 bytes', () => {
  const names = ['', 'a', 'ab', 'b', 'é', '\ud7ff', '\ue000', '\uffe0', '𐀀', '𝄞', 'a\uffe0', 'a𐀀', '𐀀b', '𐀁'];
  const byBytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  expect(names.toSorted(compareCodePoints)).toEqual(byBytes);
});
