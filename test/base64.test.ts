import { expect, test } from 'vitest';
import { decodeBase64, encodeBase64 } from '../core/base/base64.ts';

test.each([0, 1, 2, 3, 24_575, 24_576, 24_577, 200_000])('%i bytes become Base64 and come back', (length) => {
  const bytes = Uint8Array.from({ length }, (_, i) => i % 251);
  const text = encodeBase64(bytes);
  expect(text === Buffer.from(bytes).toString('base64')).toBe(true);
  expect(Buffer.compare(decodeBase64(text)!, bytes)).toBe(0);
});
