import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JSON_DEPTH_MAX, jsonString, reindent } from '../../../handlers/http/json-text.ts';
import { bySize } from '../../support/run-size.ts';

describe('reindent', () => {
  test.each([
    ['{"a":1}', '{\n  "a": 1\n}'],
    ['{}', '{}'],
    [' [ ] ', '[]'],
    ['{"a":{},"b":[]}', '{\n  "a": {},\n  "b": []\n}'],
    ['{"a":1.50,"b":1.0,"c":-0,"d":10}', '{\n  "a": 1.5,\n  "b": 1.0,\n  "c": 0,\n  "d": 10\n}'],
    [
      '[9223372036854775807,123456789012345678901234567890]',
      '[\n  9223372036854775807,\n  123456789012345678901234567890\n]',
    ],
    ['[1e3,1E-2,2.5e1,1e999]', '[\n  1000.0,\n  0.01,\n  25.0,\n  1e999\n]'],
    ['{"10":1,"2":2,"1":3}', '{\n  "10": 1,\n  "2": 2,\n  "1": 3\n}'],
    ['"\\u00e9\\/\\n"', '"é/\\n"'],
    ['"a\u2028b"', '"a\\u2028b"'],
    ['\ufeff[true,false,null]', '[\n  true,\n  false,\n  null\n]'],
    ['{"__proto__":1}', '{\n  "__proto__": 1\n}'],
  ])('%s', (text, expected) => {
    expect(reindent(text)).toBe(expected);
  });

  test.each([
    '',
    ' ',
    '{',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '[1,]',
    '[1 2]',
    '{a:1}',
    "{'a':1}",
    '01',
    '1.',
    '.5',
    '-',
    '+1',
    '"a',
    '"\t"',
    '"\n"',
    '"\\x"',
    '"\\u12"',
    'nul',
    'truex',
    '1 2',
    '[}',
    'NaN',
    '"\u0001"',
  ])('refuses %j', (text) => {
    expect(reindent(text)).toBeNull();
  });

  test('nests as deep as the limit and no deeper', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    expect(reindent(nested(JSON_DEPTH_MAX))).not.toBeNull();
    expect(reindent(nested(JSON_DEPTH_MAX + 1))).toBeNull();
    expect(reindent(nested(100_000))).toBeNull();
  });

  test('agrees with the platform on every value without fractions', () => {
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string({ unit: 'binary' }),
        fc.maxSafeInteger(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(fc.string({ minLength: 1 }), tie('value'), { maxKeys: 4, noNullPrototype: true }),
      ),
    })).value;
    const plain = (text: string): string =>
      text.replace(/[\u0085\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
    fc.assert(
      fc.property(value, (v) => {
        expect(reindent(JSON.stringify(v))).toBe(plain(JSON.stringify(v, null, 2)));
        expect(reindent(JSON.stringify(v, null, 3))).toBe(reindent(JSON.stringify(v)));
      }),
      { seed: 7, numRuns: 300 },
    );
  });

  test('accepts exactly what the platform parses', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:0123.eE-+ \ntrufalsn\\/'), maxLength: 12 }), (text) => {
        let parses = true;
        try {
          JSON.parse(text);
        } catch {
          parses = false;
        }
        expect(reindent(text) !== null).toBe(parses);
      }),
      { seed: 11, numRuns: bySize(1_000, 5_000) },
    );
  });
});

test('jsonString escapes what some JavaScript takes for line ends', () => {
  expect(jsonString('a\u0085\u2028\u2029"é')).toBe('"a\\u0085\\u2028\\u2029\\"é"');
});
