import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryImage } from '../../../infra/quickjs/guest.ts';

const PAGE_BYTES = 4096;
const BYTES = 64 * PAGE_BYTES;

function memoryOf(length: number): { buffer: ArrayBuffer; grow: () => number } {
  return { buffer: new ArrayBuffer(length), grow: () => 0 };
}

test('whatever was written since, an image brings back what was there, and leaves what lies behind it', () => {
  const writes = fc.array(fc.record({ at: fc.nat(BYTES - 1), length: fc.nat(3 * PAGE_BYTES), value: fc.nat(255) }), { maxLength: 12 });
  fc.assert(fc.property(writes, writes, (before, since) => {
    const memory = memoryOf(BYTES + PAGE_BYTES);
    const bytes = new Uint8Array(memory.buffer);
    for (const { at, length, value } of before) bytes.fill(value, at, Math.min(BYTES, at + length));
    const expected = bytes.slice();
    const image = MemoryImage.take(memory, BYTES);
    for (const { at, length, value } of since) bytes.fill(value, at, Math.min(BYTES, at + length));
    bytes.fill(7, BYTES);
    expected.fill(7, BYTES);
    image.put(memory);
    expect(Buffer.compare(bytes, expected)).toBe(0);
  }), { seed: 1, numRuns: 200 });
});

test('a part with zeros that is left out stays as it is, and all else comes back', () => {
  const [used, unused, data] = [8 * PAGE_BYTES, 24 * PAGE_BYTES, 40 * PAGE_BYTES];
  const memory = memoryOf(BYTES);
  const bytes = new Uint8Array(memory.buffer);
  bytes.fill(1, data, data + 10);
  const image = MemoryImage.take(memory, BYTES);
  bytes.fill(7);
  image.put(memory, { start: used, end: unused });
  const expected = new Uint8Array(BYTES);
  expected.fill(1, data, data + 10);
  expected.fill(7, used, unused);
  expect(Buffer.compare(bytes, expected)).toBe(0);
  // What is no part of a gap between data is not left out.
  image.put(memory, { start: used, end: data + 1 });
  expected.fill(0, used, unused);
  expect(Buffer.compare(bytes, expected)).toBe(0);
});
