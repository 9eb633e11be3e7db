import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../core/log/records.ts';
import { formatMetadata, parseMetadata, withTruncateBefore } from '../../core/streams/metadata.ts';
import { decodeText, encodeText } from '../../core/text.ts';

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
    ['{"$acl":{"$r":"a","$w":["b","c"],"$d":[]},"$maxAge":1}', { acl: { read: ['a'], write: ['b', 'c'], delete: [] }, maxAge: 1 }],
    ['{"$acl":{"$mr":"x","$mw":"y"}}', { acl: { metadataRead: ['x'], metadataWrite: ['y'] } }],
    ['{"$acl":{"$r":"a","other":1},"$maxAge":1}', {}],
    ['{"$acl":{"$r":[1]},"$maxAge":1}', {}],
    ['{"$acl":[],"$maxAge":1}', {}],
    ['{"$maxCount":3,"$maxCount":4}', { maxCount: 4 }],
    ['{"\\u0024maxCount":6}', { maxCount: 6 }],
    ['[1]', {}],
    ['"x"', {}],
    ['{"$maxCount":1', {}],
    ['', {}],
  ])('%s', (json, expected) => {
    expect(parse(json)).toEqual(expected);
  });

  it('takes no notice of what is not marked as JSON', () => {
    expect(parseMetadata(encodeText('{"$maxCount":5}'), false, 1)).toEqual({});
  });

  it('knows the 32-bit number of a deleted stream in old records', () => {
    expect(parse('{"$tb":2147483647}', 0)).toEqual({ truncateBefore: TOMBSTONE });
    expect(parse('{"$tb":2147483647}', 1)).toEqual({ truncateBefore: 2_147_483_647 });
  });
});

describe('writing stream metadata', () => {
  it('keeps the order of the reference and writes one role as text', () => {
    const text = formatMetadata({ acl: { metadataWrite: ['w'], read: [], write: ['a', 'b'] }, cacheControl: 1, temporary: false, truncateBefore: TOMBSTONE, maxAge: 2, maxCount: 3 });
    expect(text).toBe('{"$maxCount":3,"$maxAge":2,"$tb":9223372036854775807,"$tmp":false,"$cacheControl":1,"$acl":{"$r":[],"$w":["a","b"],"$mw":"w"}}');
    expect(formatMetadata({})).toBe('{}');
  });

  it.each([
    ['{"$tb":9223372036854775807}', '{"$tb":4}'],
    ['{ "mine" : { "a" : [ 1.50, "x y" ] }, "$tb":9223372036854775807, "$acl": {"$r": "a"}, "$maxCount": 12345678901234567890 }', '{"$maxCount":12345678901234567890,"$tb":4,"$acl":{"$r":"a"},"mine":{"a":[1.50,"x y"]}}'],
    ['{"a \\"b\\"":1,"$tb":1,"$tb":9223372036854775807}', '{"$tb":4,"a \\"b\\"":1}'],
  ])('brings back %s', (previous, expected) => {
    expect(decodeText(withTruncateBefore(encodeText(previous), 4))).toBe(expected);
  });
});
