import fc from 'fast-check';
import { expect } from 'vitest';
import type { EventStore } from '../../core/streams/api.ts';
import { commands } from './commands.ts';
import type { Command } from './commands.ts';
import type { ManualClock } from './manual-clock.ts';
import { ModelStore } from './model-store.ts';
import { Player } from './player.ts';
import { SeededIds } from './seeded-ids.ts';

/** A store that is compared with the model. */
export interface Subject {
  readonly clock: ManualClock;
  /** Opens it: at the beginning, and again as commands say. */
  open(): Promise<{ readonly store: EventStore; close(): Promise<void> }>;
  /**
   * On objects the clock only goes on, nothing gets in that a store would refuse, and how far back repeats are known
   * differs.
   */
  readonly isOnObjects: boolean;
  after?(command: number): Promise<void>;
  done?(): void;
}

/**
 * Random commands on a naive model in memory and on a store: each gives the same result, and so does all that can be
 * read afterwards.
 */
export function agreesWithModel(
  { runs, seed }: { readonly runs: number; readonly seed: number },
  make: () => Subject,
): Promise<void> {
  return fc.assert(
    fc.asyncProperty(commands, async (script) => {
      const subject = make();
      try {
        await expectSame(script, subject);
      } finally {
        subject.done?.();
      }
    }),
    { seed, numRuns: runs, endOnFailure: false },
  );
}

async function expectSame(script: readonly Command[], { clock, open, isOnObjects, after }: Subject): Promise<void> {
  const model = new ModelStore(clock, new SeededIds(3));
  const modelled = new Player(
    async () => ({ store: model, close: async () => {} }),
    async () => {},
    () => {},
    !isOnObjects,
  );
  const real = new Player(
    open,
    (ms) => clock.advance(ms),
    isOnObjects ? () => {} : (ms) => clock.setNow(clock.nowMs() - ms),
    !isOnObjects,
  );
  // Of an id that a stream has twice, since its writers expected versions, either event is the one that is repeated.
  const comparable = (answer: string): string =>
    isOnObjects && answer.includes('"isRepeat":true') ? 'repeat' : answer;
  await modelled.start();
  await real.start();
  for (const [i, command] of script.entries()) {
    const said = await modelled.play(command);
    const done = await real.play(command);
    expect(comparable(done), `command ${i}: ${JSON.stringify(command)}`).toBe(comparable(said));
    await after?.(i);
  }
  expect(await real.everything()).toBe(await modelled.everything());
  await real.stop();
}
