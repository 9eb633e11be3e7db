import { expect, it } from 'vitest';
import { viewAt } from '../core/base/bytes.ts';
import { decodeText } from '../core/base/text.ts';
import { timestampText } from '../core/base/time.ts';
import { jsonString, nameBytes } from '../handlers/http/json-text.ts';

it('views of one array after another show its own bytes', () => {
  const memory = Uint8Array.from({ length: 64 }, (_, i) => i);
  const low = memory.subarray(8, 32);
  const high = memory.subarray(32, 64);
  for (const [bytes, at] of [
    [low, 2],
    [low, 0],
    [high, 4],
    [low, 5],
    [high, 0],
  ] as const)
    expect(viewAt(bytes, at, 3)).toEqual(bytes.subarray(at, at + 3));
});

it('the text of a time is of its own second', () => {
  const seconds = [1_700_000_000, 1_700_000_000, 1_700_000_001, 0, -1, 1_700_000_000];
  for (const second of seconds)
    expect(timestampText(second * 1_000 + 250, 1)).toBe(
      `${new Date(second * 1_000).toISOString().slice(0, 19)}.2500001Z`,
    );
});

it('names are the literals that other texts are', () => {
  for (const name of [
    'plain',
    'with "quotes"',
    'next\u0085line',
    'line\u2028separator',
    'paragraph\u2029separator',
    'Ærø',
    'x'.repeat(300),
  ]) {
    expect(JSON.parse(decodeText(nameBytes(name)))).toBe(name);
    expect(decodeText(nameBytes(name))).toBe(jsonString(name));
    expect(decodeText(nameBytes(name))).not.toMatch(/[\u0085\u2028\u2029]/);
  }
  // More than are kept.
  for (let i = 0; i < 3_000; i++) expect(decodeText(nameBytes(`name-${i}`))).toBe(`"name-${i}"`);
});
