import { expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { openOn, OUTCOMES } from '../support/crash-run.ts';
import { Random } from '../support/random.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { dataOf, DELIVERIES, openRig } from './ingest-kit.ts';
import type { Rig } from './ingest-kit.ts';

const DELIVERED = 60;
const SEEDS = 12;
const by = (n: number) => ({ headers: { 'x-github-delivery': `d-${n}` } });

/** Delivers everything twice, a few at a time, until the power fails. The answers by delivery. */
async function deliver(rig: Rig, seed: number, isOver: () => boolean): Promise<Map<number, number[]>> {
  const random = new Random(seed);
  const answers = new Map<number, number[]>();
  const calls = random.shuffle(Array.from({ length: 2 * DELIVERED }, (_, i) => i % DELIVERED));
  for (let i = 0; i < calls.length && !isOver(); i += 5) {
    await Promise.all(calls.slice(i, i + 5).map(async (n) => {
      const status = await rig.send({ n }, by(n));
      answers.set(n, [...(answers.get(n) ?? []), status]);
    }));
  }
  return answers;
}

async function openFaulty(storage: FaultyStorage, seed: number, stream: string): Promise<Rig> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const rig = await openRig({ clock, seed, opened: await openOn(storage, seed, clock) });
  rig.active.start('parcels', { waitForWrite: true, script: `const route = ({ body }) => ({ stream: "${stream}-" + body.n % 4 });` });
  return rig;
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

/** Notes that a crash left without their events. */
let notesAlone = 0;

test.each(Array.from({ length: SEEDS }, (_, i) => i + 1))('a crash anywhere loses no event that was confirmed and writes none twice, seed %i', async (seed) => {
  const random = new Random(seed);
  const storage = new FaultyStorage({ seed, reads: 'async' });
  const first = await openFaulty(storage, seed, 'before');
  storage.crashAt(storage.operations + random.int(1, 160));
  const answers = await deliver(first, seed, () => storage.isCrashed);
  expect(storage.isCrashed).toBe(true);
  for (const [mode, outcome] of OUTCOMES) {
    const after = await openFaulty(storage.restart(mode, outcome), seed + 100, 'after');
    const survived = await written(after);
    notesAlone += (await after.read(DELIVERIES)).length - survived.size;
    for (const [n, statuses] of answers) if (statuses.includes(201)) expect(survived.get(n), `delivery ${n} was confirmed`).toEqual(['before']);
    // Every sender delivers again what was not confirmed, and some what was.
    const again = await deliver(after, seed + 1, () => false);
    expect(new Set([...again.values()].flat())).toEqual(new Set([201]));
    const all = await written(after);
    expect([...all.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: DELIVERED }, (_, n) => n));
    for (const [n, places] of all) expect(places.length, `delivery ${n}: ${places.join()}`).toBe(1);
    await after.opened.close();
  }
});

test('some of these crashes came between a note and its event', () => {
  expect(notesAlone).toBeGreaterThan(0);
});
