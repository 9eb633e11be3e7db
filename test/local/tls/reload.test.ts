import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import { createReloader } from '../../../local/node/reload.ts';
import { loadConfigured } from '../../../local/tls/load-certificates.ts';
import type { CertificateValues } from '../../../local/tls/load-certificates.ts';
import { CLIENT_USAGES, issueNode, issueRoot } from '../../support/certificates.ts';
import type { Issued } from '../../support/certificates.ts';
import { call, open, received, serve } from './clients.ts';
import { Files } from './files.ts';

let root: Issued;
let first: Issued;
let second: Issued;

beforeAll(async () => {
  root = await issueRoot();
  first = await issueNode(root);
  second = await issueNode(root, 'other.parcels.test');
});

/** A server, its files, and the reload that ties them together as on a node. */
async function world() {
  const files = await Files.of({ 'node.crt': first.cert, 'node.key': first.key, 'roots/ca.crt': root.cert });
  const values: CertificateValues = {
    CertificateFile: files.path('node.crt'),
    CertificatePrivateKeyFile: files.path('node.key'),
    CertificatePassword: null,
    CertificatePrivateKeyPassword: null,
    TrustedRootCertificatesPath: files.path('roots'),
    CertificateReservedNodeCommonName: null,
  };
  const load = (from: CertificateValues) => loadConfigured(from, Date.now());
  const inForce = await load(values);
  let release = () => {};
  const server = await serve({
    tls: { certificates: inForce },
    // Files are written while a connection waits for its first request.
    patience: { headersMs: 600_000, requestMs: 600_000 },
    fetch: (request) =>
      request.url.endsWith('/slow')
        ? new Promise((resolve) => {
            release = () => resolve(new Response('late'));
          })
        : new Response('ok'),
  });
  const config = { values, reread: () => config, diff: () => [] };
  const reloader = createReloader<CertificateValues>({
    config,
    certificates: { inForce, load, use: (set) => server.setCertificates(set) },
    apply: () => {},
    log: silentLog,
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: root.cert });
  onTestFinished(() => agent.destroy());
  const old = async () => {
    const free = once(agent, 'free');
    const answer = await call(server, { agent });
    await free;
    return answer.serial;
  };
  const fresh = async () => (await call(server, { ca: root.cert, agent: false })).serial;
  return { files, server, reloader, old, fresh, release: () => release() };
}

const serialOf = ({ parsed }: Issued) => parsed.serialNumber.toUpperCase();

test('old connections go on, new ones see the new certificate; also one with another name', async () => {
  const { files, server, reloader, old, fresh, release } = await world();
  expect([await old(), await fresh()]).toEqual([serialOf(first), serialOf(first)]);
  // A request under way, and a connection on which nothing was asked yet.
  const slow = call(server, { ca: root.cert, agent: false, path: '/slow' });
  const quiet = await open(server);
  await files.write('node.crt', second.cert);
  await files.write('node.key', second.key);
  const result = await reloader.reload('a test');
  expect(result).toMatchObject({
    certificatesChanged: true,
    certificates: [{ kind: 'node', subject: 'CN=other.parcels.test', serial: serialOf(second) }, { kind: 'root' }],
  });
  expect([await old(), await fresh()]).toEqual([serialOf(first), serialOf(second)]);
  const reply = received(quiet);
  quiet.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await reply).toMatch(/^HTTP\/1\.1 200 OK/);
  release();
  expect(await slow).toMatchObject({ body: 'late', serial: serialOf(first) });
});

test('whatever is broken changes nothing, and the error names the file and the reason; good files work again', async () => {
  const { files, reloader, old, fresh } = await world();
  const foreign = await issueNode(await issueRoot('Foreign'));
  const expired = await issueNode(root, 'node.parcels.test', { from: -10, to: -1 });
  const forClients = await issueNode(root, 'node.parcels.test', { usages: CLIENT_USAGES });
  const encrypted = createPrivateKey(first.key).export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'x',
  });
  const breaks: [string, Record<string, string | null>, string, RegExp][] = [
    ['broken key', { 'node.key': '-----BEGIN PRIVATE KEY-----\nMIIB' }, 'node.key', /damaged/],
    ['empty key', { 'node.key': '' }, 'node.key', /no private key/],
    ['missing key', { 'node.key': null }, 'node.key', /does not exist/],
    ['encrypted key', { 'node.key': encrypted as string }, 'node.key', /encrypted/],
    ['key of another certificate', { 'node.key': second.key }, 'node.key', /does not belong/],
    ['missing certificate', { 'node.crt': null }, 'node.crt', /does not exist/],
    ['foreign authority', { 'node.crt': foreign.cert, 'node.key': foreign.key }, 'node.crt', /issued by "CN=Foreign"/],
    ['expired', { 'node.crt': expired.cert, 'node.key': expired.key }, 'node.crt', /expired/],
    [
      'for clients alone',
      { 'node.crt': forClients.cert, 'node.key': forClients.key },
      'node.crt',
      /Clients will not accept/,
    ],
    ['junk among the roots', { 'roots/junk.crt': 'junk' }, 'roots/junk.crt', /no certificate/],
    ['no root', { 'roots/ca.crt': null }, 'roots', /no trusted root/],
  ];
  for (const [what, changes, name, reason] of breaks) {
    for (const [file, content] of Object.entries(changes))
      await (content === null ? files.remove(file) : files.write(file, content));
    await expect(reloader.reload(what), what).rejects.toMatchObject({
      code: 'reload_failed',
      data: { file: files.path(name), reason: expect.stringMatching(reason) },
    });
    expect([await old(), await fresh()], what).toEqual([serialOf(first), serialOf(first)]);
    if ('roots/junk.crt' in changes) await files.remove('roots/junk.crt');
    for (const [file, content] of [
      ['node.crt', first.cert],
      ['node.key', first.key],
      ['roots/ca.crt', root.cert],
    ] as const)
      await files.write(file, content);
    expect(await reloader.reload(what), what).toMatchObject({ certificatesChanged: false });
  }
});

test('clients with a session of the old certificate see the new one', async () => {
  const { files, server, reloader } = await world();
  const agent = new Agent({ keepAlive: false, ca: root.cert });
  expect((await call(server, { agent })).isResumed).toBe(false);
  expect((await call(server, { agent })).isResumed).toBe(true);
  await files.write('node.crt', second.cert);
  await files.write('node.key', second.key);
  await reloader.reload('a test');
  expect(await call(server, { agent })).toMatchObject({ isResumed: false, serial: serialOf(second) });
});
