import { expect } from 'vitest';
import type { Store } from '../../../core/store/store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import { dataOf, DELIVERIES, openRig } from './kit.ts';
import type { Rig } from './kit.ts';

const DELIVERED = 60;
const by = (n: number) => ({ headers: { 'x-github-delivery': `d-${n}` } });

/** A store that crashes, and what is found of it afterwards. */
export interface Crashing {
  open(seed: number, clock: ManualClock): Promise<Store>;
  /** The crash comes at some operation from the next one on. */
  crashSoon(random: Random): void;
  readonly isCrashed: boolean;
  /** The store as it may be found after the crash; each is tried. */
  afterwards(): readonly Crashing[];
}

/**
 * Crashes a store while deliveries come, and sees to it that none that was confirmed is lost or written twice, and that
 * there is no note without its event.
 */
export async function crashWhileDelivering(seed: number, crashing: Crashing): Promise<void> {
  const first = await openCrashing(crashing, seed, 'before');
  crashing.crashSoon(new Random(seed));
  const answers = await deliver(first, seed, () => crashing.isCrashed);
  expect(crashing.isCrashed).toBe(true);
  for (const found of crashing.afterwards()) {
    const after = await openCrashing(found, seed + 100, 'after');
    const survived = await written(after);
    expect(
      (await after.read(DELIVERIES))
        .map((note) => Number(String(dataOf(note)['deliveryId']).slice(2)))
        .sort((a, b) => a - b),
    ).toEqual([...survived.keys()].sort((a, b) => a - b));
    for (const [n, statuses] of answers)
      if (statuses.includes(201)) expect(survived.get(n), `delivery ${n} was confirmed`).toEqual(['before']);
    // Every sender delivers again what was not confirmed, and some what was.
    const again = await deliver(after, seed + 1, () => false);
    expect(new Set([...again.values()].flat())).toEqual(new Set([201]));
    const all = await written(after);
    expect([...all.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: DELIVERED }, (_, n) => n));
    for (const [n, places] of all) expect(places.length, `delivery ${n}: ${places.join()}`).toBe(1);
    await after.opened.close();
  }
}

async function openCrashing(crashing: Crashing, seed: number, stream: string): Promise<Rig> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const rig = await openRig({ clock, seed, opened: await crashing.open(seed, clock) });
  rig.active.start('parcels', {
    waitForWrite: true,
    script: `const route = ({ body }) => ({ stream: "${stream}-" + body.n % 4 });`,
  });
  return rig;
}

/** Delivers everything twice, a few at a time, until the power fails. The answers by delivery. */
async function deliver(rig: Rig, seed: number, isOver: () => boolean): Promise<Map<number, number[]>> {
  const random = new Random(seed);
  const answers = new Map<number, number[]>();
  const calls = random.shuffle(Array.from({ length: 2 * DELIVERED }, (_, i) => i % DELIVERED));
  for (let i = 0; i < calls.length && !isOver(); i += 5) {
    await Promise.all(
      calls.slice(i, i + 5).map(async (n) => {
        const status = await rig.send({ n }, by(n));
        answers.set(n, [...(answers.get(n) ?? []), status]);
      }),
    );
  }
  return answers;
}

async function written(rig: Rig): Promise<Map<number, string[]>> {
  const found = new Map<number, string[]>();
  for (const name of ['before', 'after']) {
    for (let i = 0; i < 4; i++) {
      for (const event of await rig.read(`${name}-${i}`)) {
        const n = Number(dataOf(event)['n']);
        found.set(n, [...(found.get(n) ?? []), name]);
      }
    }
  }
  return found;
}
