import { describe, expect, it } from 'vitest';
import { bytesToWords, Hash64, murmur3, STREAM_HASH_SEED, streamHasher, xxhOld } from '../../core/base/stream-hash.ts';

const hex = (n: number) => n.toString(16).padStart(8, '0').toUpperCase();
const NAMES: [string, string, string][] = [
  ['', '02CC5D05', '821F9986'],
  ['a', 'E4DBDA76', 'CFB6533E'],
  ['ab', '191A8C9B', 'AFABC9C2'],
  ['abc', 'CEB21450', 'D25E5B46'],
  ['abcd', 'C39F3794', 'D5A86707'],
  ['$all', '5BBB4579', 'D3056ACA'],
  ['order-1', 'FB6D8C2B', 'F5293FDC'],
  ['order-42', 'F119675F', 'E99B7211'],
  ['$$order-42', 'C82389C3', 'A6291351'],
  ['$epoch-information', '31142C70', '9D56FAFB'],
  ['$users', '7CB1F4E6', 'EE9ECE11'],
  ['a-much-longer-stream-name-0123456789', 'C82E3526', '960C91E9'],
  ['café-1', 'D7EC74D2', '0D224F8B'],
  ['😀-x', 'A944DDCD', 'B44474D8'],
];
const RAW: [number, string, string][] = [
  [1, 'F0A9D7D5', 'C977F397'],
  [4, '7E3A427E', 'B9B73154'],
  [8, '7DA30DE0', 'BCB5DAF0'],
  [15, '6F9507FF', '0408AC1D'],
  [16, '56EE5CB4', 'CCE57279'],
  [20, '40C6A9EB', 'C8679292'],
  [32, '4953CEE1', '2C0FD8A8'],
  [60, 'F29CE499', '4D8B9E44'],
];

/** SMHasher's verification: hashes of 256 keys under falling seeds, hashed once more. */
function verification(hash: (w: Int32Array, n: number, seed: number) => number): number {
  const key = new Uint8Array(256);
  const all = new Uint8Array(1_024);
  const words = new Int32Array(257);
  for (let i = 0; i < 256; i++) {
    key[i] = i;
    bytesToWords(key, 0, i, words);
    new DataView(all.buffer).setUint32(i * 4, hash(words, i, 256 - i), true);
  }
  bytesToWords(all, 0, 1_024, words);
  return hash(words, 1_024, 0);
}

describe('stream hash', () => {
  it.each(NAMES)('hashes %j from text and from UTF-8', (name, hi, lo) => {
    const out = new Hash64();
    streamHasher.hash(name, out);
    expect([hex(out.hi), hex(out.lo)]).toEqual([hi, lo]);
    const utf8 = new TextEncoder().encode(`__${name}__`);
    const fromBytes = new Hash64();
    streamHasher.hashUtf8(utf8, 2, utf8.length - 4, fromBytes);
    expect(fromBytes).toEqual(out);
  });

  it.each(RAW)('hashes %i raw bytes', (n, xxh, murmur) => {
    const words = new Int32Array(16);
    bytesToWords(
      Uint8Array.from({ length: n }, (_, i) => i),
      0,
      n,
      words,
    );
    expect([hex(xxhOld(words, n, STREAM_HASH_SEED)), hex(murmur3(words, n, STREAM_HASH_SEED))]).toEqual([xxh, murmur]);
  });

  it('gives the published verification values', () => {
    expect(hex(verification(xxhOld))).toBe('56D249B1');
    expect(hex(verification(murmur3))).toBe('B0F57EE3');
  });

  it('agrees on both ways for every length, past the scratch buffer too', () => {
    const a = new Hash64();
    const b = new Hash64();
    for (const length of [...Array(70).keys(), 1_023, 1_024, 1_025, 5_001]) {
      const ascii = Array.from({ length }, (_, i) => String.fromCharCode(33 + ((i * 7) % 90))).join('');
      for (const name of [ascii, `${ascii}ß`, `${ascii}\u{1F600}x`]) {
        const utf8 = new TextEncoder().encode(name);
        streamHasher.hash(name, a);
        streamHasher.hashUtf8(utf8, 0, utf8.length, b);
        expect(b).toEqual(a);
      }
    }
  });
});
