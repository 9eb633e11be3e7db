import { describe, expect, test } from 'vitest';
import type { SignatureSettings } from '../../../core/webhook/api.ts';
import { SECRETS_MAX } from '../../../core/webhook/api.ts';
import { checkSignatureSettings, SCHEME_NAMES } from '../../../core/webhook/format/schemes.ts';
import { createSignatureVerifier } from '../../../core/webhook/signatures/signatures.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { secretFor, settingsFor } from './signing.ts';

const fieldsOf = (settings: SignatureSettings, secrets: readonly string[]) =>
  checkSignatureSettings(settings, secrets).map(({ field }) => field);

test.each(SCHEME_NAMES)('%s is usable, however it is spelled', (scheme) => {
  for (const name of [scheme, scheme.toLowerCase(), scheme.toUpperCase()])
    expect(checkSignatureSettings({ ...settingsFor(scheme), scheme: name }, [secretFor(scheme)])).toEqual([]);
});

test('Generic needs a header only', () => {
  const bare = { ...settingsFor('Generic'), prefix: null, encoding: null, hash: null };
  expect(fieldsOf(bare, ['x'])).toEqual([]);
  expect(fieldsOf({ ...bare, header: null }, ['x'])).toEqual(['signature:header']);
});

describe('violations', () => {
  test.each<[Partial<SignatureSettings>, string[]]>([
    [{ scheme: 'Gitlab' }, ['signature:scheme']],
    [{ scheme: '' }, ['signature:scheme']],
    [
      { scheme: 'GitHub', header: 'x', prefix: 'y', encoding: 'hex', hash: 'sha256' },
      ['signature:header', 'signature:prefix', 'signature:encoding', 'signature:hash'],
    ],
    [{ scheme: 'GitHub', timestampToleranceMs: -1 }, ['signature:timestampTolerance']],
    [{ scheme: 'GitHub', timestampToleranceMs: Number.NaN }, ['signature:timestampTolerance']],
    [
      { scheme: 'Generic', header: 'x y', prefix: ' a', encoding: 'base32', hash: 'md5' },
      ['signature:header', 'signature:prefix', 'signature:encoding', 'signature:hash'],
    ],
    [{ scheme: 'Generic', header: 'x'.repeat(101), prefix: 'é' }, ['signature:header', 'signature:prefix']],
    [{ scheme: 'Generic', header: 'x', prefix: 'p'.repeat(65) }, ['signature:prefix']],
  ])('%j: %j', (change, fields) => {
    const settings = {
      scheme: '',
      timestampToleranceMs: 0,
      header: null,
      prefix: null,
      encoding: null,
      hash: null,
      ...change,
    };
    expect(fieldsOf(settings, ['hush'])).toEqual(fields);
    expect(() => createSignatureVerifier(nodeKeys, settings, ['hush'])).toThrow(
      expect.objectContaining({ code: 'invalid_connector' }) as Error,
    );
  });

  test('of secrets, each under its own name and never with its text', () => {
    expect(fieldsOf(settingsFor('GitHub'), [])).toEqual(['signature:secret']);
    expect(fieldsOf(settingsFor('GitHub'), ['', 'x', ''])).toEqual(['signature:secret', 'signature:secrets:1']);
    expect(fieldsOf(settingsFor('GitHub'), ['\uD800'])).toEqual(['signature:secret']);
    expect(
      fieldsOf(
        settingsFor('GitHub'),
        Array.from({ length: SECRETS_MAX }, () => 'x'),
      ),
    ).toEqual([]);
    expect(
      fieldsOf(
        settingsFor('GitHub'),
        Array.from({ length: SECRETS_MAX + 1 }, () => 'x'),
      ),
    ).toEqual(['signature:secrets']);
    const bad = ['a secret', 'whsec_', 'whsec_no base64!', 'whsec_YQ', 'whsec_YR==', 'WHSEC_YQ==', 'whsec_YQ== '];
    const violations = checkSignatureSettings(settingsFor('StandardWebhooks'), bad);
    expect(violations.map(({ field }) => field)).toEqual([
      'signature:secret',
      ...bad.slice(1).map((_, at) => `signature:secrets:${at}`),
    ]);
    for (const { description } of violations)
      expect(description).toBe('A secret of StandardWebhooks is whsec_ followed by Base64.');
    expect(fieldsOf({ ...settingsFor('Generic'), header: null }, [''])).toEqual([
      'signature:header',
      'signature:secret',
    ]);
  });
});
