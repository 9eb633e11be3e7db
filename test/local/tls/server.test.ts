import { once } from 'node:events';
import { Agent } from 'node:https';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Log } from '../../../core/ports/log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { addressOf, peerOf } from '../../../local/http/http-request.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { loadCertificates } from '../../../local/tls/load-certificates.ts';
import { CLIENT_USAGES, issue, issueNode, issueRoot } from '../../support/certificates.ts';
import type { Issued } from '../../support/certificates.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { call, open, received, serve } from './clients.ts';
import { Files } from './files.ts';
import { PASSWORD, ROOT_PEM, WITH_ROOT } from './pkcs12-files.ts';

let root: Issued;
let node: Issued;

beforeAll(async () => {
  root = await issueRoot();
  node = await issueNode(root);
});

async function certificates(
  of: Issued = node,
  reservedName: string | null = null,
  bundle = '',
): Promise<CertificateSet> {
  const files = await Files.of({ 'node.crt': of.cert + bundle, 'node.key': of.key, 'roots/ca.crt': root.cert });
  return loadCertificates(files.options({ certificateReservedNodeCommonName: reservedName }), Date.now());
}

const WHO = (request: Request) =>
  new Response(JSON.stringify([new URL(request.url).protocol, peerOf(request)?.name ?? null, addressOf(request)]));

describe('a server with TLS', () => {
  test('a client that trusts the root gets its answer; the certificate and name are checked by it', async () => {
    const server = await serve({ fetch: WHO, tls: { certificates: await certificates() } });
    expect(server.url).toMatch(/^https:/);
    expect(await call(server, { ca: root.cert })).toMatchObject({
      status: 200,
      body: '["https:",null,"127.0.0.1"]',
      serial: node.parsed.serialNumber.toUpperCase(),
    });
    await expect(call(server, {})).rejects.toMatchObject({ code: 'SELF_SIGNED_CERT_IN_CHAIN' });
    await expect(call(server, { ca: root.cert, servername: 'other.test' })).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
  });
  test("of a chain file in another order, with its root, the node's and the intermediates are sent", async () => {
    const upper = await issue({ commonName: 'Upper', isAuthority: true, by: root });
    const lower = await issue({ commonName: 'Lower', isAuthority: true, by: upper });
    const leaf = await issueNode(lower);
    const files = await Files.of({
      'node.crt': root.cert + upper.cert + leaf.cert + lower.cert,
      'node.key': leaf.key,
      'roots/ca.crt': root.cert,
    });
    const server = await serve({ tls: { certificates: await loadCertificates(files.options(), Date.now()) } });
    expect((await call(server, { ca: root.cert })).status).toBe(200);
    const socket = (await open(server)) as tls.TLSSocket;
    const sent: string[] = [];
    for (let next = socket.getPeerX509Certificate(); next !== undefined; next = next.issuerCertificate)
      sent.push(next.subject);
    expect(sent).toEqual(['CN=node.parcels.test', 'CN=Lower', 'CN=Upper']);
  });
  test('PKCS#12 with a root in it', async () => {
    const files = await Files.of({ 'node.p12': WITH_ROOT, 'roots/ca.crt': ROOT_PEM });
    const server = await serve({
      tls: {
        certificates: await loadCertificates(
          files.options({
            certificateFile: files.path('node.p12'),
            certificatePrivateKeyFile: null,
            certificatePassword: PASSWORD,
          }),
          Date.UTC(2027, 5, 1),
        ),
      },
    });
    expect((await call(server, { ca: ROOT_PEM })).status).toBe(200);
    const socket = (await open(server)) as tls.TLSSocket;
    const leaf = socket.getPeerX509Certificate()!;
    expect([leaf.subject, leaf.issuerCertificate?.subject, leaf.issuerCertificate?.issuerCertificate]).toEqual([
      'CN=node.parcels.test',
      'CN=Parcels Intermediate',
      undefined,
    ]);
  });
  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is spoken', async (version) => {
    const server = await serve({ tls: { certificates: await certificates() } });
    expect((await call(server, { ca: root.cert, minVersion: version, maxVersion: version })).status).toBe(200);
  });
  test.each([
    ['RSA', 2_048],
    ['EC', undefined],
  ] as const)('of TLS 1.2 neither RSA key exchange nor CBC is spoken with a key of %s', async (_, rsaBits) => {
    const server = await serve({
      tls: {
        certificates: await certificates(
          await issueNode(root, 'node.parcels.test', rsaBits === undefined ? {} : { rsaBits }),
        ),
      },
    });
    const by = (ciphers: string) => call(server, { ca: root.cert, maxVersion: 'TLSv1.2', ciphers });
    for (const ciphers of [
      'AES128-SHA',
      'AES256-GCM-SHA384',
      'ECDHE-RSA-AES128-SHA',
      'ECDHE-ECDSA-AES128-SHA256',
      'ECDHE-RSA-AES256-SHA384',
      'DHE-RSA-AES128-GCM-SHA256',
    ])
      await expect(by(ciphers), ciphers).rejects.toThrow();
    expect((await by('ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256')).status).toBe(200);
    expect((await by('ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-CHACHA20-POLY1305')).status).toBe(200);
  });
  test('what is older is not', async () => {
    const server = await serve({ tls: { certificates: await certificates() } });
    await expect(
      call(server, { ca: root.cert, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }),
    ).rejects.toMatchObject({ code: expect.stringMatching(/^(ERR_SSL|ECONNRESET|EPROTO)/) });
  });
  test('plain HTTP gets no answer, and the next client does; it is noted', async () => {
    const noted: string[] = [];
    const log: Log = {
      ...silentLog,
      debug: (message) => {
        noted.push(message);
      },
    };
    const server = await serve({ log, tls: { certificates: await certificates() } });
    const socket = net.connect(server.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
    expect(await received(socket)).not.toContain('HTTP/1.1');
    expect((await call(server, { ca: root.cert })).status).toBe(200);
    expect(noted).toEqual(['a TLS handshake failed']);
  });
  test('connections beyond the limit of an address are closed before they shake hands', async () => {
    const refused: unknown[] = [];
    const limits = {
      perAddressMax: 2,
      isExempt: () => false,
      log: silentLog,
      meter: {
        ...silentMeter,
        count: (name: string, _by?: number, labels?: unknown) => {
          refused.push([name, labels]);
        },
      },
      clock: new ManualClock(),
    };
    const server = await serve({ tls: { certificates: await certificates() }, limits });
    const held = [net.connect(server.port, '127.0.0.1'), net.connect(server.port, '127.0.0.1')];
    await Promise.all(held.map((socket) => once(socket, 'connect')));
    await expect(call(server, { ca: root.cert, agent: false })).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(refused).toEqual([['eventstore_http_connections_refused_total', { limit: 'address' }]]);
    const closed = held.map((socket) => once(socket.resume(), 'close'));
    for (const socket of held) socket.end();
    await Promise.all(closed);
    expect((await call(server, { ca: root.cert, agent: false })).status).toBe(200);
  });
  test('a client that never shakes hands is cut off, and does not hold up the end', async () => {
    const server = await serve({ tls: { certificates: await certificates() }, patience: { handshakeMs: 50 } });
    const silent = net.connect(server.port, '127.0.0.1');
    expect(await received(silent)).toBe('');
    const patient = await serve({ tls: { certificates: await certificates() } });
    const waiting = net.connect(patient.port, '127.0.0.1');
    const closed = received(waiting);
    expect((await call(patient, { ca: root.cert, agent: false })).status).toBe(200);
    expect(await patient.stop(20_000)).toBe(true);
    await closed;
  });
});

describe('who presents a certificate', () => {
  const cases: [string, string | null, () => Promise<Issued>, string | null][] = [
    ['a node with the same common name', null, () => issueNode(root), 'system'],
    ['a node matching the wildcard', '*.parcels.test', () => issueNode(root, 'n2.parcels.test'), 'system'],
    ['a node without extended usages', null, () => issueNode(root, 'node.parcels.test', { usages: null }), 'system'],
    ['another common name', null, () => issueNode(root, 'n2.parcels.test'), null],
    ['no common name', null, () => issue({ by: root, dns: ['localhost'] }), null],
    ['no alternative name', null, () => issue({ commonName: 'node.parcels.test', by: root }), null],
    ['a user: for clients only', null, () => issueNode(root, 'node.parcels.test', { usages: CLIENT_USAGES }), null],
    ['expired', null, () => issueNode(root, 'node.parcels.test', { from: -10, to: -1 }), null],
    ['not valid yet', null, () => issueNode(root, 'node.parcels.test', { from: 10, to: 20 }), null],
    ['a foreign authority of the same name', null, async () => issueNode(await issueRoot()), null],
    ['self-signed', null, () => issue({ commonName: 'node.parcels.test', dns: ['localhost'] }), null],
  ];
  test.each(cases)('%s (reserved: %s): %#', async (_, reserved, make, expected) => {
    const server = await serve({ fetch: WHO, tls: { certificates: await certificates(node, reserved) } });
    const peer = await make();
    expect(JSON.parse((await call(server, { ca: root.cert, cert: peer.cert, key: peer.key })).body)).toEqual([
      'https:',
      expected,
      '127.0.0.1',
    ]);
  });
  test('by authorities that nobody named, such as those of the system, nobody is proved to be a node', async () => {
    const noted: unknown[] = [];
    const log: Log = {
      ...silentLog,
      debug: (_, fields) => {
        noted.push(fields!['reason']);
      },
    };
    const files = await Files.of({ 'node.crt': node.cert, 'node.key': node.key, 'roots/ca.crt': root.cert });
    const unnamed = await loadCertificates(
      files.options({ trustedRootCertificatesPath: null }),
      Date.now(),
      files.path('roots'),
    );
    expect([unnamed.trustsNodes, unnamed.secureContext.ca]).toEqual([false, []]);
    const server = await serve({ fetch: WHO, log, tls: { certificates: unnamed } });
    const client = { ca: root.cert, cert: node.cert, key: node.key, agent: false } as const;
    expect(JSON.parse((await call(server, client)).body)).toEqual(['https:', null, '127.0.0.1']);
    // The client was not asked for one, so that there is nothing to note; a browser would have opened a box.
    expect(noted).toEqual([]);
    // A reload that names them puts them in force, and one that leaves them out takes them away.
    server.setCertificates(await certificates());
    expect(JSON.parse((await call(server, client)).body)).toEqual(['https:', 'system', '127.0.0.1']);
    server.setCertificates(unnamed);
    expect(JSON.parse((await call(server, client)).body)).toEqual(['https:', null, '127.0.0.1']);
  });
  test('why it proves nothing is noted', async () => {
    const noted: unknown[] = [];
    const log: Log = {
      ...silentLog,
      debug: (_, fields) => {
        noted.push(fields!['reason']);
      },
    };
    const server = await serve({ log, tls: { certificates: await certificates() } });
    const peer = await issueNode(root, 'n2.parcels.test');
    await call(server, { ca: root.cert, cert: peer.cert, key: peer.key });
    expect(noted).toEqual(['its common name n2.parcels.test does not match node.parcels.test']);
  });
  test('nobody is asked for one unless it could prove a node, so that browsers open no box', async () => {
    const peer = await issueNode(root);
    for (const trustsNodes of [true, false]) {
      // Roots are there all the same: a certificate that came unasked would be judged by them.
      const server = await serve({ fetch: WHO, tls: { certificates: { ...(await certificates()), trustsNodes } } });
      expect(JSON.parse((await call(server, { ca: root.cert, cert: peer.cert, key: peer.key })).body)).toEqual([
        'https:',
        trustsNodes ? 'system' : null,
        '127.0.0.1',
      ]);
    }
  });
  test('without TLS nobody is proved', async () => {
    const server = await serve({ fetch: WHO });
    expect((await call(server)).body).toBe('["http:",null,"127.0.0.1"]');
  });
});

describe('other certificates while the server runs', () => {
  /** A request over a connection of its own, which may take up the session of another. */
  const visit = (server: HttpServer, options: tls.ConnectionOptions) =>
    new Promise<{ session: Buffer; isResumed: boolean; reply: string }>((resolve, reject) => {
      let session: Buffer | undefined;
      const socket = tls.connect({ host: '127.0.0.1', port: server.port, ca: root.cert, ...options }, () =>
        socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
      );
      // TLS 1.3 sends it behind the handshake.
      socket.on('session', (made: Buffer) => {
        session = made;
      });
      socket.on('error', reject);
      const isResumed = new Promise<boolean>((done) => {
        socket.on('secureConnect', () => done(socket.isSessionReused()));
      });
      void received(socket).then(async (reply) => resolve({ session: session!, isResumed: await isResumed, reply }));
    });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a session is resumed, with what it proved, only under the certificates of its beginning: %s',
    async (version) => {
      const server = await serve({ fetch: WHO, tls: { certificates: await certificates() } });
      const peer = await issueNode(root);
      const options = { minVersion: version, maxVersion: version, cert: peer.cert, key: peer.key };
      const { session } = await visit(server, options);
      const again = await visit(server, { ...options, session });
      expect(again).toMatchObject({ isResumed: true, reply: expect.stringContaining('"system"') });
      server.setCertificates(await certificates(await issueNode(root)));
      expect(await visit(server, { ...options, session })).toMatchObject({
        isResumed: false,
        reply: expect.stringContaining('"system"'),
      });
    },
  );
  test('a caller stays what the connection proved; a new connection is judged anew', async () => {
    const server = await serve({ fetch: WHO, tls: { certificates: await certificates(node, '*.parcels.test') } });
    const peer = await issueNode(root, 'n2.parcels.test');
    const keep = new Agent({ keepAlive: true, ca: root.cert, cert: peer.cert, key: peer.key });
    const free = once(keep, 'free');
    expect((await call(server, { agent: keep })).body).toContain('system');
    await free;
    server.setCertificates(await certificates(node, 'node.parcels.test'));
    expect((await call(server, { agent: keep })).body).toContain('system');
    expect((await call(server, { ca: root.cert, cert: peer.cert, key: peer.key, agent: false })).body).not.toContain(
      'system',
    );
    keep.destroy();
  });
  test('a server without TLS has none to set', async () => {
    const server = await serve({});
    const set = await certificates();
    expect(() => server.setCertificates(set)).toThrow('without TLS');
    expect(
      await received((await open(server)).end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')),
    ).toContain('200 OK');
  });
});
