import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import {
  checkMeaning,
  formatMetadata,
  ignoredMetadata,
  parseMetadata,
  UNREADABLE_LIST,
  withTruncateBefore,
} from '../../core/streams/format/metadata.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';

/** A list was there, or may have been, and can't be understood: administrators only. */
const SHUT = { acl: UNREADABLE_LIST };
const parse = (json: string, version = 1) => parseMetadata(encodeText(json), true, version);

describe('reading stream metadata', () => {
  it.each([
    ['{}', {}],
    ['{"$maxCount":5}', { maxCount: 5 }],
    [' { "$maxAge" : 60 , "x" : [ 1, {"a":"}"} ] , "$tb" : 7 } ', { maxAge: 60, truncateBefore: 7 }],
    ['{"$tb":0}', { truncateBefore: 0 }],
    ['{"$tb":-1}', {}],
    ['{"$tb":9223372036854775807}', { truncateBefore: TOMBSTONE }],
    ['{"$tb":9223372036854775806}', { truncateBefore: TOMBSTONE - 1 }],
    ['{"$tb":9007199254740991}', { truncateBefore: TOMBSTONE - 1 }],
    ['{"$tb":9223372036854775808}', {}],
    ['{"$maxCount":0,"$maxAge":-3,"$cacheControl":0,"$tmp":true}', { temporary: true }],
    ['{"$maxCount":5,"$cacheControl":30}', { maxCount: 5, cacheControl: 30 }],
    ['{"$maxCount":5.0,"$maxAge":1}', {}],
    ['{"$maxCount":5e0,"$maxAge":1}', {}],
    ['{"$maxCount":"5","$maxAge":1}', {}],
    ['{"$maxCount":null,"$maxAge":1}', {}],
    ['{"$maxCount":99999999999999999999,"$maxAge":1}', {}],
    ['{"$tmp":1,"$maxAge":1}', {}],
    [
      '{"$acl":{"$r":"a","$w":["b","c"],"$d":[]},"$maxAge":1}',
      { acl: { read: ['a'], write: ['b', 'c'], delete: [] }, maxAge: 1 },
    ],
    ['{"$acl":{"$mr":"x","$mw":"y"}}', { acl: { metadataRead: ['x'], metadataWrite: ['y'] } }],
    ['{"$acl":{"$r":"a","other":1},"$maxAge":1}', SHUT],
    ['{"$acl":{"$r":[1]},"$maxAge":1}', SHUT],
    ['{"$acl":[],"$maxAge":1}', SHUT],
    ['{"$acl":7,"$acl":{"$r":"a"}}', SHUT],
    ['{"$acl":{"$r":"a"},"$acl":{"$r":"b"}}', { acl: { read: ['b'] } }],
    ['{"$acl":{"$r":"a"},"$maxCount":"5","$maxAge":1}', { acl: { read: ['a'] } }],
    ['{"$maxCount":3,"$maxCount":4}', { maxCount: 4 }],
    ['{"\\u0024maxCount":6}', { maxCount: 6 }],
    ['[1]', SHUT],
    ['"x"', SHUT],
    ['{"$maxCount":1', SHUT],
    ['', {}],
  ])('%s', (json, expected) => {
    const read = parse(json);
    expect(read).toEqual(expected);
    // A list that names nobody on purpose looks the same, and is another one.
    if (expected === SHUT) expect(read.acl).toBe(UNREADABLE_LIST);
  });

  it('takes no notice of what is not marked as JSON', () => {
    expect(parseMetadata(encodeText('{"$maxCount":5}'), false, 1)).toEqual({});
  });

  it.each(['{"$acl":{"$r":"a"}}', '\u0001', '{'])('opens nothing by %j that is not marked as JSON', (data) => {
    expect(parseMetadata(encodeText(data), false, 1).acl).toBe(UNREADABLE_LIST);
  });

  it('knows the 32-bit number of a deleted stream in old records', () => {
    expect(parse('{"$tb":2147483647}', 0)).toEqual({ truncateBefore: TOMBSTONE });
    expect(parse('{"$tb":2147483647}', 1)).toEqual({ truncateBefore: 2_147_483_647 });
  });
});

describe('what may be written', () => {
  const check = (stream: string, json: string, isJson = true) =>
    checkMeaning(stream, [{ id: '', type: 'x', isJson, data: encodeText(json), metadata: new Uint8Array(0) }]);

  it.each([
    ['{"$maxCount":"5"}', '$maxCount', /\$maxCount in the metadata of s must be a whole number/],
    ['{"x":1,"$tmp":0}', '$tmp', /must be true or false/],
    ['{"$acl":{"$w":{}}}', '$acl.$w', /name of a user or group/],
    [
      '{"$maxAge":"PT5M"}',
      '$maxAge',
      /^\$maxAge in the metadata of s must be a whole number of seconds, such as 3600\.$/,
    ],
    ['{"$maxCount":"10"}', '$maxCount', /must be a whole number of events/],
    ['{"$tb":"3"}', '$tb', /must be a whole number, the number of the first event to keep/],
    ['{"$cacheControl":1.5}', '$cacheControl', /whole number of seconds/],
    ['{"$maxcount":10}', '$maxcount', /^\$maxcount in the metadata of s must be spelt \$maxCount\.$/],
    ['{"$MAXAGE":10}', '$MAXAGE', /spelt \$maxAge/],
    ['{"$ACL":{}}', '$ACL', /spelt \$acl/],
    ['"{\\"$maxCount\\":10}"', null, /^The metadata of s must be a JSON object sent as JSON/],
    ['{"$acl":{"$R":"a"}}', '$acl.$R', /ignored/],
    ['{"$acl":[]}', '$acl', /an object with some of/],
    ['[]', null, /^The metadata of s must be a JSON object/],
    ['', null, /\{\} for none/],
  ])('%s is refused', (json, key, message) => {
    expect(check('$$s', json)).toMatchObject({
      code: 'invalid_metadata',
      message: expect.stringMatching(message),
      data: { stream: '$$s', key },
    });
    expect(check('s', json)).toBeNull();
  });

  it.each([
    '{}',
    '{"$maxCount":0,"$tb":-1,"mine":[1.5]}',
    '{"$acl":{"$r":null,"$w":[]}}',
    '{"$tb":9223372036854775807}',
  ])('%s is taken', (json) => {
    expect(check('$$s', json)).toBeNull();
    expect(check('$$s', json, false)).toMatchObject({ code: 'invalid_metadata' });
  });

  it('leaves keys alone that only resemble known ones', () => {
    expect(check('$$s', '{"maxCount":"x","$max-count":1,"$maxCounts":[],"max":{}}')).toBeNull();
  });

  it('looks at every event of a request, and names a stream before its content', () => {
    const events = ['{}', '{"$tb":true}', '{}'].map((json) => ({
      id: '',
      type: 'x',
      isJson: true,
      data: encodeText(json),
      metadata: new Uint8Array(0),
    }));
    expect(checkMeaning('$$s', events)).toMatchObject({ data: { key: '$tb' } });
    expect(check('$$', '7')).toMatchObject({ code: 'invalid_stream_name' });
    expect(check('$$$$s', '7')).toMatchObject({ code: 'access_denied' });
  });

  it.each([
    ['7', null],
    ['{"$userStreamAcl":1}', '$userStreamAcl'],
    ['{"$systemStreamAcl":{"$r":[1]}}', '$systemStreamAcl.$r'],
  ])('%s are no $settings', (json, key) => {
    expect(check('$settings', json)).toMatchObject({ code: 'invalid_metadata', data: { key } });
  });
});

describe('writing stream metadata', () => {
  it('keeps the order of the reference and writes one role as text', () => {
    const text = formatMetadata({
      acl: { metadataWrite: ['w'], read: [], write: ['a', 'b'] },
      cacheControl: 1,
      temporary: false,
      truncateBefore: TOMBSTONE,
      maxAge: 2,
      maxCount: 3,
    });
    expect(text).toBe(
      '{"$maxCount":3,"$maxAge":2,"$tb":9223372036854775807,"$tmp":false,"$cacheControl":1,"$acl":{"$r":[],"$w":["a","b"],"$mw":"w"}}',
    );
    expect(formatMetadata({})).toBe('{}');
  });

  it.each([
    ['{"$tb":9223372036854775807}', '{"$tb":4}'],
    [
      '{ "mine" : { "a" : [ 1.50, "x y" ] }, "$tb":9223372036854775807, "$acl": {"$r": "a"}, "$maxCount": 12345678901234567890 }',
      '{"$maxCount":12345678901234567890,"$tb":4,"$acl":{"$r":"a"},"mine":{"a":[1.50,"x y"]}}',
    ],
    ['{"a \\"b\\"":1,"$tb":1,"$tb":9223372036854775807}', '{"$tb":4,"a \\"b\\"":1}'],
  ])('brings back %s', (previous, expected) => {
    expect(decodeText(withTruncateBefore(encodeText(previous), 4))).toBe(expected);
  });
});

describe('what is there and has no effect', () => {
  const ignored = (json: string) =>
    ignoredMetadata(encodeText(json), 1).map(({ key, value, why }) => `${key}=${value}: ${why}`);

  it.each([
    ['', []],
    ['{}', []],
    ['{"$maxCount":5,"$tb":0,"$tmp":false,"$acl":{"$r":"a"},"mine":"x"}', []],
    ['{"$maxAge":"PT5M"}', ['$maxAge="PT5M": it must be a whole number of seconds, such as 3600']],
    ['{"$maxcount":10,"$tb":3}', ['$maxcount=10: unknown key: it must be spelt $maxCount']],
    [
      '{"$maxCount":"10","$tb":3,"mine":1}',
      [
        '$maxCount="10": it must be a whole number of events, such as 100',
        '$tb=3: it is valid, but has no effect because $maxCount is invalid',
      ],
    ],
    [
      '{"$maxCount":0,"$tb":-1}',
      ['$maxCount=0: only numbers above 0 have an effect', '$tb=-1: a number below 0 truncates nothing'],
    ],
    [
      '{"$acl":{"$x":1},"$maxAge":3}',
      [
        '$acl={"$x":1}: $acl.$x must be ignored: an access list has only $r, $w, $d, $mr and $mw; until then only administrators have access',
        '$maxAge=3: it is valid, but has no effect because $acl is invalid',
      ],
    ],
    [
      '$maxCount: 10',
      ['null=$maxCount: 10: this is not a JSON object, so nothing is limited and only administrators have access'],
    ],
  ])('%s', (json, expected) => {
    expect(ignored(json)).toEqual(expected);
    // What counts is what was not named.
    const { acl: _, ...counts } = parse(json);
    for (const text of expected) expect(Object.keys(counts)).not.toContain(/^\$(\w+)=/.exec(text)?.[1]);
  });

  it('is cut off where it is long', () => {
    expect(ignoredMetadata(encodeText('x'.repeat(1_000)), 1)[0]!.value).toHaveLength(201);
    expect(
      ignoredMetadata(encodeText(`{${Array.from({ length: 200 }, () => '"$MAXCOUNT":1').join(',')}}`), 1),
    ).toHaveLength(100);
  });
});
