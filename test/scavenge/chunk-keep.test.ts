import { describe, expect, it } from 'vitest';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { parsePrepare, PrepareFields, RecordFrame } from '../../core/log/format/records.ts';
import type { ScavengeState } from '../../core/ports/scavenge-state.ts';
import { GOES, KeepRule } from '../../core/scavenge/keep-rule.ts';
import { Random } from '../support/random.ts';
import { event, NOW_MS, runSettings, statesWith } from './chunk-kit.ts';
import type { EventInput } from './chunk-kit.ts';

const DAY_MS = 86_400_000;
const DATA = 0x01;
const BEGIN = 0x02;
const END = 0x04;
const DELETE = 0x08;

function keeps(rule: KeepRule, input: EventInput): boolean {
  const frame = new RecordFrame();
  frame.bytes = event(input);
  frame.at = 4;
  frame.length = frame.bytes.length - 8;
  frame.position = input.position ?? 0;
  const fields = new PrepareFields();
  parsePrepare(frame, fields);
  return rule.fateOf(frame, fields) !== GOES;
}

function ruleFor(
  rows: Parameters<typeof statesWith>[0],
  more: Parameters<typeof runSettings>[0] = {},
  hasher = streamHasher,
): KeepRule {
  return new KeepRule(statesWith(rows, hasher).open(), runSettings(more), hasher);
}

describe('which records stay', () => {
  it.each([
    [2, NOW_MS, 0, false],
    [3, NOW_MS - 2 * DAY_MS - 1, 9_999, false],
    [3, NOW_MS - 2 * DAY_MS, 4, false],
    [3, NOW_MS - 2 * DAY_MS, 5, true],
    [3, NOW_MS - 2 * DAY_MS, 6, true],
    [5, 0, 0, false],
    [6, 0, 0, true],
  ])(
    'event %i written at %i ms and %i ticks, with discard points 3 and 6 and an age of two days: %s',
    (number, timestampMs, timestampTicks, stays) => {
      const rule = ruleFor({ a: { discardPoint: 3, maybeDiscardPoint: 6, maxAge: 172_800 } }, { effectiveNowTicks: 5 });
      expect(keeps(rule, { stream: 'a', number, timestampMs, timestampTicks })).toBe(stays);
    },
  );

  it('a maybe-expired event when the age was taken away, and with an absurd one', () => {
    expect(
      keeps(ruleFor({ a: { discardPoint: 3, maybeDiscardPoint: 6 } }), { stream: 'a', number: 4, timestampMs: 0 }),
    ).toBe(true);
    expect(
      keeps(ruleFor({ a: { discardPoint: 3, maybeDiscardPoint: 6, maxAge: Number.MAX_SAFE_INTEGER } }), {
        stream: 'a',
        number: 4,
        timestampMs: 0,
      }),
    ).toBe(true);
  });

  it.each([
    ['data of a transaction, stream alive', { isTombstoned: false, discardPoint: 9 }, DATA, false, true],
    ['begin of a transaction, tombstoned', { isTombstoned: true }, BEGIN, false, true],
    ['data of a transaction, tombstoned', { isTombstoned: true }, DATA, false, false],
    ['end of a transaction, tombstoned', { isTombstoned: true }, END, false, false],
    ['tombstone in a transaction', { isTombstoned: true }, DELETE, false, true],
    ['begin of a transaction, tombstoned, unsafe', { isTombstoned: true }, BEGIN, true, false],
    ['tombstone in a transaction, unsafe', { isTombstoned: true }, DELETE, true, false],
  ])('%s', (_what, row, flags, unsafe, stays) => {
    expect(keeps(ruleFor({ a: { maybeDiscardPoint: 9, ...row } }, { unsafe }), { stream: 'a', number: 0, flags })).toBe(
      stays,
    );
  });
});

it('asks the state once for the streams that come by, however they alternate', () => {
  const rows: Record<string, { discardPoint: number; maybeDiscardPoint: number }> = {};
  for (let i = 0; i < 3_000; i++) rows[`stream-${i}`] = { discardPoint: i, maybeDiscardPoint: i };
  const state = statesWith(rows).open();
  let asked = 0;
  const watched = new Proxy(state, {
    get: (target, name: keyof ScavengeState) => {
      if (name === 'originalByHash') asked++;
      const value = target[name];
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
  const rule = new KeepRule(watched, runSettings(), streamHasher);
  const random = new Random(4);
  for (let i = 0; i < 60_000; i++) {
    const stream = random.int(0, 3_999);
    const number = random.int(0, 3_999);
    if (keeps(rule, { stream: `stream-${stream}`, number }) !== (stream >= 3_000 || number >= stream))
      throw new Error(`wrong answer for ${number} of stream-${stream}`);
  }
  // Each once or a few times: the memory grows with the streams, and forgets when it does.
  expect(asked).toBeGreaterThan(3_000);
  expect(asked).toBeLessThan(25_000);
  const long = 'x'.repeat(300);
  expect([keeps(rule, { stream: long }), keeps(rule, { stream: `${long}y` }), keeps(rule, { stream: long })]).toEqual([
    true,
    true,
    true,
  ]);
});
