import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { decodeBase64, encodeBase64 } from '../../core/base/base64.ts';
import { encodeText } from '../../core/base/text.ts';
import { nodeKeys } from '../../infra/node-keys.ts';

const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const text = encodeText;

describe('keys by Node.js', () => {
  test('PBKDF2 as in RFC 6070', async () => {
    expect(hex(await nodeKeys.pbkdf2Sha1(text('password'), text('salt'), 4_096, 20))).toBe(
      '4b007901b765489abead49d926f721d065a429c1',
    );
  });

  test('scrypt as in RFC 7914', async () => {
    expect(hex(await nodeKeys.scrypt(text('password'), text('NaCl'), { n: 1_024, r: 8, p: 16 }, 64)).slice(0, 32)).toBe(
      'fdbabe1c9d3472007856e7190d01e9fe',
    );
  });

  test('scrypt takes the memory that a strong password needs', async () => {
    expect((await nodeKeys.scrypt(text('x'), text('y'), { n: 2 ** 16, r: 8, p: 1 }, 32)).length).toBe(32);
  });

  test('HMAC-SHA256 as in RFC 4231, with a key used twice', () => {
    const key = text('Jefe');
    for (let i = 0; i < 2; i++) {
      expect(hex(nodeKeys.hmac('sha256', key, text('what do ya want for nothing?')))).toBe(
        '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
      );
    }
  });

  test('HMAC-SHA256 as the native one, for keys and texts of every length', () => {
    for (let length = 0; length < 200; length++) {
      const key = nodeKeys.randomBytes(length);
      const data = nodeKeys.randomBytes((length * 7) % 301);
      expect(hex(nodeKeys.hmac('sha256', key, data))).toBe(createHmac('sha256', key).update(data).digest('hex'));
    }
  });

  test('compares bytes of any length', () => {
    expect(nodeKeys.equal(text('abc'), text('abc'))).toBe(true);
    expect(nodeKeys.equal(text('abc'), text('abd'))).toBe(false);
    expect(nodeKeys.equal(text('abc'), text('abcd'))).toBe(false);
    expect(nodeKeys.equal(text(''), text(''))).toBe(true);
  });

  test('random bytes differ', () => {
    expect(hex(nodeKeys.randomBytes(16))).not.toBe(hex(nodeKeys.randomBytes(16)));
  });
});

test('Base64 both ways, and what is none', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  expect(decodeBase64(encodeBase64(bytes))).toEqual(bytes);
  expect(encodeBase64(text('any carnal pleas'))).toBe('YW55IGNhcm5hbCBwbGVhcw==');
  expect(decodeBase64('%%%')).toBeNull();
});
