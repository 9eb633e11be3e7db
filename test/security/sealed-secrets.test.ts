import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SealedSecrets } from '../../core/security/sealed-secrets/sealed-secrets.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { outcome } from './kit.ts';

const PLACE = ['parcels', 'signature:secret'];
const secrets = (...tokens: string[]) => new SealedSecrets(nodeKeys, tokens);

describe('keys', () => {
  const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));

  test('HKDF as RFC 5869, test case 1', () => {
    const okm = nodeKeys.hkdfSha256(
      new Uint8Array(22).fill(0x0b),
      bytes('000102030405060708090a0b0c'),
      bytes('f0f1f2f3f4f5f6f7f8f9'),
      42,
    );
    expect(Buffer.from(okm).toString('hex')).toBe(
      '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
    );
  });

  test('HMAC as RFC 2202 and RFC 4231, test case 2', () => {
    const text = (value: string) => new Uint8Array(Buffer.from(value));
    const mac = (hash: 'sha1' | 'sha256' | 'sha512') =>
      Buffer.from(nodeKeys.hmac(hash, text('Jefe'), text('what do ya want for nothing?'))).toString('hex');
    expect(mac('sha1')).toBe('effcdf6ae5eb2fa2d27416d5f184df9c259a7c79');
    expect(mac('sha256')).toBe('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843');
    expect(mac('sha512')).toMatch(/^164b7a7bfcf819e2e395fbe73b56e0a3/);
  });

  test('AES-256-GCM as test case 16 of its specification', () => {
    const key = bytes('feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308');
    const nonce = bytes('cafebabefacedbaddecaf888');
    const plain = bytes(
      'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39',
    );
    const context = bytes('feedfacedeadbeeffeedfacedeadbeefabaddad2');
    const sealed = nodeKeys.sealAesGcm(key, nonce, plain, context);
    expect(Buffer.from(sealed.subarray(plain.length)).toString('hex')).toBe('76fc6ece0f4e1768cddf8853bb2d551b');
    expect(nodeKeys.openAesGcm(key, nonce, sealed, context)).toEqual(plain);
    expect(nodeKeys.openAesGcm(key, nonce, sealed, new Uint8Array(0))).toBeNull();
    expect(nodeKeys.openAesGcm(key, nonce, sealed.subarray(0, 15), context)).toBeNull();
  });
});

describe('secrets', () => {
  test('what was sealed opens, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.string({ minLength: 1 }), (secret, token) => {
        expect(secrets(token).open(secrets(token).seal(secret, PLACE), PLACE)).toBe(secret);
      }),
      { seed: 1, numRuns: 100 },
    );
  });

  test('the same secret is never sealed the same', () => {
    const one = secrets('t');
    const all = new Set(Array.from({ length: 200 }, () => one.seal('s', PLACE)));
    expect(all.size).toBe(200);
    for (const sealed of all) expect(sealed).toMatch(/^skua-sealed:1:[0-9a-f]{16}:[A-Za-z0-9+/=]+$/);
  });

  test.each([
    [['other', 'signature:secret']],
    [['parcels', 'signature:secrets:0']],
    [['parcelssignature:secret']],
    [[]],
  ])('does not open in the place %j', async (place) => {
    const one = secrets('t');
    const sealed = one.seal('s', PLACE);
    expect(await outcome(() => one.open(sealed, place))).toBe('secret_refused');
  });

  test('no single bit can change', async () => {
    const one = secrets('t');
    const sealed = one.seal('s', PLACE);
    const at = sealed.lastIndexOf(':') + 1;
    const bytes = Buffer.from(sealed.slice(at), 'base64');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(await outcome(() => one.open(sealed.slice(0, at) + changed.toString('base64'), PLACE))).toBe(
        'secret_refused',
      );
    }
  });

  test.each([
    '',
    'plain',
    'skua-sealed:1:',
    'skua-sealed:2:0123456789abcdef:AAAA',
    'skua-sealed:1:0123456789abcdef:AAAA',
    'skua-sealed:1:0123456789abcdef:§',
  ])('%j does not open', async (sealed) => {
    expect(await outcome(() => secrets('t').open(sealed, PLACE))).toBe('secret_refused');
  });

  test('without a token nothing is sealed or opened, and the message says what to set', () => {
    const sealed = secrets('t').seal('s', PLACE);
    for (const none of [secrets(), secrets('')]) {
      expect(() => none.seal('s', PLACE)).toThrow(/SERVER_CONNECTORS__DATA_PROTECTION__TOKEN/);
      expect(() => none.open(sealed, PLACE)).toThrow(/Connectors:DataProtection:Token/);
    }
  });

  test('a previous token opens, and the newest seals', async () => {
    const old = secrets('old').seal('s', PLACE);
    const both = secrets('new', 'old');
    expect(both.open(old, PLACE)).toBe('s');
    const again = both.seal('s', PLACE);
    expect(secrets('new').open(again, PLACE)).toBe('s');
    expect(await outcome(() => secrets('old').open(again, PLACE))).toBe('secret_refused');
    expect(() => secrets('new').open(old, PLACE)).toThrow(/PreviousTokens/);
  });
});
