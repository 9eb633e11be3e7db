import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compactJson, isNestedAtMost, jsonMembers } from '../core/base/json-scanner.ts';

describe('members of a JSON object', () => {
  test('are as they are written', () => {
    expect(
      jsonMembers(' { "2" : 1.0 , "1":9223372036854775807,"a":[ 1 , {"b":"]}"} ] ,"s":"\\"}", "t" :true\n} '),
    ).toEqual([
      { key: '2', raw: '1.0' },
      { key: '1', raw: '9223372036854775807' },
      { key: 'a', raw: '[ 1 , {"b":"]}"} ]' },
      { key: 's', raw: '"\\"}"' },
      { key: 't', raw: 'true' },
    ]);
    expect(jsonMembers('{}')).toEqual([]);
    expect(jsonMembers('{"\\u0061":null}')).toEqual([{ key: 'a', raw: 'null' }]);
    for (const text of ['', '[]', 'null', '1', '{', '{"a"}', '{"a":1}x', '"{}"'])
      expect(jsonMembers(text), text).toBeNull();
  });

  test('of any object are those that a parser finds', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(3), (object, indent) => {
        const members = jsonMembers(JSON.stringify(object, null, indent))!;
        expect(members.map(({ key }) => key)).toEqual(Object.keys(JSON.parse(JSON.stringify(object)) as object));
        for (const { key, raw } of members) {
          expect(JSON.stringify(JSON.parse(raw))).toBe(JSON.stringify(object[key]));
          expect(compactJson(raw)).toBe(JSON.stringify(object[key]));
        }
      }),
      { seed: 17, numRuns: 300 },
    );
  });
});

describe('nesting', () => {
  test.each<[string, boolean]>([
    ['[[[]]]', true],
    ['[[[[]]]]', false],
    ['{"a":{"b":[]}}', true],
    ['{"a":{"b":[[]]}}', false],
    ['"[[[["', true],
    ['["[[[[\\"[[["]', true],
    ['[[],[],[[]]]', true],
    ['1', true],
    ['', true],
    ['[] [[[[', false],
    ['[[[', true],
    ['"\\\\"[[[[', false],
  ])('of %s is at most 3: %s', (text, expected) => {
    expect(isNestedAtMost(text, 3)).toBe(expected);
  });

  test('of any value is counted as a parser would', () => {
    const depthOf = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.nat(5), (value, most) => {
        expect(isNestedAtMost(JSON.stringify(value), most)).toBe(depthOf(value) <= most);
      }),
      { seed: 17, numRuns: 300 },
    );
  });
});
