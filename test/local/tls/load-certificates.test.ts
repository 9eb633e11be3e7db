import { createPrivateKey, X509Certificate } from 'node:crypto';
import * as path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { daysLeft } from '../../../local/tls/certificate-set.ts';
import { isSystemStore, loadCertificates, loadConfigured } from '../../../local/tls/load-certificates.ts';
import type { CertificateOptions } from '../../../local/tls/load-certificates.ts';
import type { CertificateSet, Problem } from '../../../local/tls/certificate-set.ts';
import { CLIENT_USAGES, issue, issueNode, issueRoot, KeyUsageFlags, NODE_USAGES } from '../../support/certificates.ts';
import type { Issued, IssueOptions } from '../../support/certificates.ts';
import { Files } from './files.ts';
import { GOOD, OLDER, PASSWORD, ROOT_PEM, WITHOUT_KEY, WITHOUT_PASSWORD, WITH_ROOT } from './pkcs12-files.ts';

const DAY_MS = 86_400_000;
let root: Issued;
let intermediate: Issued;
let node: Issued;

beforeAll(async () => {
  root = await issueRoot();
  intermediate = await issue({ commonName: 'Parcels Intermediate', isAuthority: true, pathLength: 0, by: root });
  node = await issueNode(root);
});

const load = (options: CertificateOptions, nowMs = Date.now()) => loadCertificates(options, nowMs);

/** The certificates that a server with this set sends, in their order; the TLS library has nothing else of them. */
function subjectsOf({ secureContext }: CertificateSet): readonly string[] {
  expect(Object.keys(secureContext).toSorted()).toEqual(['ca', 'cert', 'key']);
  const pem = (secureContext as { readonly cert: string }).cert;
  return pem.split(/(?=-----BEGIN)/).map((each) => new X509Certificate(each).subject);
}

async function problemsOf(options: CertificateOptions, nowMs = Date.now()): Promise<readonly Problem[]> {
  const error = await load(options, nowMs).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(SkuaError);
  const { code, data, message } = error as SkuaError;
  expect(code).toBe('certificate_invalid');
  const problems = data['problems'] as Problem[];
  expect(data).toMatchObject(problems[0]!);
  for (const { file, reason } of problems) expect(message).toContain(`${file}: ${reason}`);
  expect(JSON.stringify([message, data])).not.toMatch(/BEGIN [A-Z ]*KEY|s3cret/);
  return problems;
}

describe('what loads', () => {
  test('certificate and key in PEM, one root', async () => {
    const files = await Files.of({ 'node.crt': node.cert, 'node.key': node.key, 'roots/ca.crt': root.cert });
    const set = await load(files.options());
    expect(set.loaded.map(({ kind, subject }) => [kind, subject])).toEqual([
      ['node', 'CN=node.parcels.test'],
      ['root', 'CN=Parcels Root'],
    ]);
    expect(set.loaded[0]).toMatchObject({
      serial: node.parsed.serialNumber.toUpperCase(),
      daysLeft: 89,
      thumbprint: expect.stringMatching(/^[0-9A-F]{40}$/),
      notAfter: node.parsed.notAfter.toISOString(),
    });
    expect(set.reservedNodeCommonName).toBe('node.parcels.test');
    expect(daysLeft(set, set.notAfterMs - 10 * DAY_MS)).toBe(10);
  });
  test('a certificate in DER; a root in DER', async () => {
    const files = await Files.of({ 'node.crt': node.der, 'node.key': node.key, 'roots/ca.der': root.der });
    expect((await load(files.options())).loaded).toHaveLength(2);
  });
  test('a bundle with intermediates in any order is brought into that of the chain', async () => {
    const upper = await issue({ commonName: 'Upper', isAuthority: true, by: root });
    const lower = await issue({ commonName: 'Lower', isAuthority: true, by: upper });
    const unused = await issue({ commonName: 'Unused', isAuthority: true, by: root });
    const leaf = await issueNode(lower);
    const files = await Files.of({
      'node.crt': leaf.cert + unused.cert + upper.cert + lower.cert,
      'node.key': leaf.key,
      'roots/ca.crt': root.cert,
    });
    const { secureContext } = await load(files.options());
    expect('cert' in secureContext && secureContext.cert).toBe(
      [leaf, lower, upper, unused].map(({ cert }) => cert).join(''),
    );
  });
  test('a chain file in any order, with or without its root, some twice: the key tells the certificate of the node, and the root is not sent', async () => {
    const leaf = await issueNode(intermediate);
    const roots = { 'roots/ca.crt': root.cert };
    for (const bundle of [
      [leaf, intermediate],
      [intermediate, leaf],
      [root, intermediate, leaf],
      [leaf, root, intermediate],
      [intermediate, root, leaf, leaf, root],
    ]) {
      const set = await load(
        (
          await Files.of({ 'node.crt': bundle.map(({ cert }) => cert).join('\n'), 'node.key': leaf.key, ...roots })
        ).options(),
      );
      expect(subjectsOf(set)).toEqual(['CN=node.parcels.test', 'CN=Parcels Intermediate']);
      expect(set.loaded.map(({ kind, subject }) => [kind, subject])).toEqual([
        ['node', 'CN=node.parcels.test'],
        ['intermediate', 'CN=Parcels Intermediate'],
        ['root', 'CN=Parcels Root'],
      ]);
      expect([set.secureContext.ca.length, set.reservedNodeCommonName]).toEqual([1, 'node.parcels.test']);
    }
  });
  test('without named roots the one in the file vouches for the node, and for nobody else', async () => {
    const leaf = await issueNode(intermediate);
    const files = await Files.of({ 'node.crt': root.cert + intermediate.cert + leaf.cert, 'node.key': leaf.key });
    const set = await load(files.options({ trustedRootCertificatesPath: null }));
    expect([subjectsOf(set), set.trustsNodes, set.secureContext.ca]).toEqual([
      ['CN=node.parcels.test', 'CN=Parcels Intermediate'],
      false,
      [],
    ]);
    const other = await Files.of({
      'node.crt': leaf.cert + intermediate.cert + (await issueRoot('Other')).cert,
      'node.key': leaf.key,
    });
    expect((await problemsOf(other.options({ trustedRootCertificatesPath: null })))[0]!.reason).toContain(
      'neither among',
    );
    const named = await Files.of({
      'node.crt': leaf.cert + intermediate.cert + root.cert,
      'node.key': leaf.key,
      'roots/ca.crt': (await issueRoot('Other')).cert,
    });
    expect((await problemsOf(named.options()))[0]!.reason).toContain('neither among');
  });
  test.each(['pkcs8', 'sec1', 'encrypted'] as const)('a key of an elliptic curve: %s', async (kind) => {
    const key = createPrivateKey(node.key);
    const text =
      kind === 'encrypted'
        ? key.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 's3cret' })
        : key.export({ type: kind, format: 'pem' });
    const files = await Files.of({ 'node.crt': node.cert, 'node.key': text, 'roots/ca.crt': root.cert });
    await load(files.options({ certificatePrivateKeyPassword: kind === 'encrypted' ? 's3cret' : null }));
  });
  test.each(['pkcs8', 'pkcs1', 'encrypted'] as const)(
    'an RSA key: %s, also with a blank line and attributes around it',
    async (kind) => {
      const rsa = await issueNode(root, 'node.parcels.test', { rsaBits: 2_048 });
      const key = createPrivateKey(rsa.key);
      const text =
        kind === 'encrypted'
          ? key.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 's3cret' })
          : key.export({ type: kind, format: 'pem' });
      const files = await Files.of({
        'node.crt': rsa.cert,
        'node.key': `Bag Attributes\n${text}\n\n`,
        'roots/ca.crt': root.cert,
      });
      await load(files.options({ certificatePrivateKeyPassword: kind === 'encrypted' ? 's3cret' : null }));
    },
  );
  test('no common name, no alternative names, no usages: not looked at here', async () => {
    const bare = await issue({ by: root });
    const files = await Files.of({ 'node.crt': bare.cert, 'node.key': bare.key, 'roots/ca.crt': root.cert });
    expect((await load(files.options())).reservedNodeCommonName).toBeNull();
  });
  test('a reserved name with a wildcard', async () => {
    const files = await Files.of({ 'node.crt': node.cert, 'node.key': node.key, 'roots/ca.crt': root.cert });
    expect(
      (await load(files.options({ certificateReservedNodeCommonName: '*.parcels.test' }))).reservedNodeCommonName,
    ).toBe('*.parcels.test');
  });
  test('a self-signed certificate that is its own root', async () => {
    const own = await issue({ commonName: 'localhost' });
    const files = await Files.of({ 'node.crt': own.cert, 'node.key': own.key, 'roots/own.pem': own.cert });
    expect((await load(files.options())).loaded).toHaveLength(2);
  });
  test('the directory of roots: endings in lower case only, one certificate a file, each root once, no subdirectories', async () => {
    const other = await issueRoot('Other');
    const files = await Files.of({
      'node.crt': node.cert,
      'node.key': node.key,
      'roots/a.crt': root.cert,
      'roots/b.pem': `text before\n${root.cert}`,
      'roots/c.cert': other.cert + node.cert,
      'roots/d.cer': other.der,
      'roots/e.txt': 'junk',
      'roots/f.CRT': 'junk',
      'roots/g': 'junk',
    });
    await import('node:fs/promises').then(({ mkdir }) => mkdir(files.path('roots/sub.crt')));
    expect((await load(files.options())).loaded.map(({ subject }) => subject)).toEqual([
      'CN=node.parcels.test',
      'CN=Parcels Root',
      'CN=Other',
    ]);
  });
});

describe('PKCS#12', () => {
  const NOW = Date.UTC(2027, 5, 1);
  const p12 = async (bytes: Buffer, password: string | null) => {
    const files = await Files.of({ 'node.p12': bytes, 'roots/ca.crt': ROOT_PEM });
    return files.options({
      certificateFile: files.path('node.p12'),
      certificatePrivateKeyFile: null,
      certificatePassword: password,
    });
  };

  test.each([
    ["today's tools", GOOD],
    ['older ones', OLDER],
  ])('certificate, key and intermediate, by %s', async (_, bytes) => {
    const set = await load(await p12(bytes, PASSWORD), NOW);
    expect(set.loaded.map(({ kind, subject }) => [kind, subject])).toEqual([
      ['node', 'CN=node.parcels.test'],
      ['intermediate', 'CN=Parcels Intermediate'],
      ['root', 'CN=Parcels Root'],
    ]);
  });
  test('a root in it is neither sent nor trusted to vouch for clients', async () => {
    const expected = [
      ['node', 'CN=node.parcels.test'],
      ['intermediate', 'CN=Parcels Intermediate'],
      ['root', 'CN=Parcels Root'],
    ];
    const named = await load(await p12(WITH_ROOT, PASSWORD), NOW);
    expect(named.loaded.map(({ kind, subject }) => [kind, subject])).toEqual(expected);
    expect(subjectsOf(named)).toEqual(['CN=node.parcels.test', 'CN=Parcels Intermediate']);
    const alone = await load({ ...(await p12(WITH_ROOT, PASSWORD)), trustedRootCertificatesPath: null }, NOW);
    expect([
      alone.trustsNodes,
      alone.secureContext.ca,
      alone.loaded.map(({ kind, subject }) => [kind, subject]),
    ]).toEqual([false, [], expected]);
    // One that is not among those that were named vouches for nobody, the node included.
    const other = await Files.of({ 'node.p12': WITH_ROOT, 'roots/ca.crt': (await issueRoot('Other')).cert });
    expect(
      await problemsOf(
        other.options({
          certificateFile: other.path('node.p12'),
          certificatePrivateKeyFile: null,
          certificatePassword: PASSWORD,
        }),
        NOW,
      ),
    ).toEqual([{ file: other.path('node.p12'), reason: expect.stringContaining('neither among') }]);
  });
  test.each([null, ''])('without a password: %s', async (password) => {
    expect((await load(await p12(WITHOUT_PASSWORD, password), NOW)).loaded).toHaveLength(3);
  });
  test.each([
    ['another password', GOOD, 's3cret', /CertificatePassword/],
    ['no password', GOOD, null, /CertificatePassword/],
    ['no key in it', WITHOUT_KEY, PASSWORD, /no private key/],
    ['cut short', GOOD.subarray(0, 700), PASSWORD, /not PKCS#12/],
    ['junk', Buffer.from('junk'), PASSWORD, /not PKCS#12/],
    ['empty', Buffer.alloc(0), PASSWORD, /not PKCS#12/],
    ['PEM', Buffer.from(ROOT_PEM), PASSWORD, /CertificatePrivateKeyFile/],
  ])('refused: %s', async (_, bytes, password, reason) => {
    const options = await p12(bytes, password);
    expect(await problemsOf(options, NOW)).toEqual([
      { file: options.certificateFile, reason: expect.stringMatching(reason) },
    ]);
  });
});

describe('what does not load says which file, and why', () => {
  const good = () => ({ 'node.crt': node.cert, 'node.key': node.key, 'roots/ca.crt': root.cert });
  const refused = async (
    entries: Record<string, string | Buffer>,
    changed: Partial<CertificateOptions> = {},
    nowMs?: number,
  ) => {
    const files = await Files.of({ ...good(), ...entries });
    return (await problemsOf(files.options(changed), nowMs)).map(
      ({ file, reason }) => `${file.slice(files.folder.length + 1)}: ${reason}`,
    );
  };

  test.each(['node.crt', 'node.key'])('missing: %s', async (name) => {
    const files = await Files.of(good());
    await files.remove(name);
    expect(await problemsOf(files.options())).toEqual([
      { file: files.path(name), reason: expect.stringContaining('does not exist') },
    ]);
  });
  test('a directory in place of a file; a file that is too long', async () => {
    const files = await Files.of({ ...good(), 'node.crt': Buffer.alloc(1_048_577) });
    expect((await problemsOf(files.options({ certificateFile: files.folder })))[0]!.reason).toContain('directory');
    expect((await problemsOf(files.options()))[0]!.reason).toContain('1048576');
  });
  test.each([
    ['certificate that is junk', 'node.crt', 'junk', /neither as PEM nor as DER/],
    ['empty certificate', 'node.crt', '', /neither as PEM nor as DER/],
    [
      'key for a certificate',
      'node.crt',
      '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n',
      /no certificate in it/,
    ],
    ['certificate cut short', 'node.crt', '-----BEGIN CERTIFICATE-----\nMIIB', /no end/],
    [
      'damaged certificate',
      'node.crt',
      '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
      /Certificate 1 .* cannot be read/,
    ],
    ['empty key', 'node.key', '', /no private key/],
    ['damaged key', 'node.key', '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n', /damaged/],
    [
      'key of another kind',
      'node.key',
      '-----BEGIN DSA PRIVATE KEY-----\nMIIB\n-----END DSA PRIVATE KEY-----\n',
      /DSA PRIVATE KEY are not supported/,
    ],
    [
      'key encrypted in the old way',
      'node.key',
      '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIB\n-----END RSA PRIVATE KEY-----\n',
      /legacy form/,
    ],
    ['junk among the roots', 'roots/junk.pem', 'junk', /neither as PEM nor as DER/],
  ])('%s', async (_, name, content, reason) => {
    const problems = await refused({ [name]: content });
    expect(problems).toEqual([expect.stringMatching(reason)]);
    expect(problems[0]).toMatch(new RegExp(`^${name}: `));
  });
  test('an encrypted key without its password, or with another', async () => {
    const key = createPrivateKey(node.key).export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 's3cret',
    });
    for (const [password, reason] of [
      [null, /is encrypted.*CertificatePrivateKeyPassword/],
      ['', /is encrypted/],
      ['s3cret2', /could not be decrypted.*CertificatePrivateKeyPassword/],
    ] as const) {
      expect(await refused({ 'node.key': key }, { certificatePrivateKeyPassword: password })).toEqual([
        expect.stringMatching(reason),
      ]);
    }
  });
  test('the key of another certificate', async () => {
    expect(await refused({ 'node.key': (await issueNode(root)).key })).toEqual([
      expect.stringMatching(/^node\.key: .*does not belong/),
    ]);
  });
  test('no directory of roots; none in it', async () => {
    const files = await Files.of({ 'node.crt': node.cert, 'node.key': node.key });
    expect((await problemsOf(files.options()))[0]).toEqual({
      file: files.path('roots'),
      reason: expect.stringContaining('no trusted root'),
    });
    expect(
      (await problemsOf(files.options({ trustedRootCertificatesPath: files.path('absent') })))[0]!.reason,
    ).toContain('does not exist');
  });
  test('all unreadable roots are named', async () => {
    expect(await refused({ 'roots/x.crt': 'junk', 'roots/y.der': 'junk' })).toEqual([
      expect.stringMatching(/^roots\/x\.crt/),
      expect.stringMatching(/^roots\/y\.der/),
    ]);
  });
  test('a key that belongs to none of several is told so', async () => {
    expect(await refused({ 'node.crt': root.cert + intermediate.cert })).toEqual([
      expect.stringMatching(/^node\.key: .*does not belong to any of the 2 certificates/),
    ]);
  });
  test('an intermediate among the roots is named', async () => {
    expect(await refused({ 'node.crt': node.cert + root.cert, 'roots/inter.crt': intermediate.cert })).toEqual([
      expect.stringMatching(/^roots\/inter\.crt: "CN=Parcels Intermediate" is not a root/),
    ]);
  });
  test('a name that does not match is told alone', async () => {
    expect(
      await refused({ 'node.crt': node.cert + root.cert }, { certificateReservedNodeCommonName: '*.other.test' }),
    ).toEqual([expect.stringMatching(/node\.parcels\.test does not match .*\*\.other\.test/)]);
    const bare = await issue({ by: root });
    expect(
      await refused({ 'node.crt': bare.cert, 'node.key': bare.key }, { certificateReservedNodeCommonName: 'x.test' }),
    ).toEqual([expect.stringMatching(/no common name/)]);
  });
  test('a certificate of a foreign authority, under another name and under the same', async () => {
    for (const [name, reason] of [
      ['Foreign', /issued by "CN=Foreign", which is neither/],
      ['Parcels Root', /a different authority with the same name/],
    ] as const) {
      const stranger = await issueNode(await issueRoot(name));
      expect(await refused({ 'node.crt': stranger.cert, 'node.key': stranger.key })).toEqual([
        expect.stringMatching(reason),
      ]);
    }
  });
  test('expired, not yet valid: node, intermediate, root', async () => {
    const late = await issueNode(root, 'late.parcels.test', { from: -10, to: -1 });
    expect(await refused({ 'node.crt': late.cert, 'node.key': late.key })).toEqual([
      expect.stringMatching(/^node\.crt: "CN=late\.parcels\.test" expired on/),
    ]);
    expect(await refused({}, {}, Date.now() - 5 * DAY_MS)).toEqual([expect.stringMatching(/not valid before .*clock/)]);
    expect(await refused({}, {}, Date.now() + 91 * DAY_MS)).toEqual([expect.stringMatching(/expired/)]);
    const oldInter = await issue({ commonName: 'Old', isAuthority: true, by: root, from: -10, to: -1 });
    const below = await issueNode(oldInter);
    expect(await refused({ 'node.crt': below.cert + oldInter.cert, 'node.key': below.key })).toEqual([
      expect.stringMatching(/^node\.crt: "CN=Old" expired/),
    ]);
    const oldRoot = await issueRoot('Old Root', { from: -10, to: -1 });
    const under = await issueNode(oldRoot);
    expect(await refused({ 'node.crt': under.cert, 'node.key': under.key, 'roots/old.crt': oldRoot.cert })).toEqual([
      expect.stringMatching(/^roots\/old\.crt: "CN=Old Root" expired/),
    ]);
  });
  test('an issuer that is no authority, and one that allows no intermediates below it', async () => {
    const under = await issueNode(node);
    expect(await refused({ 'node.crt': under.cert + node.cert, 'node.key': under.key })).toEqual([
      expect.stringMatching(/is not a certificate authority/),
    ]);
    const lower = await issue({ commonName: 'Lower', isAuthority: true, by: intermediate });
    const below = await issueNode(lower);
    expect(await refused({ 'node.crt': below.cert + lower.cert + intermediate.cert, 'node.key': below.key })).toEqual([
      expect.stringMatching(/allows 0 intermediates below it; there are 1/),
    ]);
  });
  test('an intermediate is missing', async () => {
    const below = await issueNode(intermediate);
    expect(await refused({ 'node.crt': below.cert, 'node.key': below.key })).toEqual([
      expect.stringMatching(/issued by "CN=Parcels Intermediate", which is neither/),
    ]);
  });
  test('what is to be put where, by what was named', async () => {
    const below = await issueNode(intermediate);
    const alone = { 'node.crt': below.cert, 'node.key': below.key };
    const [named] = await refused(alone);
    expect(named).toMatch(
      /If that is a root, put its certificate into the folder of TrustedRootCertificatesPath; if it is an intermediate, put it behind the node's \(cat node\.crt ca\.crt > chain\.crt\), and name that file in CertificateFile\.$/,
    );
    const [unnamed] = await refused(alone, { trustedRootCertificatesPath: null });
    expect(unnamed).toMatch(
      /Put the certificates of all authorities up to the root behind the node's \(cat node\.crt ca\.crt > chain\.crt\), and name that file in CertificateFile; or put the root into a folder, and name that in TrustedRootCertificatesPath\.$/,
    );
    // As it says, and it loads.
    const chain = {
      'node.crt': below.cert,
      'node.key': below.key,
      'chain.crt': below.cert + intermediate.cert + root.cert,
    };
    const files = await Files.of({ ...good(), ...chain });
    await load(files.options({ certificateFile: files.path('chain.crt') }));
    await load(files.options({ certificateFile: files.path('chain.crt'), trustedRootCertificatesPath: null }));

    const stranger = await issueRoot('Stranger');
    const strange = await issueNode(stranger);
    expect((await refused({ 'node.crt': strange.cert + stranger.cert, 'node.key': strange.key }))[0]).toMatch(
      /That root stands in the file, where it counts only while no roots are named: put it into the folder of TrustedRootCertificatesPath\.$/,
    );
    const own = await issue({ commonName: 'self.parcels.test' });
    expect((await refused({ 'node.crt': own.cert, 'node.key': own.key }))[0]).toMatch(
      /It has signed itself: put a copy of it alone into a folder, and name that in TrustedRootCertificatesPath\.$/,
    );
    const again = await Files.of({ 'node.crt': own.cert, 'node.key': own.key, 'roots/own.crt': own.cert });
    await load(again.options());
    expect((await refused({ 'roots/inter.crt': intermediate.cert }))[0]).toMatch(
      /put it behind the node's certificate, in the file of CertificateFile \(cat node\.crt inter\.crt > chain\.crt\)\.$/,
    );
    expect(
      (
        await refused(
          { 'my node.crt': below.cert, 'node.key': below.key },
          { certificateFile: path.join((await Files.of({ 'my node.crt': below.cert })).folder, 'my node.crt') },
        )
      )[0],
    ).toContain('(cat node.crt ca.crt > chain.crt)');
  });
  test('a PKCS#12 file is put together with its authorities', async () => {
    const other = await Files.of({ 'node.p12': WITH_ROOT, 'roots/ca.crt': (await issueRoot('Other')).cert });
    const PKCS12_NOW = Date.UTC(2027, 5, 1);
    const [{ reason }] = (await problemsOf(
      other.options({
        certificateFile: other.path('node.p12'),
        certificatePrivateKeyFile: null,
        certificatePassword: PASSWORD,
      }),
      PKCS12_NOW,
    )) as [Problem];
    expect(reason).toMatch(/put it into the folder of TrustedRootCertificatesPath\.$/);
    const lone = await Files.of({ 'node.p12': GOOD, 'roots/ca.crt': (await issueRoot('Other')).cert });
    const [missing] = (await problemsOf(
      lone.options({
        certificateFile: lone.path('node.p12'),
        certificatePrivateKeyFile: null,
        certificatePassword: PASSWORD,
      }),
      PKCS12_NOW,
    )) as [Problem];
    expect(missing.reason).toContain(
      'openssl pkcs12 -export -in node.crt -inkey node.key -certfile ca.crt -out node.p12',
    );
  });
  test('a key too short for TLS', async () => {
    const short = await issueNode(root, 'short.parcels.test', { rsaBits: 1_024 });
    expect(await refused({ 'node.crt': short.cert, 'node.key': short.key })).toEqual([
      expect.stringMatching(/^node\.crt: .*cannot be used for TLS.*too small/),
    ]);
  });
  test.each<[string, IssueOptions, IssueOptions?]>([
    ['for clients alone', { usages: CLIENT_USAGES }],
    ['for code', { usages: ['1.3.6.1.5.5.7.3.3'] }],
    ['a key that signs certificates alone', { keyUsages: KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign }],
    ['an RSA key that signs certificates alone', { keyUsages: KeyUsageFlags.keyCertSign, rsaBits: 2_048 }],
    ['an authority for clients alone', {}, { usages: CLIENT_USAGES }],
  ])('a certificate that no client takes: %s', async (_, options, authority) => {
    const by =
      authority === undefined ? root : await issue({ commonName: 'Lower', isAuthority: true, by: root, ...authority });
    const other = await issueNode(by, 'node.parcels.test', options);
    expect(
      await refused({ 'node.crt': other.cert + (authority === undefined ? '' : by.cert), 'node.key': other.key }),
    ).toEqual([expect.stringMatching(/^node\.crt: Clients will not accept the certificate.*serverAuth/)]);
  });
  test('one that is its own root, whose key signs certificates alone', async () => {
    const own = await issueRoot('Own', { dns: ['localhost'], keyUsages: KeyUsageFlags.keyCertSign });
    expect(await refused({ 'node.crt': own.cert, 'node.key': own.key, 'roots/ca.crt': own.cert })).toEqual([
      expect.stringMatching(/^node\.crt: Clients will not accept/),
    ]);
  });
  test.each<[string, IssueOptions]>([
    ['for servers alone', { usages: NODE_USAGES.slice(0, 1) }],
    ['with the usual usages of its key', { keyUsages: KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment }],
    ['for anything', { usages: null }],
  ])('a certificate %s is taken', async (_, options) => {
    const other = await issueNode(root, 'node.parcels.test', options);
    const files = await Files.of({ 'node.crt': other.cert, 'node.key': other.key, 'roots/ca.crt': root.cert });
    expect((await load(files.options())).loaded[0]!.subject).toBe('CN=node.parcels.test');
  });
  test('no certificate configured', async () => {
    const values = {
      CertificateFile: null,
      CertificatePrivateKeyFile: null,
      CertificatePassword: null,
      CertificatePrivateKeyPassword: null,
      TrustedRootCertificatesPath: '/',
      CertificateReservedNodeCommonName: '',
    };
    await expect(loadConfigured(values, 0)).rejects.toMatchObject({
      code: 'certificate_invalid',
      data: { file: 'CertificateFile' },
    });
  });
});

test('the store of the system is known under every name', async () => {
  expect([
    await isSystemStore('/etc/ssl/certs'),
    await isSystemStore('/etc/ssl/../ssl/certs/'),
    await isSystemStore('/etc/ssl'),
  ]).toEqual([true, true, false]);
});
