import { describe, expect, test } from 'vitest';
import {
  boolean,
  hosts,
  integer,
  ip,
  list,
  oneOf,
  origins,
  path,
  powerOfTwo,
  size,
  text,
  texts,
} from '../../../infra/runtime/config/kinds.ts';
import type { Kind } from '../../../infra/runtime/config/kinds.ts';

const chunk = size({ min: 131_072, max: 1_073_741_824, multipleOf: 4_096 });
const filter = size({ min: 10_000, max: 4_000_000_000, or: 0 });
const level = oneOf('LEVEL', ['Debug', 'None'], { off: 'None' });

describe('values that are understood', () => {
  test.each<[string, Kind<unknown>, string, unknown]>([
    ['boolean', boolean, 'true', true],
    ['boolean', boolean, 'FALSE', false],
    ['integer', integer('N', 0, 20), '7', 7],
    ['integer', integer('N', 0, 20), '0x10', 16],
    ['integer', integer('N', -5, 5), '-5', -5],
    ['integer', integer('N'), '-2147483648', -2_147_483_648],
    ['integer', integer('N', 0, 20), '007', 7],
    ['power of two', powerOfTwo('N', 1, 64), '1', 1],
    ['power of two', powerOfTwo('N', 1, 64), '64', 64],
    ['size', chunk, '131072', 131_072],
    ['size', chunk, '128KiB', 131_072],
    ['size', chunk, '64 MiB', 67_108_864],
    ['size', chunk, '64m', 67_108_864],
    ['size', chunk, '1GiB', 1_073_741_824],
    ['size or 0', filter, '0', 0],
    ['size or 0', filter, '10000', 10_000],
    ['size or -1', size({ min: 0, max: 10, or: -1 }), '-1', -1],
    ['word', level, 'debug', 'Debug'],
    ['word', level, 'NONE', 'None'],
    ['other spelling', level, 'Off', 'None'],
    ['address', ip, '0.0.0.0', '0.0.0.0'],
    ['address', ip, '::1', '::1'],
    ['path', path('DIR'), './a b', './a b'],
    ['text', text('T'), ' x=y ', ' x=y '],
    ['empty text', text('T', { mayBeEmpty: true }), '', ''],
    [
      'origins',
      origins,
      'https://Events.test, http://localhost:8080',
      ['https://events.test', 'http://localhost:8080'],
    ],
    ['origins', origins, '*', ['*']],
    ['hosts', hosts, 'Events.example.org, .example.net', ['events.example.org', '.example.net']],
    ['list', list('HOST:PORT'), 'a:1, b:2', ['a:1', 'b:2']],
    ['list', list('HOST:PORT'), 'a:1', ['a:1']],
    ['texts', texts('TOKENS'), 'a b, c;d', ['a b', 'c;d']],
    ['texts', texts('TOKENS'), 'long\\, random, short', ['long, random', 'short']],
    // A backslash is one unless a comma follows; behind one that ends a text goes a blank.
    ['texts', texts('TOKENS'), '\\a\\\\b\\\\, c\\ ,d', ['\\a\\\\b\\, c\\', 'd']],
  ])('%s, %#', (_, kind, given, value) => {
    expect(kind.parse(given)).toEqual({ value });
  });
});

describe('values that are not', () => {
  test.each<[string, Kind<unknown>, string]>([
    ...['1', '0', 'yes', 'on', '', ' true'].map(
      (given) => ['true or false', boolean, given] as [string, Kind<unknown>, string],
    ),
    ...['', '1_000', '1.5', '1e3', '21', '-1', '0x', '0x15', '١', '9007199254740993', 'Infinity'].map(
      (given) => ['a whole number from 0 to 20', integer('N', 0, 20), given] as [string, Kind<unknown>, string],
    ),
    ['a whole number', integer('N'), '2147483648'],
    ...['0', '3', '128', '0x10', ''].map(
      (given) => ['a power of two from 1 to 64', powerOfTwo('N', 1, 64), given] as [string, Kind<unknown>, string],
    ),
    ...['131071', '131073', '64KiB', '2GiB', '1.5MiB', '64Mx', 'big', '', '-1', '0'].map(
      (given) =>
        ['a number of bytes from 128 KiB to 1 GiB in steps of 4 KiB, such as 67108864 or 64MiB', chunk, given] as [
          string,
          Kind<unknown>,
          string,
        ],
    ),
    ['a number of bytes from 10000 to 4000000000, or 0, such as 67108864 or 64MiB', filter, '9999'],
    ['one of Debug, None', level, 'loud'],
    ['one of Debug, None', level, 'toString'],
    ['one of Debug, None', level, ''],
    ...['localhost', '1.2.3', '[::1]', ''].map(
      (given) =>
        ['an IP address such as 127.0.0.1 or ::1 (0.0.0.0 for all)', ip, given] as [string, Kind<unknown>, string],
    ),
    ['a path', path('FILE'), ''],
    ['a path', path('FILE'), 'a\0b'],
    ['a non-empty string', text('T'), ''],
    ...['', '*', 'a:80', 'https://a.test', 'a..b', 'a.', 'ä.test', 'a,,b', 'x'.repeat(256)].map(
      (given) =>
        [
          'a list of hosts without ports, such as events.example.test, or .example.test for all below it; non-ASCII names in DNS form (xn--)',
          hosts,
          given,
        ] as [string, Kind<unknown>, string],
    ),
    ...[
      '',
      'events.test',
      'https://events.test/',
      'https://events.test:443',
      'https://a.test/page',
      'ftp://a.test',
      'null',
      'https://*.a.test,',
      'https://u:p@a.test',
    ].map(
      (given) =>
        [
          'a list of origins such as https://events.example.test or http://localhost:8080, without a path, or *',
          origins,
          given,
        ] as [string, Kind<unknown>, string],
    ),
    ...['', 'a;b', 'a\tb', 'a,,b', 'a,'].map(
      (given) => ['a comma-separated list, such as H,H', list('H'), given] as [string, Kind<unknown>, string],
    ),
    ...['', 'a,,b', 'a,', 'a\\,,'].map(
      (given) =>
        ['comma-separated strings (\\, for a comma in one)', texts('T'), given] as [string, Kind<unknown>, string],
    ),
  ])('%s, %#', (allowed, kind, given) => {
    expect(kind.parse(given)).toEqual({ allowed });
  });
});

test('what is shown is what may be given', () => {
  for (const [kind, value] of [
    [boolean, true],
    [integer('N'), -3],
    [chunk, 1_048_576],
    [level, 'Debug'],
    [list('H'), ['a', 'b']],
    [texts('T'), ['a, b', 'c\\', '\\,', 'd;']],
  ] as [Kind<unknown>, unknown][]) {
    expect(kind.parse(kind.show(value))).toEqual({ value });
  }
});
