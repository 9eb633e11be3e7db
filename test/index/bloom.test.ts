import { describe, expect, it } from 'vitest';
import {
  bloomBytePosition,
  bloomFileBytes,
  BloomFilter,
  BloomProbe,
  checkLines,
  FILTER_BYTES_MAX,
  isTooCorrupt,
  LINE_BYTES,
  readBloomHeader,
  sealLines,
  tableFilterBytes,
} from '../../core/index/format/bloom.ts';
import { bytesToWords, murmur3, xxhOld } from '../../core/base/stream-hash.ts';
import { Random } from '../support/random.ts';
import { keyOf, md5Hex } from './world.ts';

/** The same bits by 64-bit integers. */
function bitsByBigInt(hi: number, lo: number, bits: number): number[] {
  const words = Int32Array.of(lo, hi);
  const hash = (seed: number): bigint => (BigInt(xxhOld(words, 8, seed)) << 32n) | BigInt(murmur3(words, 8, seed));
  let h = hash(0xc0015eed);
  const step = hash(0x13375eed);
  return Array.from({ length: 6 }, () => {
    h = (h + step) & 0x7fff_ffff_ffff_ffffn;
    return Number(h % BigInt(bits));
  });
}

describe('bloom filter', () => {
  it('has files of the documented sizes', () => {
    expect([10_000, 250_000, 256_000_000, 4_000_000_000].map(bloomFileBytes)).toEqual([
      10_752, 266_752, 273_066_752, 4_266_666_752,
    ]);
    expect([1, 40_003, 1_000_000, 10 ** 12].map(tableFilterBytes)).toEqual([10_000, 10_000, 250_000, 4_000_000_000]);
  });

  it('sets the documented bits and bytes', () => {
    const [hi, lo] = keyOf('order-1');
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setUint32(0, lo, true);
    new DataView(bytes.buffer).setUint32(4, hi, true);
    const words = new Int32Array(2);
    bytesToWords(bytes, 0, 8, words);
    expect([xxhOld(words, 8, 0xc0015eed), murmur3(words, 8, 0xc0015eed)]).toEqual([0xa463e014, 0x92cb63d4]);
    expect([xxhOld(words, 8, 0x13375eed), murmur3(words, 8, 0x13375eed)]).toEqual([0x074c1175, 0x5cfb149d]);
    const bits = [41_201, 31_118, 21_035, 10_952, 869, 70_786];
    expect([...new BloomProbe(80_000).of(hi, lo)]).toEqual(bits);
    expect(bits.map(bloomBytePosition)).toEqual([5_554, 4_209, 2_865, 1_521, 176, 9_500]);
  });

  it('makes the documented file', () => {
    const filter = BloomFilter.empty(10_000);
    expect(filter.mayContain(...keyOf('order-1'))).toBe(false);
    filter.add(...keyOf('order-1'));
    sealLines(filter.bytes, LINE_BYTES, filter.bytes.length);
    expect([5_554, 4_209, 2_865, 1_521, 176, 9_500].map((at) => filter.bytes[at])).toEqual([
      0x40, 0x02, 0x10, 0x80, 0x04, 0x20,
    ]);
    expect([...filter.bytes.subarray(5_564, 5_568)]).toEqual([0xc0, 0xa8, 0x2f, 0xe9]);
    expect(md5Hex(filter.bytes)).toBe('69fb49f506a1fe43c28216fdc98b74dc');
    expect(filter.mayContain(...keyOf('order-1'))).toBe(true);
    expect(readBloomHeader(filter.bytes, 10_752)).toEqual({ logicalBytes: 10_000, rebuilds: 0 });
    expect(readBloomHeader(filter.bytes, 10_816)).toBeNull();
  });

  it('finds the same bits as 64-bit integers do, for every size up to the largest', () => {
    const random = new Random(11);
    for (const bytes of [10_000, 10_001, 33_554_432, 256_000_000, 3_999_999_999, FILTER_BYTES_MAX]) {
      const probe = new BloomProbe(bytes * 8);
      for (let i = 0; i < 2_000; i++) {
        const hi = random.next();
        const lo = random.next();
        expect([...probe.of(hi, lo)]).toEqual(bitsByBigInt(hi, lo, bytes * 8));
      }
    }
  });

  it('repairs a bit that was set without its hash, and poisons a line beyond repair', () => {
    const filter = BloomFilter.empty(10_000);
    for (let i = 0; i < 50; i++) filter.add(...keyOf(`s-${i}`));
    const { bytes } = filter;
    sealLines(bytes, LINE_BYTES, bytes.length);
    const sound = bytes.slice();
    expect(checkLines(bytes, LINE_BYTES, bytes.length)).toBe(0);
    const free = sound.findIndex(
      (value, i) =>
        i >= 640 && i % 64 < 60 && value === 0 && sound.subarray(i - (i % 64), i - (i % 64) + 60).some((b) => b !== 0),
    );
    bytes[free] = 0x08;
    expect(checkLines(bytes, LINE_BYTES, bytes.length)).toBe(0);
    expect(bytes).toEqual(sound);
    bytes[free] = 0x18;
    expect(checkLines(bytes, LINE_BYTES, bytes.length)).toBe(1);
    const line = free - (free % 64);
    expect(bytes.subarray(line, line + 64).every((b) => b === 0xff)).toBe(true);
    expect(checkLines(bytes, LINE_BYTES, bytes.length)).toBe(1);
    for (let i = 0; i < 50; i++) expect(filter.mayContain(...keyOf(`s-${i}`))).toBe(true);
    // 168 lines: 8 are below 5 %, 9 above.
    expect([isTooCorrupt(8, 10_752), isTooCorrupt(9, 10_752)]).toEqual([false, true]);
  });
});
