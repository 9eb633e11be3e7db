import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { encodeText } from '../../core/base/text.ts';
import { decodeBase64Url, encodeBase64Url } from '../../core/base/base64.ts';
import { BUILT_IN_LICENCE, licenceGuard, licenceOf } from '../../core/security/licence/licence.ts';
import type { LicenceConfig } from '../../core/security/licence/licence.ts';
import { isSignedBy, readLicence } from '../../core/security/licence/licence-token.ts';
import type { LicenceClaims } from '../../core/security/licence/licence-token.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { LicenceIssuer, publicPemOf } from '../support/licence-issuer.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { KeptLog } from './kit.ts';

const NOW = Date.UTC(2031, 3, 2, 9, 15);
const DAY = 86_400_000;

const ISSUER = new LicenceIssuer(encodeText('0123456789abcdef0123456789abcdef'));
const OTHER = new LicenceIssuer(encodeText('fedcba9876543210fedcba9876543210'));
const PEM = ISSUER.publicKey;

const claims = (more: Partial<LicenceClaims> = {}): LicenceClaims => ({
  features: ['AUTO_SCAVENGE'],
  expiresAtMs: NOW + DAY,
  notBeforeMs: null,
  ...more,
});
const key = (more: Partial<LicenceClaims> = {}, issuer = ISSUER) => issuer.issue(claims(more));
const token = (payload: unknown, header?: unknown) => ISSUER.token(payload, header);

describe('signatures', () => {
  test('as in RFC 8032, and in the JWS of RFC 8037', () => {
    const known = publicPemOf(decodeBase64Url('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo')!);
    const text = encodeText('eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc');
    expect(
      nodeKeys.ed25519Verify(
        known,
        text,
        decodeBase64Url('hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg')!,
      ),
    ).toBe(true);
  });

  test('not for another text, key or signature, nor for what is none', () => {
    const data = encodeText('text');
    const signature = ISSUER.sign(data);
    expect(nodeKeys.ed25519Verify(PEM, data, signature)).toBe(true);
    expect(nodeKeys.ed25519Verify(PEM, encodeText('Text'), signature)).toBe(false);
    expect(nodeKeys.ed25519Verify(OTHER.publicKey, data, signature)).toBe(false);
    for (const broken of [
      signature.slice(1),
      new Uint8Array(0),
      signature.map((byte, at) => (at === 3 ? byte ^ 1 : byte)),
      new Uint8Array(64),
    ])
      expect(nodeKeys.ed25519Verify(PEM, data, broken)).toBe(false);
  });

  test('keys in files are those of other programs', () => {
    const made = generateKeyPairSync('ed25519', {
      publicKeyEncoding: { format: 'pem', type: 'spki' },
      privateKeyEncoding: { format: 'pem', type: 'pkcs8' },
    });
    const data = encodeText('x');
    expect(nodeKeys.ed25519Verify(made.publicKey, data, sign(null, data, createPrivateKey(made.privateKey)))).toBe(
      true,
    );
  });

  test('keys in variables, whose lines have become one, and with the line ends of other systems', () => {
    const data = encodeText('x');
    for (const end of [' ', '\r\n'])
      expect(nodeKeys.ed25519Verify(PEM.replaceAll('\n', end), data, ISSUER.sign(data))).toBe(true);
  });

  test.each([
    ['', /not a public key in PEM/],
    ['MCowBQYDK2VwAyEA', /not a public key in PEM/],
    [ISSUER.privateKey, /holds a private key, but a public key is needed/],
    [PEM.replace('END PUBLIC', 'END PRIVATE'), /holds a public key/],
    [PEM.replace('MCow', 'MCox'), /another type/],
    [`-----BEGIN PUBLIC KEY-----\n${'A'.repeat(5_000)}\n-----END PUBLIC KEY-----`, /not a public key/],
    [
      generateKeyPairSync('x25519', {
        publicKeyEncoding: { format: 'pem', type: 'spki' },
        privateKeyEncoding: { format: 'pem', type: 'pkcs8' },
      }).publicKey,
      /another type: only Ed25519/,
    ],
    [publicPemOf(new Uint8Array(31)), /another type/],
  ])('what is no public key is refused: %#', (text, message) => {
    expect(() => nodeKeys.ed25519Verify(text, encodeText('x'), new Uint8Array(64))).toThrow(message);
  });

  test('Base64 for URLs has one text for every value', () => {
    for (let length = 0; length < 10; length++) {
      const bytes = Uint8Array.from({ length }, (_, i) => 255 - i * 3);
      expect(decodeBase64Url(encodeBase64Url(bytes))).toEqual(bytes);
    }
    for (const text of ['QQ==', 'QR', 'Q', 'Q+', 'Q/8', 'Q Q', 'QQ\n']) expect(decodeBase64Url(text)).toBeNull();
  });
});

describe('keys', () => {
  test('what is issued is read again, and verified', () => {
    const given = claims({ features: ['AUTO_SCAVENGE', 'ALL'], notBeforeMs: NOW - DAY });
    const read = readLicence(` ${ISSUER.issue(given)}\n`);
    expect(read.claims).toEqual(given);
    expect(isSignedBy(read, PEM, nodeKeys)).toBe(true);
    expect(isSignedBy(read, OTHER.publicKey, nodeKeys)).toBe(false);
    expect(readLicence(ISSUER.issue(claims())).claims).toEqual(claims());
  });

  test.each([
    ['', /not a signed token/],
    ['a.b', /not a signed token/],
    ['a.b.c.d', /not a signed token/],
    ['x'.repeat(20_000), /not a signed token/],
    [`..${'a'.repeat(86)}`, /header is not a JSON/],
    [token('[]'), /payload is not a JSON object/],
    [token('null'), /payload is not a JSON object/],
    [token('{'), /payload is not a JSON object/],
    [token({ exp: 1 }, '7'), /header is not a JSON object/],
    [token({ exp: 1 }, { alg: 'none' }), /not signed with EdDSA/],
    [token({ exp: 1 }, { alg: 'HS256' }), /EdDSA/],
    [token({ exp: 1 }, {}), /EdDSA/],
    [token({ exp: 1 }, { alg: 'EdDSA', crit: ['exp'] }), /EdDSA/],
    [`${token({ exp: 1 })}=`, /signature is not Base64/],
    [token({ ALL: true }), /when it expires/],
    [token({ exp: '5' }), /exp is not a time/],
    [token({ exp: -1 }), /exp is not a time/],
    [token({ exp: 1e300 }), /exp is not a time/],
    [token({ exp: null }), /exp is not a time/],
    [token({ exp: 1, nbf: 'x' }), /nbf is not a time/],
  ])('what is none is refused: %#', (text, message) => {
    expect(() => readLicence(text)).toThrow(message);
  });

  test.each([
    [{ AUTO_SCAVENGE: true }, ['AUTO_SCAVENGE']],
    [{ AUTO_SCAVENGE: 'TRUE', ALL: 'True' }, ['AUTO_SCAVENGE', 'ALL']],
    [{ ALL: 'true' }, ['ALL']],
    [{ AUTO_SCAVENGE: 'yes' }, []],
    [{ AUTO_SCAVENGE: 1 }, []],
    [{ AUTO_SCAVENGE: ['true'] }, []],
    [{ auto_scavenge: true }, []],
    [{ OTHER: true }, []],
    [{}, []],
  ])('%j grants %j', (members, features) => {
    expect(readLicence(token({ exp: 1, ...members })).claims.features).toEqual(features);
  });
});

/** What is configured, and why the feature is off; null: it is on. */
const DECISIONS: readonly (readonly [string, Partial<LicenceConfig>, RegExp | null])[] = [
  ['no key: the built-in licence grants everything', {}, null],
  ['no key, with an issuer', { issuerKey: { pem: PEM } }, null],
  ['no key, without the built-in one', { useBuiltIn: false }, /no licence key/],
  [
    'no key, without the built-in one, with an issuer',
    { useBuiltIn: false, issuerKey: { pem: PEM } },
    /no licence key/,
  ],
  ['a key', { key: key(), issuerKey: { pem: PEM } }, null],
  ['a key, without the built-in one', { key: key(), issuerKey: { pem: PEM }, useBuiltIn: false }, null],
  ['a key for everything', { key: key({ features: ['ALL'] }), issuerKey: { pem: PEM } }, null],
  [
    'a key for something else',
    { key: key({ features: [] }), issuerKey: { pem: PEM } },
    /does not include AUTO_SCAVENGE/,
  ],
  ['an expired key', { key: key({ expiresAtMs: NOW }), issuerKey: { pem: PEM } }, /expired at 2031-04-02T09:15:00Z/],
  [
    'a key for later',
    { key: key({ notBeforeMs: NOW + 1_000 }), issuerKey: { pem: PEM } },
    /not valid before 2031-04-02T09:15:01Z/,
  ],
  ['a key of another issuer', { key: key({}, OTHER), issuerKey: { pem: PEM } }, /not signed by the issuer/],
  [
    'a key that was changed',
    {
      key: key().replace(/\.[^.]+\./, `.${encodeBase64Url(encodeText(`{"exp":${NOW},"ALL":true}`))}.`),
      issuerKey: { pem: PEM },
    },
    /or was changed afterwards/,
  ],
  [
    'something that is no key',
    { key: 'please', issuerKey: { pem: PEM } },
    /Licensing:LicenseKey is invalid\. It is not a signed token/,
  ],
  ['a key and no issuer', { key: key() }, /IssuerKeyFile must name/],
  [
    "a key and a file that can't be read",
    { key: key(), issuerKey: { unreadable: 'x (ENOENT).' } },
    /IssuerKeyFile can't be read: x \(ENOENT\)/,
  ],
  [
    'a key and a file without a key',
    { key: key(), issuerKey: { pem: 'x' } },
    /IssuerKeyFile is not a valid key\. It is not a public key/,
  ],
];

describe('84 85: which licence counts', () => {
  const config = (given: Partial<LicenceConfig>): LicenceConfig => ({
    key: null,
    issuerKey: null,
    useBuiltIn: true,
    ...given,
  });

  test.each(DECISIONS)('%s', (_, given, refusal) => {
    const licence = licenceOf(config(given), nodeKeys);
    expect(licence.source).toBe(given.key !== undefined ? 'key' : given.useBuiltIn === false ? 'none' : 'built-in');
    if (refusal === null) expect(licence.refusal('AUTO_SCAVENGE', NOW)).toBeNull();
    else expect(licence.refusal('AUTO_SCAVENGE', NOW)).toMatch(refusal);
  });

  test('an invalid key is not made up for by the built-in licence', () => {
    for (const [, given, refusal] of DECISIONS)
      if (given.key !== undefined && refusal !== null)
        expect(licenceOf(config({ ...given, useBuiltIn: true }), nodeKeys).refusal('AUTO_SCAVENGE', NOW)).toMatch(
          refusal,
        );
  });

  test('to the millisecond', () => {
    const licence = licenceOf(config({ key: key(), issuerKey: { pem: PEM } }), nodeKeys);
    expect(licence.refusal('AUTO_SCAVENGE', NOW + DAY - 1)).toBeNull();
    expect(licence.refusal('AUTO_SCAVENGE', NOW + DAY)).toMatch(/expired at/);
    expect([licence.expiresAtMs, BUILT_IN_LICENCE.expiresAtMs]).toEqual([NOW + DAY, null]);
  });
});

test('87: a licence that ends while the node runs switches off, for good, and says so once', () => {
  const clock = new ManualClock(NOW);
  const log = new KeptLog();
  const licence = licenceOf({ key: key(), issuerKey: { pem: PEM }, useBuiltIn: true }, nodeKeys);
  const refusal = licenceGuard('AUTO_SCAVENGE', { licence, clock, log });
  expect([refusal(), log.lines]).toEqual([null, []]);
  clock.setNow(NOW + DAY);
  expect(refusal()).toMatch(/expired at 2031-04-03T09:15:00Z/);
  clock.setNow(NOW);
  expect([refusal(), log.at('warn').length]).toEqual([expect.stringMatching(/expired at/), 1]);
});
