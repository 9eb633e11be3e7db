import { describe, expect, it } from 'vitest';
import { EntryList, IndexEntry } from '../../core/index/format/entries.ts';
import { MemTable } from '../../core/index/mem-table/mem-table.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { FrozenMemTable } from '../../core/scavenge/sources/run-index.ts';
import { SeenHashes, SeenNames } from '../../core/scavenge/seen-names.ts';
import {
  type Decision,
  DISCARD,
  DiscardPoints,
  GONE,
  MAYBE,
  Retention,
  type RetentionLimits,
  STAYS,
  YOUNG,
} from '../../core/streams/format/retention.ts';
import { Random } from '../support/random.ts';

const text = new TextEncoder();

describe('a frozen memtable', () => {
  it('answers as the memtable did, while that grows', async () => {
    const random = new Random(4);
    const table = new MemTable(100_000);
    const entries: [number, number, number, number][] = [];
    for (let i = 0; i < 3_000; i++) {
      const hash = random.int(0, 39);
      entries.push([hash * 0x0600_0000, hash * 7, random.int(0, 49), i * 10]);
    }
    for (const entry of entries) table.add(...entry);
    const columns = table.columns();
    // Entries between older ones, behind them, and of new hashes.
    for (let i = 0; i < 900; i++) table.add(random.int(0, 59) * 0x0600_0000, 0, random.int(0, 59), 40_000 + i);
    for (let i = 0; i < 900; i++) {
      const hash = random.int(0, 39);
      table.add(hash * 0x0600_0000, hash * 7, random.int(0, 59), 50_000 + i);
    }
    const frozen = await FrozenMemTable.of(columns, async () => {});
    const out = new IndexEntry();
    const list = new EntryList();
    for (let hash = 0; hash < 41; hash++) {
      const [hi, lo] = [hash * 0x0600_0000, hash * 7];
      const own = entries
        .filter((entry) => entry[0] === hi && entry[1] === lo)
        .sort((a, b) => a[2] - b[2] || a[3] - b[3]);
      for (const version of [0, 7, 25, 49, 60, TOMBSTONE]) {
        const floor = own.filter((entry) => entry[2] <= version).at(-1);
        expect(frozen.floor(hi, lo, version, out) ? [out.version, out.position] : null).toEqual(
          floor === undefined ? null : [floor[2], floor[3]],
        );
        const ceiling = own.find((entry) => entry[2] >= version);
        expect(frozen.ceiling(hi, lo, version, out) ? [out.version, out.position] : null).toEqual(
          ceiling === undefined ? null : [ceiling[2], ceiling[3]],
        );
      }
      list.clear();
      frozen.range(hi, lo, 10, 30, list);
      expect(Array.from({ length: list.length }, (_, i) => [list.versions[i], list.positions[i]]).reverse()).toEqual(
        own.filter((entry) => entry[2] >= 10 && entry[2] <= 30).map((entry) => [entry[2], entry[3]]),
      );
    }
  });
});

describe('names seen before', () => {
  it('are remembered by all of their bytes', () => {
    const seen = new SeenNames();
    const names = Array.from({ length: 3_000 }, (_, i) => text.encode(`stream-${i}-é`));
    for (const name of names) expect(seen.has(name, 0, name.length)).toBe(false);
    // The set has grown meanwhile, and begins anew when it does.
    for (const name of names) seen.has(name, 0, name.length);
    for (const name of names) expect(seen.has(name, 0, name.length)).toBe(true);
    const longer = text.encode('stream-1-é-and-more');
    expect(seen.has(longer, 0, longer.length)).toBe(false);
  });

  it('are never mistaken, however many there are', () => {
    const seen = new SeenNames();
    for (let i = 0; i < 200_000; i++) {
      const name = text.encode(`s${i}`);
      if (seen.has(name, 0, name.length)) throw new Error(`${i} was not there.`);
    }
  });

  it('are not remembered when they are long', () => {
    const seen = new SeenNames();
    const name = new Uint8Array(65).fill(97);
    expect([seen.has(name, 0, 65), seen.has(name, 0, 65), seen.has(name, 0, 64), seen.has(name, 0, 64)]).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });

  it('as hashes are never forgotten', () => {
    const seen = new SeenHashes();
    const random = new Random(8);
    const hashes = Array.from(
      { length: 5_000 },
      () => [random.int(0, 0x7fff_fffe) * 2, random.int(0, 0x7fff_fffe)] as const,
    );
    const wrong = hashes.filter(([hi, lo]) => seen.addAndTest(hi, lo)).length;
    expect(wrong).toBeLessThan(10);
    expect(hashes.every(([hi, lo]) => seen.addAndTest(hi, lo))).toBe(true);
  });
});

describe('the decision about an event', () => {
  const none = { isTombstoned: false, truncateBefore: null, maxCount: null, maxAge: null };
  const rules = (data: RetentionLimits & { readonly isTombstoned?: boolean }, last = 9): Retention => {
    const made = new Retention();
    made.setForScavenge({ ...none, ...data }, data.isTombstoned ?? false, last, 1_000_000, 5);
    return made;
  };
  const range = (minMs: number, minTicks: number, maxMs: number, maxTicks: number) => ({
    minMs,
    minTicks,
    maxMs,
    maxTicks,
  });

  it('compares times by milliseconds, then ticks', () => {
    // The cutoff is 990 000 ms and 5 ticks.
    const age = rules({ maxAge: 10 });
    expect(age.decide(0, range(990_000, 5, 990_000, 5))).toBe(YOUNG);
    expect(age.decide(0, range(990_000, 4, 990_000, 5))).toBe(MAYBE);
    expect(age.decide(0, range(980_000, 9, 990_000, 4))).toBe(DISCARD);
    expect(age.decide(0, range(989_999, 9_999, 990_000, 4))).toBe(DISCARD);
    expect(age.decide(0, undefined)).toBe(GONE);
  });

  it('names the first rule, and judges by number before time', () => {
    const all = rules({ truncateBefore: 2, maxCount: 6, maxAge: 10 });
    const old = [1, 3, 5, 9].map((number) => all.ruleAgainst(number, 990_000, 4));
    expect(old).toEqual(['$tb', '$maxCount', '$maxAge', null]);
    expect([1, 3, 5, 9].map((number) => all.ruleAgainst(number, 990_000, 5))).toEqual(['$tb', '$maxCount', null, null]);
    const metastream = new Retention(true);
    metastream.setForScavenge({ maxCount: 1 }, false, 4, 1_000_000, 0);
    expect([3, 4].map((number) => metastream.ruleAgainst(number, 0, 0))).toEqual(['superseded-metadata', null]);
  });

  it('hides even the last event from readers, by ticks of their own time', () => {
    const seen = Retention.forReaders({ maxAge: 10 }, 9, 1_000_000.5);
    expect([
      seen.ruleAgainst(9, 990_000, 4_999),
      seen.ruleAgainst(9, 990_000, 5_000),
      seen.ruleAgainst(9, 989_999, 9_999),
    ]).toEqual(['$maxAge', null, '$maxAge']);
  });

  it.each<[string, Decision[], number, number]>([
    ['certain ones', [DISCARD, DISCARD, GONE, STAYS], 3, 3],
    ['one that may be alive ends what is certain', [DISCARD, MAYBE, DISCARD, DISCARD, STAYS], 1, 4],
    ['so does one that is alive', [DISCARD, YOUNG, DISCARD, YOUNG, STAYS], 1, 3],
    ['what is gone counts only before them', [GONE, MAYBE, GONE, STAYS], 1, 2],
    ['nothing goes behind the last that goes', [YOUNG, MAYBE, YOUNG, STAYS], 0, 2],
  ])('makes discard points: %s', (_what, decisions, discard, maybe) => {
    const points = new DiscardPoints();
    decisions.forEach((decision, number) => points.take(number, decision));
    expect([points.discard, points.maybe, points.isDone]).toEqual([discard, maybe, true]);
  });

  it('never expires anything by an absurd age or keeps less than nothing by an absurd count', () => {
    expect(rules({ maxAge: 9e15 }).decide(0, range(-6e13, 0, 0, 0))).toBe(YOUNG);
    expect(rules({ maxCount: 9e15 }).decide(0, undefined)).toBe(STAYS);
  });
});
