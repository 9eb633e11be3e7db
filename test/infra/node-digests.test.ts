import { expect, test } from 'vitest';
import { nodeDigests } from '../../infra/node-digests.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const hex = (value: Uint8Array) => Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('');

// RFC 1321, appendix A.5.
test.each([
  ['', 'd41d8cd98f00b204e9800998ecf8427e'],
  ['abc', '900150983cd24fb0d6963f7d28e17f72'],
  [
    '12345678901234567890123456789012345678901234567890123456789012345678901234567890',
    '57edf4a22be3c955ac49da2e2107b67a',
  ],
])('MD5 of %j', (text, expected) => {
  const digest = nodeDigests.md5();
  digest.update(bytes(text));
  expect(hex(digest.finish())).toBe(expected);
});

test('MD5 of parts is that of the whole, as a plain Uint8Array', () => {
  const digest = nodeDigests.md5();
  for (const part of ['mess', '', 'age', ' digest']) digest.update(bytes(part));
  const result = digest.finish();
  expect(hex(result)).toBe('f96b697d7cb7938d525a2f31aaf161d0');
  expect(Object.getPrototypeOf(result)).toBe(Uint8Array.prototype);
});

test('CRC-32: the check value, the empty text, unsigned, and in parts', () => {
  expect(nodeDigests.crc32(bytes('123456789'))).toBe(0xcbf43926);
  expect(nodeDigests.crc32(bytes(''))).toBe(0);
  expect(nodeDigests.crc32(bytes('456789'), nodeDigests.crc32(bytes('123')))).toBe(0xcbf43926);
});
