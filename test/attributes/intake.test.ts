import { describe, expect, it } from 'vitest';
import { Hash64 } from '../../core/base/stream-hash.ts';
import { encodeText } from '../../core/base/text.ts';
import {
  categoryLength,
  categoryOf,
  hashKey,
  hashKeyUtf8,
  type KeyKind,
} from '../../core/attributes/format/attribute-keys.ts';
import { attributesIn } from '../../core/attributes/format/attribute-texts.ts';
import { EntriesAhead } from '../../core/attributes/entries-ahead/entries-ahead.ts';
import { HIT } from '../../core/base/step.ts';
import { Candidates } from '../../core/streams/candidates.ts';
import type { EventQuery } from '../../core/streams/api.ts';
import type { AttributeSinks } from '../../core/attributes/api.ts';
import { AttributeIntake } from '../../core/attributes/intake/intake.ts';
import { encodePrepare } from '../../core/log/format/records.ts';
import { decodeSetting, encodeSetting } from '../../core/attributes/format/setting.ts';
import { Random } from '../support/random.ts';

function hashOf(kind: KeyKind, text: string): string {
  const out = new Hash64();
  hashKey(kind, text, out);
  return `${out.hi.toString(16).padStart(8, '0')}${out.lo.toString(16).padStart(8, '0')}`;
}

function found(metadata: string): string[] {
  const { correlation, tags } = attributesIn(encodeText(metadata));
  return [...(correlation === null ? [] : [`bc:${correlation}`]), ...tags.map((tag) => `tag:${tag}`)];
}

describe('keys of attributes', () => {
  it('are hashes that stay what they are', () => {
    expect(hashOf('ce', 'invoice')).toBe('1572c0606478f8ee');
    expect(hashOf('et', 'invoice')).toBe('8b45b9d16478f8ee');
    expect(hashOf('bc', 'invoice')).toBe('90990a0b6478f8ee');
    expect(hashOf('tag', 'invoice')).toBe('d7c06e556478f8ee');
  });

  it('are the same of text and of its bytes', () => {
    const out = new Hash64();
    for (const text of ['order', 'été', 'a😀b', 'x'.repeat(300)]) {
      const bytes = encodeText(text);
      hashKeyUtf8('tag', bytes, 0, bytes.length, out);
      expect(hashOf('tag', text)).toBe(
        `${out.hi.toString(16).padStart(8, '0')}${out.lo.toString(16).padStart(8, '0')}`,
      );
    }
  });

  it('have the categories of streams, by text and by bytes', () => {
    for (const [stream, category] of [
      ['order-1', 'order'],
      ['order-1-2', 'order'],
      ['order', 'order'],
      ['-x', null],
      ['$order-1', null],
      ['été-5', 'été'],
      ['order-', 'order'],
    ] as const) {
      expect(categoryOf(stream)).toBe(category);
      const bytes = encodeText(stream);
      expect(categoryLength(bytes, 0, bytes.length)).toBe(category === null ? 0 : encodeText(category).length);
    }
  });
});

describe('attributes of metadata', () => {
  it('are the correlation and the tags of an object', () => {
    expect(found('{"$correlationId":"c","$tags":["a","b"]}')).toEqual(['bc:c', 'tag:a', 'tag:b']);
    expect(found(' { "x" : {"$tags":["no"]} , "$tags" : [ 1 , "a" , {"y":[]}, "b" ] , "z":null }')).toEqual([
      'tag:a',
      'tag:b',
    ]);
    expect(found('{"$tags":["\\u0061\\n"],"$correlationId":"\\u00e9"}')).toEqual(['bc:é', 'tag:a\n']);
    // Names in another spelling are none, for readers neither.
    expect(found('{"\\u0024tags":["a"],"$correl\\u0061tionId":"é"}')).toEqual([]);
    expect(found('{"$tags":[],"$correlationId":"c"}')).toEqual(['bc:c']);
  });

  it('are none of anything else', () => {
    for (const text of [
      '',
      '[]',
      '"$tags"',
      '["$tags",["a"]]',
      '{"$tags":"a","$correlationId":7}',
      '{"x":"\\"$tags\\":[1]"}',
      '{"$tags":{"0":"a"}}',
      '{"$correlationId":""}',
    ])
      expect(found(text)).toEqual([]);
  });

  it('are texts of at most 256 bytes, the first 64 items of the tags', () => {
    const tags = Array.from({ length: 70 }, (_, i) =>
      i === 3 ? 'é'.repeat(129) : i === 4 ? 'é'.repeat(128) : `t${i}`,
    );
    const keys = found(JSON.stringify({ $tags: tags, $correlationId: 'x'.repeat(257) }));
    expect(keys).toEqual(
      tags
        .slice(0, 64)
        .filter((_, i) => i !== 3)
        .map((tag) => `tag:${tag}`),
    );
    expect(found(JSON.stringify({ $correlationId: 'x'.repeat(256), after: 1 }))).toHaveLength(1);
  });

  it('are found in whatever JSON there is, and nothing stops at text that is none', () => {
    const random = new Random(7);
    for (let n = 0; n < 2_000; n++) {
      const value = { [`k${n}`]: valueOf(random, 0), $tags: ['a', n], $correlationId: `c${n}`, z: valueOf(random, 0) };
      const text = JSON.stringify(value, null, random.int(0, 2));
      expect(found(text)).toEqual([`bc:c${n}`, 'tag:a']);
      const cut = text.slice(0, random.int(0, text.length - 1));
      expect(() => found(cut)).not.toThrow();
    }
  });
});

function valueOf(random: Random, depth: number): unknown {
  switch (random.int(0, depth > 2 ? 3 : 5)) {
    case 0:
      return random.int(-9, 9) / 4;
    case 1:
      return random.chance(0.5) ? null : true;
    case 2:
      return 'a"\\/\n\u2028$tags"é'.slice(random.int(0, 6));
    case 3:
      return '';
    case 4:
      return [valueOf(random, depth + 1), valueOf(random, depth + 1)];
    default:
      return { $tags: valueOf(random, depth + 1), '"': valueOf(random, depth + 1) };
  }
}

describe('the setting', () => {
  it('says of each index whether it is there, and nothing else', () => {
    const setting = { names: true, correlations: false, tags: true };
    expect(decodeSetting(encodeSetting(setting))).toEqual(setting);
    for (const text of ['', '[]', '{"names":true}', '{"names":1,"correlations":true,"tags":true}'])
      expect(decodeSetting(encodeText(text))).toBeNull();
    expect(decodeSetting(encodeText('{"names":true,"correlations":true,"tags":true,"more":1}'))).toBeNull();
  });
});

/** Framed records of whole transactions, one behind the other. Every seventh has no metadata. */
function writtenRecords(count: number, start: number): { bytes: Uint8Array; ends: number[] } {
  const out = new Uint8Array(count * 400);
  const id = new Uint8Array(16).fill(7);
  const ends: number[] = [];
  let at = 0;
  for (let n = 0; n < count; n++) {
    at = encodePrepare(out, at, {
      position: start + at,
      flags: 0x27,
      transactionPosition: start + at,
      transactionOffset: 0,
      expectedVersion: -2,
      stream: encodeText(n % 5 === 0 ? '$odd' : `order-${n}`),
      eventId: id,
      correlationId: id,
      timestampMs: 1_700_000_000_000,
      timestampTicks: 0,
      eventType: encodeText(`type-${n % 3}`),
      data: encodeText('{}'),
      metadata: encodeText(n % 7 === 0 ? '' : JSON.stringify({ $tags: [`a${n}`, 'b'], $correlationId: `c${n % 4}` })),
    });
    ends.push(at);
  }
  return { bytes: out.subarray(0, at), ends };
}

/** What sinks of all three indexes are told, in order. */
function told(into: (sinks: AttributeSinks) => void): Record<string, string[]> {
  const all: Record<string, string[]> = { names: [], correlations: [], tags: [] };
  const sinkOf = (name: string) => ({
    add: (hi: number, lo: number, position: number) => void all[name]!.push(`${hi},${lo} at ${position}`),
    end: (position: number) => void all[name]!.push(`end ${position}`),
  });
  into({ names: sinkOf('names'), correlations: sinkOf('correlations'), tags: sinkOf('tags') });
  return all;
}

/** Entries, and the last end: those between say nothing that the next one does not. */
function thatCount(lines: readonly string[]): string[] {
  return lines.filter((line, i) => !line.startsWith('end') || i === lines.length - 1);
}

describe('entries that are read ahead', () => {
  it('are those of the records, however often they are read, and go on with the rest', () => {
    const random = new Random(11);
    const ahead = new EntriesAhead();
    for (let turn = 0; turn < 40; turn++) {
      const start = turn * 100_000;
      const { bytes, ends } = writtenRecords(random.int(1, 60), start);
      ahead.clear();
      for (let reads = random.int(0, 4); reads > 0; reads--)
        ahead.read(bytes, start, ends[random.int(0, ends.length - 1)]!);
      const all = told((sinks) => new AttributeIntake(sinks).take(bytes, start));
      const both = told((sinks) => {
        const given = ahead.giveTo(sinks);
        expect(given === 0 || ends.includes(given)).toBe(true);
        new AttributeIntake(sinks).take(bytes, start, given);
      });
      for (const name of ['names', 'correlations', 'tags'])
        expect(thatCount(both[name]!)).toEqual(thatCount(all[name]!));
    }
  });

  it('say whether what a query asks for may be among them, as far as they are read', () => {
    const entries = { coveredTo: 1, run: (): typeof HIT => HIT };
    const indexes = { isOn: () => true, of: () => entries };
    const ahead = new EntriesAhead();
    const mayBe = (query: EventQuery): boolean => Candidates.of(query, indexes)!.mayBeAmong(ahead);
    const { bytes, ends } = writtenRecords(4, 0);
    ahead.read(bytes, 0, ends[2]!);
    // One event has both, or two have one each; of what must hold together nothing may be missing.
    for (const tags of [['a1', 'b'], ['a1', 'a2'], ['b']]) expect(mayBe({ tags })).toBe(true);
    for (const tags of [['a1', 'none'], ['none', 'a1'], ['a3']]) expect(mayBe({ tags })).toBe(false);
    expect(mayBe({ types: ['none', 'type-2'], tags: ['b'] })).toBe(true);
    expect(mayBe({ types: ['none'], tags: ['b'] })).toBe(false);
    expect(mayBe({ anyOf: [{ tags: ['none'] }, { tags: ['a2'] }] })).toBe(true);
    expect(mayBe({ category: 'order', correlation: 'c1' })).toBe(true);
    expect(mayBe({ category: 'other', correlation: 'c1' })).toBe(false);
    ahead.read(bytes, 0, ends[3]!);
    expect(mayBe({ tags: ['a3'] })).toBe(true);
    ahead.clear();
    expect(mayBe({ tags: ['b'] })).toBe(false);
  });

  it('are all said to be among them, however many there are', () => {
    const ahead = new EntriesAhead();
    const { bytes, ends } = writtenRecords(3_000, 0);
    ahead.read(bytes, 0, ends.at(-1)!);
    const key = new Hash64();
    for (let n = 0; n < 3_000; n++) {
      // These have no tags.
      if (n % 7 === 0) continue;
      hashKey('tag', `a${n}`, key);
      expect(ahead.mayHave('tags', key.hi, key.lo), `a${n}`).toBe(true);
    }
  });
});
