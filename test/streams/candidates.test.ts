import { expect, it } from 'vitest';
import type { KeyKind } from '../../core/attributes/format/attribute-keys.ts';
import { END, HIT, isMiss, type Outcome } from '../../core/base/step.ts';
import type { EventQuery } from '../../core/streams/api.ts';
import { Candidates } from '../../core/streams/candidates.ts';
import { MemoryAttributes } from '../support/memory-attributes.ts';
import { Random } from '../support/random.ts';
import { Misses } from './doubles.ts';

/** Positions of keys, dense and sparse in turn, so that windows grow and shrink. */
function positions(random: Random, share: number): number[] {
  const found: number[] = [];
  for (let at = 0, gap = 100; at < 4e9 && found.length < 20_000;) {
    if (random.chance(0.002)) gap = random.pick([100, 3_000, 40_000, 5_000_000, 600_000_000]);
    at += random.int(1, gap) * 8;
    if (random.chance(share)) found.push(at);
  }
  return found;
}

interface Key {
  readonly kind: KeyKind;
  readonly text: string;
  readonly positions: ReadonlySet<number>;
}

async function settled(step: () => Outcome): Promise<typeof HIT | typeof END> {
  for (;;) {
    const outcome = step();
    if (!isMiss(outcome)) return outcome;
    await outcome;
  }
}

it.each([1, 2, 3, 4, 5, 6])(
  'are where all keys are, forward and backward, seed %i',
  async (seed) => {
    const random = new Random(seed);
    const misses = new Misses(seed, seed % 2 === 0 ? 0.2 : 0);
    const attributes = new MemoryAttributes(() => misses.next());
    const all = positions(random, 1);
    const keys: Key[] = [];
    const key = (kind: KeyKind, text: string, index: 'names' | 'correlations' | 'tags'): void => {
      const share = random.pick([0.9, 0.5, 0.05]);
      const of = attributes.of(index)!;
      const own = all.filter(() => random.chance(share));
      for (const position of own) if (position < of.coveredTo || random.chance(0.5)) of.add(kind, text, position);
      keys.push({ kind, text, positions: new Set(own) });
    };
    for (const name of ['names', 'correlations', 'tags'] as const)
      attributes.of(name)!.coveredTo = random.chance(0.5) ? all.at(-1)! + 1 : random.pick(all);
    key('ce', 'c', 'names');
    key('et', 't', 'names');
    key('et', 'u', 'names');
    key('bc', 'x', 'correlations');
    key('tag', 'a', 'tags');
    key('tag', 'b', 'tags');
    const query: EventQuery = random.pick([
      { category: 'c', types: ['t', 'u'] },
      { category: 'c', tags: ['a', 'b'], correlation: 'x' },
      { types: ['u'] },
      { tags: ['b'], types: ['t', 'u'] },
      { category: 'c' },
    ]);
    const coveredTo = (kind: KeyKind): number =>
      attributes.of(kind === 'bc' ? 'correlations' : kind === 'tag' ? 'tags' : 'names')!.coveredTo;
    const has = (kind: KeyKind, text: string, position: number): boolean =>
      position >= coveredTo(kind) ||
      keys.some((each) => each.kind === kind && each.text === text && each.positions.has(position));
    const fits = (position: number): boolean =>
      (query.category === undefined || has('ce', query.category, position)) &&
      (query.types === undefined || query.types.some((type) => has('et', type, position))) &&
      (query.correlation === undefined || has('bc', query.correlation, position)) &&
      (query.tags ?? []).every((tag) => has('tag', tag, position));
    const wanted = all.filter(fits);
    const end = all.at(-1)!;

    for (const isForward of [true, false]) {
      const candidates = Candidates.of(query, attributes)!;
      const found: number[] = [];
      for (let at = isForward ? 0 : end; isForward ? at <= end : at >= 0;) {
        const outcome = await settled(() => candidates.find(at, isForward));
        if (outcome === END) break;
        const next = candidates.at;
        expect(isForward ? next >= at : next <= at).toBe(true);
        // What is ahead is as true as what is found.
        for (const ahead of candidates.ahead(next, isForward, 8))
          if (fits(next)) expect(Math.sign(ahead - next)).toBe(isForward ? 1 : -1);
        if (fits(next) && all.includes(next)) found.push(next);
        // Behind what an index covers any position may be one; those that are none of ours are passed.
        const isAny = isForward ? next < end && !all.includes(next) : next > 0 && !all.includes(next);
        if (isAny) at = (isForward ? all.find((each) => each >= next) : all.findLast((each) => each <= next)) ?? -1;
        else at = next + (isForward ? 1 : -1);
        if (at < 0) break;
      }
      expect(found).toEqual(isForward ? wanted : wanted.toReversed());
    }
  },
  20_000,
);

it('of a rare key and a common one are found with few questions', async () => {
  const attributes = new MemoryAttributes();
  const names = attributes.of('names')!;
  const tags = attributes.of('tags')!;
  for (let i = 0; i < 20_000; i++) names.add('ce', 'c', i * 500);
  for (let i = 0; i < 20; i++) tags.add('tag', 'rare', i * 500_000);
  names.coveredTo = tags.coveredTo = 10_000_000;
  const candidates = Candidates.of({ category: 'c', tags: ['rare'] }, attributes)!;
  let found = 0;
  for (let at = 0; candidates.find(at, true) === HIT && candidates.at < names.coveredTo; at = candidates.at + 1)
    found++;
  expect(found).toBe(20);
  expect(names.asked + tags.asked).toBeLessThan(120);
  expect(candidates.examined).toBeLessThan(120);
});

it('go on where they had to wait: a search with misses asks for little more than one without', async () => {
  const asked = async (missShare: number): Promise<number> => {
    const misses = new Misses(1, missShare);
    const attributes = new MemoryAttributes(() => misses.next());
    const { tags } = attributes.entries;
    for (let n = 0; n < 4_000; n++) {
      tags!.add('tag', 'a', n * 64);
      tags!.add('tag', 'b', n * 64 + 8 * (n % 97 === 0 ? 0 : 1));
    }
    tags!.coveredTo = 1e6;
    const candidates = Candidates.of({ tags: ['a', 'b'] }, attributes)!;
    const found: number[] = [];
    for (let from = 0; (await settled(() => candidates.find(from, true))) === HIT && candidates.at < 1e6;) {
      if ((candidates.at / 64) % 97 === 0) found.push(candidates.at);
      from = candidates.at + 1;
    }
    expect(found).toEqual(Array.from({ length: 42 }, (_, n) => n * 97 * 64));
    return tags!.asked;
  };
  const without = await asked(0);
  expect(await asked(0.4)).toBeLessThan(without * 2);
});

it('of an item that is far away are looked for once, however many another one has before it', () => {
  const attributes = new MemoryAttributes();
  const names = attributes.of('names')!;
  const tags = attributes.of('tags')!;
  for (let n = 0; n < 4_000; n++) {
    tags.add('tag', n % 2 === 0 ? 'a' : 'b', n * 64);
    if (n % 10 === 0) names.add('et', 'x', n * 64 + 8);
  }
  for (const tag of ['a', 'b']) tags.add('tag', tag, 5_000 * 64);
  names.coveredTo = tags.coveredTo = 1e6;
  const candidates = Candidates.of({ anyOf: [{ tags: ['a', 'b'] }, { types: ['x'] }] }, attributes)!;
  let found = 0;
  for (let at = 0; candidates.find(at, true) === HIT && candidates.at < 1e6; at = candidates.at + 1) found++;
  // Those of the type, the one of both tags, and a place for each 512 leaps between them.
  expect(found).toBeGreaterThanOrEqual(401);
  expect(found).toBeLessThan(420);
  expect(candidates.examined).toBeLessThan(4_000 + 6 * found);
});

it('are where all of several lists meet, and nowhere else', () => {
  const attributes = new MemoryAttributes();
  const tags = attributes.of('tags')!;
  for (let at = 0; at < 60_000; at += 1_000) tags.add('tag', 'a', at);
  for (let at = 0; at < 60_000; at += 1_500) tags.add('tag', 'b', at);
  for (let at = 0; at < 60_000; at += 2_000) tags.add('tag', 'c', at);
  tags.coveredTo = 60_000;
  const meetings = Array.from({ length: 10 }, (_, i) => i * 6_000);
  const candidates = Candidates.of({ tags: ['a', 'b', 'c'] }, attributes)!;
  const upwards: number[] = [];
  for (let at = 0; candidates.find(at, true) === HIT && candidates.at < 60_000; at = candidates.at + 1)
    upwards.push(candidates.at);
  expect(upwards).toEqual(meetings);
  const downwards: number[] = [];
  for (let at = 59_999; candidates.find(at, false) === HIT; at = candidates.at - 1) downwards.push(candidates.at);
  expect(downwards).toEqual(meetings.toReversed());
  // Those ahead are known once their windows are.
  expect(candidates.find(0, true)).toBe(HIT);
  expect(candidates.find(1, true)).toBe(HIT);
  for (const ahead of candidates.ahead(candidates.at, true, 16)) expect(meetings).toContain(ahead);
});

it('are asked of indexes that are there: without one for a type no type is ruled out', () => {
  const attributes = new MemoryAttributes();
  expect(Candidates.of({ category: 'c' }, attributes)).toBeNull();
  attributes.of('names')!.coveredTo = 100;
  expect(Candidates.of({ category: 'c' }, attributes)).not.toBeNull();
  expect(Candidates.of({ tags: ['a'] }, attributes)).toBeNull();
});
