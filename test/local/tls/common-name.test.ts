import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { commonNameOf, matchesReservedName, namesAddress } from '../../../local/tls/peer.ts';
import { issue } from '../../support/certificates.ts';

describe('common names against the reserved name', () => {
  test.each([
    ['n1.db.example.test', 'n1.db.example.test', true],
    ['n1.db.example.test', '*.db.example.test', true],
    ['*.db.example.test', '*.db.example.test', true],
    ['*.db.example.test', 'n1.db.example.test', false],
    // Its rules.
    ['N1.DB.example.TEST', 'n1.db.Example.test', true],
    ['n1.db.example.test', '*.DB.example.test', true],
    ['a.n1.db.example.test', '*.db.example.test', false],
    ['db.example.test', '*.db.example.test', false],
    ['n1.test', '*.test', false],
    ['*.test', '*.test', true],
    ['a.b.test', '*.b.test', true],
    ['n1', '*', false],
    ['n1.db.example.test', 'n1.*.example.test', false],
    ['n1.db.example.test', 'n*.db.example.test', false],
    ['n1.db.example.test', '*1.db.example.test', false],
    ['.db.example.test', '*.db.example.test', false],
    ['n1.db.example.test.', 'n1.db.example.test', false],
    ['', '', false],
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.1', '*.0.0.1', false],
    ['127.0.0.2', '127.0.0.1', false],
    ['fe80::1', 'fe80::1', true],
    ['n1.päckchen.test', 'n1.xn--pckchen-5wa.test', true],
    ['n1.xn--pckchen-5wa.test', '*.PÄCKCHEN.test', true],
    ['n1.päckchen.test', '*.paeckchen.test', false],
  ])('%s against %s: %s', (commonName, reserved, expected) => {
    expect(matchesReservedName(commonName, reserved)).toBe(expected);
  });
});

describe('names in certificates', () => {
  const parse = async (options: Parameters<typeof issue>[0]) => new X509Certificate((await issue(options)).cert);

  test('the common name, or none', async () => {
    expect(commonNameOf(await parse({ commonName: 'n1.example.test' }))).toBe('n1.example.test');
    expect(commonNameOf(await parse({}))).toBeNull();
  });
  test('hosts and addresses among the alternative names', async () => {
    expect(namesAddress(await parse({ dns: ['n1.example.test'] }))).toBe(true);
    expect(namesAddress(await parse({ ips: ['::1'] }))).toBe(true);
    expect(namesAddress(await parse({}))).toBe(false);
    expect(namesAddress({ subjectAltName: 'URI:"http://x, DNS:n1", email:a@b' } as X509Certificate)).toBe(false);
  });
});
