import { describe, expect, it } from 'vitest';
import type { Explanation } from '../../core/scavenge/api.ts';
import { ExplainRanges } from '../../core/scavenge/explain.ts';
import { Learner } from './learn-kit.ts';
import type { LearnerOptions } from './learn-kit.ts';
import type { EventStoreInternals } from '../../core/streams/streams.ts';
import { append, openWorld } from './control-kit.ts';
import { encodeText } from '../../core/base/text.ts';

async function explained(log: string, stream: string, options: LearnerOptions = {}): Promise<Explanation> {
  return (await Learner.create(log, options)).explain(stream);
}

/** `0-2 $tb` for removed ranges, `3-3 why` for kept ones. */
function short({ removed, kept }: Explanation): string[] {
  return [
    ...removed.map(({ from, to, count, rule }) => `-${from}..${to} (${count}) ${rule}`),
    ...kept.map(({ from, to, count, why }) => `+${from}..${to} (${count}) ${why}`),
  ];
}

describe('explain', () => {
  it('names the first rule that removes each event', async () => {
    const e = await explained('a0@old, a1@old | a2@old, a3@old, a4@fresh, a5@fresh, M0(a){age, mc=4, tb=1}', 'a');
    expect(short(e)).toEqual([
      '-0..0 (1) $tb',
      '-1..1 (1) $maxCount',
      '-2..3 (2) $maxAge',
      '+4..4 (1) not below $tb, within $maxCount, within $maxAge',
      '+5..5 (1) last event of the stream',
    ]);
    expect(e).toMatchObject({ stream: 'a', lastEventNumber: 5, metadata: { $maxCount: 4, $tb: 1, $maxAge: 172_800 } });
    expect(e.rules).toEqual([
      { rule: '$tb', value: 1 },
      { rule: '$maxCount', value: 4 },
      { rule: '$maxAge', value: 172_800 },
    ]);
    expect(e.removed.every((range) => range.bytes > 100 * range.count)).toBe(true);
  });

  it('says that no rule applies', async () => {
    const e = await explained('a0, a1, b0', 'a');
    expect(e).toMatchObject({ metadata: null, rules: [], removed: [] });
    expect(short(e)).toEqual(['+0..0 (1) no rule applies', '+1..1 (1) last event of the stream']);
  });

  it.each([
    ['a0, a1, T(a)', {}, ['-0..1 (2) tombstone', '+9007199254740991..9007199254740991 (1) tombstone']],
    ['a0, a1, T(a)', { unsafe: true }, ['-0..9007199254740991 (3) tombstone']],
    [
      'a0, T32(a), a2147483648, a2147483649',
      {},
      [
        '-0..0 (1) tombstone',
        '+2147483647..2147483647 (1) tombstone',
        '+2147483648..2147483649 (2) written after the tombstone',
      ],
    ],
    [
      'a0, tb#1, tp#1, te#1, c#1, a2, M0(a){mc=1}',
      {},
      ['-0..0 (1) $maxCount', '+1..1 (1) part of an explicit transaction', '+2..2 (1) last event of the stream'],
    ],
    ['a0..a2, M0(a){tb=MAX}', {}, ['-0..1 (2) $tb', '+2..2 (1) last event of the stream']],
    [
      'a0@old, a1@fresh, a2@old, a3@fresh, M0(a){age}',
      {},
      ['-0..0 (1) $maxAge', '-2..2 (1) $maxAge', '+1..1 (1) within $maxAge', '+3..3 (1) last event of the stream'],
    ],
    ['a0@cutoff, a1, M0(a){age}', {}, ['+0..0 (1) within $maxAge', '+1..1 (1) last event of the stream']],
    ['a0, a7, a9000, a9001, M0(a){mc=1}', {}, ['-0..9000 (3) $maxCount', '+9001..9001 (1) last event of the stream']],
    ['!a0, a1 | a2, a3, M0(a){tb=3}', {}, ['-2..2 (1) $tb', '+3..3 (1) last event of the stream']],
  ])('explains %s %o', async (log, options, expected) => {
    for (const tablesCount of [0, 2])
      expect(short(await explained(log, 'a', { ...options, tablesCount }))).toEqual(expected);
  });

  it('writes $tb of a soft delete as it stands', async () => {
    const e = await explained('a0, M0(a){tb=MAX}', 'a');
    expect(e.metadata).toEqual({ $tb: '9223372036854775807' });
    expect(e.rules).toEqual([{ rule: '$tb', value: '9223372036854775807' }]);
  });

  it.each([
    [
      '{"$maxAge":"PT5M"}',
      { $maxAge: 'PT5M' },
      [{ key: '$maxAge', value: '"PT5M"', why: 'it must be a whole number of seconds, such as 3600' }],
    ],
    [
      '{"$maxcount":1,"$tb":1}',
      { $maxcount: 1, $tb: 1 },
      [{ key: '$maxcount', value: '1', why: 'unknown key: it must be spelt $maxCount' }],
    ],
    [
      'ten',
      null,
      [
        {
          key: null,
          value: 'ten',
          why: 'this is not a JSON object, so nothing is limited and only administrators have access',
        },
      ],
    ],
    ['{}', {}, undefined],
  ])('names what of the metadata %s, which another program wrote, has no effect', async (json, metadata, ignored) => {
    const { open } = await openWorld();
    for (let i = 0; i < 3; i++) await append(open, 'a', 'thing', new Uint8Array(10));
    await (open.store as EventStoreInternals).appendInternal('$$a', -2, [
      {
        id: '00000000-0000-4000-9000-000000000001',
        type: '$metadata',
        isJson: true,
        data: encodeText(json),
        metadata: new Uint8Array(0),
      },
    ]);
    const explained = await open.scavenger.explain('a');
    expect([explained.metadata, explained.ignored]).toEqual([metadata, ignored]);
    expect(explained.removed).toMatchObject(json.includes('$tb') ? [{ from: 0, to: 0, rule: '$tb' }] : []);
    await open.close();
  });

  it('explains a metastream', async () => {
    const e = await explained('M0(a){mc=1}, M1(a){mc=2}, M2(a){mc=3}, a0', '$$a');
    expect(short(e)).toEqual(['-0..1 (2) superseded-metadata', '+2..2 (1) last event of the stream']);
    expect(e).toMatchObject({
      lastEventNumber: 2,
      metadata: { $maxCount: 1 },
      rules: [{ rule: 'superseded-metadata', value: true }],
    });
    const deleted = await explained('M0(a){mc=1}, M1(a){mc=2}, a0, T(a)', '$$a');
    expect(short(deleted)).toEqual(['-0..1 (2) tombstone']);
  });

  it('knows streams without events, and no others', async () => {
    expect(await explained('M0(a){mc=1}, b0', 'a')).toMatchObject({
      lastEventNumber: -1,
      metadata: { $maxCount: 1 },
      removed: [],
      kept: [],
    });
    await expect(explained('b0', 'a')).rejects.toMatchObject({ code: 'stream_not_found' });
    await expect(explained('b0', '$$a')).rejects.toMatchObject({ code: 'stream_not_found' });
  });

  it('is exact where streams share a hash', async () => {
    const e = await explained('x0, y0, x1, y1, M0(x){mc=1}, M0(y){mc=5}', 'x', { collide: { y: 'x', $$y: '$$x' } });
    expect(short(e)).toEqual(['-0..0 (1) $maxCount', '+1..1 (1) last event of the stream']);
  });

  it('leaves the scavenge database and all files as they are', async () => {
    const learner = await Learner.create('a0, M0(a){mc=1}');
    const before = await learner.world.storage.list('');
    await learner.explain('a');
    expect(await learner.world.storage.list('')).toEqual(before);
  });

  it('keeps the number of ranges bounded, and the counts exact', () => {
    const ranges = new ExplainRanges();
    for (let i = 0; i < 10_000; i++) {
      if (i % 2 === 0) ranges.remove(i, 10, '$maxAge');
      else ranges.keep(i, 'within $maxAge');
    }
    expect(ranges.removed.length).toBe(1_000);
    expect(ranges.kept.length).toBe(1_000);
    expect(ranges.removed.reduce((sum, range) => sum + range.count, 0)).toBe(5_000);
    expect(ranges.removed.at(-1)).toMatchObject({ from: 1_998, to: 9_998 });
  });
});
