import { describe, expect, it } from 'vitest';
import { EMPTY_INDEX_MAP, formatIndexMap, type IndexMap, parseIndexMap } from '../../core/index/format/index-map.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { md5Hex } from './world.ts';

const NAME = '3f2504e0-4f89-11d3-9a0c-0305e82c3301';
const ONE: IndexMap = { commitCheckpoint: 1_400, prepareCheckpoint: 1_400, levels: [[NAME]] };

function mapText(body: string): Uint8Array {
  return encodeText(md5Hex(encodeText(body)).toUpperCase() + body);
}

describe('index map', () => {
  it('is written as documented', () => {
    expect(decodeText(formatIndexMap(EMPTY_INDEX_MAP, nodeDigests))).toBe(
      '7B3FA3A59A5AA04F058659D4997A2E22\n2\n-1/-1\n2147483647\n',
    );
    expect(decodeText(formatIndexMap(ONE, nodeDigests))).toBe(
      `E0807562346E4439DB5E298E343AB2AF\n2\n1400/1400\n2147483647\n0,0,${NAME}\n`,
    );
  });

  it('reads what it writes, levels without tables included', () => {
    const map: IndexMap = {
      commitCheckpoint: 9,
      prepareCheckpoint: 8,
      levels: [[], [NAME, NAME.replace(/^./, 'a')], [], [NAME.replace(/^./, 'b')]],
    };
    expect(parseIndexMap(formatIndexMap(map, nodeDigests), nodeDigests)).toEqual(map);
    expect(parseIndexMap(formatIndexMap(EMPTY_INDEX_MAP, nodeDigests), nodeDigests)).toEqual(EMPTY_INDEX_MAP);
  });

  it('accepts the other line end and version 1', () => {
    expect(parseIndexMap(mapText(`\r\n2\r\n1400/1400\r\n2147483647\r\n0,0,${NAME}\r\n`), nodeDigests)).toEqual(ONE);
    expect(parseIndexMap(mapText(`\n1\n1400/1400\n0,0,${NAME}\n`), nodeDigests)).toEqual(ONE);
  });

  it.each([
    ['a negative checkpoint', '\n2\n-2/-1\n2147483647\n'],
    ['tables without a checkpoint', `\n2\n-1/-1\n2147483647\n0,0,${NAME}\n`],
    ['a gap in the positions', `\n2\n5/5\n2147483647\n0,1,${NAME}\n`],
    ['levels out of order', `\n2\n5/5\n2147483647\n1,0,${NAME}\n0,0,${NAME}\n`],
    ['a lower merge limit', `\n2\n5/5\n3\n0,0,${NAME}\n`],
    ['a path for a name', '\n2\n5/5\n2147483647\n0,0,../a\n'],
    ["a name that is no table's", `\n2\n5/5\n2147483647\n0,0,${NAME}x\n`],
    ['an unknown version', '\n3\n5/5\n2147483647\n'],
    ['no checkpoints', '\n2\n'],
  ])('refuses %s', (_what, body) => {
    expect(() => parseIndexMap(mapText(body), nodeDigests)).toThrow(expect.objectContaining({ code: 'index_corrupt' }));
  });

  it('refuses any changed byte and any missing end', () => {
    const bytes = formatIndexMap(ONE, nodeDigests);
    for (let i = 0; i < bytes.length; i++) {
      const changed = bytes.slice();
      changed[i]! ^= 1;
      expect(() => parseIndexMap(changed, nodeDigests)).toThrow(expect.objectContaining({ code: 'index_corrupt' }));
      expect(() => parseIndexMap(bytes.subarray(0, i), nodeDigests)).toThrow(
        expect.objectContaining({ code: 'index_corrupt' }),
      );
    }
  });
});
