import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as http from 'node:http';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectStatus, NodeClient } from '../../../local/cli/node-client.ts';
import { COMMANDS } from '../../../local/commands/all-commands.ts';
import { issue, issueNode, issueRoot } from '../../support/certificates.ts';
import type { Issued } from '../../support/certificates.ts';
import { runBy } from '../run.ts';
import { FakeIo } from '../support.ts';

/** Commands over TLS, against real servers: whom they trust, and what they say where they don't. */

let folder: string;
let root: Issued;
let intermediate: Issued;
let node: Issued;
const servers: http.Server[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-ca-'));
  root = await issueRoot();
  intermediate = await issue({ commonName: 'Parcels Intermediate', isAuthority: true, by: root });
  node = await issueNode(intermediate);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

function file(name: string, content: string | Buffer): string {
  const to = path.join(folder, name);
  writeFileSync(to, content);
  return to;
}

/** What a node answers whose scavenger is idle, and to a webhook call. */
const answer: http.RequestListener = (request, reply) => {
  request.resume().on('end', () => {
    if (request.url!.startsWith('/webhook/')) return reply.writeHead(202, 'Accepted').end();
    if (request.url!.endsWith('/last'))
      return reply
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"scavengeId":"","scavengeLink":"","scavengeResult":"Unknown"}');
    if (request.url!.endsWith('/current'))
      return reply.writeHead(200, { 'content-type': 'application/json' }).end('{"scavengeId":"","scavengeLink":""}');
    return reply
      .writeHead(404, 'Not Found', { 'content-type': 'application/problem+json' })
      .end('{"code":"scavenge_not_found","title":"Not Found","detail":"None."}');
  });
};

async function listening(server: http.Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

const serve = (one: Issued, chain = '', listener = answer) =>
  listening(https.createServer({ cert: one.cert + chain, key: one.key }, listener));

const run = (words: readonly string[], env: Record<string, string> = {}) => runBy(new FakeIo({ env }), words);

const status = (port: number, words: readonly string[] = [], env: Record<string, string> = {}, host = '127.0.0.1') =>
  run(['scavenge', 'status', '--node', `https://${host}:${port}`, ...words], env);

test('every command that takes --node takes --ca', () => {
  expect(COMMANDS.filter(({ options }) => 'node' in options && !('ca' in options)).map(({ name }) => name)).toEqual([]);
});

describe('an authority that is named', () => {
  test('counts: the root, the intermediate, one of several, in PEM or DER, by option or environment', async () => {
    const port = await serve(node, intermediate.cert);
    const other = await issueRoot('Other');
    const ca = file('root.pem', root.cert);
    for (const each of [
      ca,
      file('several.pem', `Two of them\n${other.cert}\n${root.cert}`),
      file('root.der', root.der),
      file('inter.pem', intermediate.cert),
    ]) {
      expect(await status(port, ['--ca', each])).toMatchObject({ code: 0, err: '' });
      expect(await status(port, [], { SKUA_CA: each })).toMatchObject({ code: 0, err: '' });
    }
    expect(await status(port, ['--ca', ca], { SKUA_CA: '/nothing/there' })).toMatchObject({ code: 0 });
    expect(await status(port, ['--ca', ca], {}, 'localhost')).toMatchObject({ code: 0 });
    const body = file('body.json', '{}');
    expect(await run(['webhook', 'send', `https://127.0.0.1:${port}/webhook/orders`, body, '--ca', ca])).toMatchObject({
      code: 0,
      out: expect.stringContaining('202 Accepted'),
    });
    expect(
      await run(['webhook', 'send', `https://127.0.0.1:${port}/webhook/orders`, body], { SKUA_CA: ca }),
    ).toMatchObject({ code: 0 });
  });

  test('a file that is not there, or holds none, is told by its name', async () => {
    const port = await serve(node, intermediate.cert);
    for (const target of [`https://127.0.0.1:${port}`, 'http://127.0.0.1:1']) {
      expect(await run(['scavenge', 'status', '--node', target, '--ca', '/nothing/there.pem'])).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringMatching(
          /^error ca_unreadable: --ca \(or SKUA_CA\): \/nothing\/there\.pem can't be read \(ENOENT\)/,
        ),
      });
    }
    expect(await status(port, [], { SKUA_CA: '/nothing/there.pem' })).toMatchObject({
      code: 3,
      err: expect.stringContaining('/nothing/there.pem'),
    });
    for (const [name, content] of [
      ['junk.pem', 'junk'],
      ['key.pem', root.key],
      ['half.pem', root.cert.slice(0, 200)],
    ] as const) {
      expect(await status(port, ['--ca', file(name, content)])).toMatchObject({
        code: 1,
        out: '',
        err: expect.stringMatching(new RegExp(`^error ca_invalid: --ca .*${name}: .*PEM`)),
      });
    }
    expect(
      await run([
        'webhook',
        'send',
        `https://127.0.0.1:${port}/webhook/orders`,
        file('body.json', '{}'),
        '--ca',
        '/nothing',
      ]),
    ).toMatchObject({ code: 3, err: expect.stringContaining('ca_unreadable') });
  });

  test('--ca has nothing to do with a directory', async () => {
    expect(await run(['explain', 's', '--db', folder, '--ca', 'x'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--ca is for running nodes'),
    });
  });
});

describe('what is wrong is said', () => {
  const failed = async (port: number, words: readonly string[] = [], host?: string) => {
    const { code, out, err } = await status(port, words, {}, host);
    expect({ code, out }).toEqual({ code: 3, out: '' });
    expect(err).not.toContain('npm start');
    return err;
  };

  test('an authority that nobody knows, by its name', async () => {
    expect(await failed(await serve(node, intermediate.cert))).toMatch(
      /^error certificate_untrusted: The certificate of 127\.0\.0\.1:\d+ \("CN=node\.parcels\.test"\) was issued by "CN=Parcels Root", an authority that this machine does not trust\. .*--ca FILE or SKUA_CA/,
    );
    expect(await failed(await serve(node, intermediate.cert + root.cert))).toContain('was issued by "CN=Parcels Root"');
    // The node does not show its intermediate.
    expect(await failed(await serve(node))).toContain('was issued by "CN=Parcels Intermediate"');
    const other = file('other.pem', (await issueRoot('Other')).cert);
    expect(await failed(await serve(node, intermediate.cert), ['--ca', other])).toMatch(
      /neither this machine nor .*other\.pem trusts/,
    );
    const { code, err } = await run([
      'webhook',
      'send',
      `https://127.0.0.1:${await serve(node, intermediate.cert)}/webhook/orders`,
      file('body.json', '{}'),
    ]);
    expect({ code, err }).toEqual({
      code: 3,
      err: expect.stringMatching(/^error certificate_untrusted: .*CN=Parcels Root/),
    });
  });

  test('a certificate that has signed itself', async () => {
    const own = await issue({ commonName: 'localhost', dns: ['localhost'], ips: ['127.0.0.1'] });
    const port = await serve(own);
    expect(await failed(port)).toMatch(
      /"CN=localhost"\) is self-signed, and this machine does not trust it\. .*--ca .*SHA-256 ([0-9A-F]{2}:){31}/,
    );
    expect((await status(port, ['--ca', file('own.pem', own.cert)])).code).toBe(0);
  });

  test('one that has expired, is not valid yet, or an authority of it has', async () => {
    const ca = ['--ca', file('root.pem', root.cert)];
    expect(await failed(await serve(await issueNode(root, 'late', { from: -10, to: -1 })), ca)).toMatch(
      /^error certificate_expired: The certificate of 127.* \("CN=late"\) expired on 2\d{3}-/,
    );
    expect(await failed(await serve(await issueNode(root, 'early', { from: 1, to: 9 })), ca)).toMatch(
      /certificate_expired: .*"CN=early"\) is not valid before .*clock/,
    );
    const old = await issue({ commonName: 'Old', isAuthority: true, by: root, from: -10, to: -1 });
    expect(await failed(await serve(await issueNode(old, 'under'), old.cert), ca)).toMatch(
      /The certificate of "CN=Old", an authority of 127.*, expired on/,
    );
  });

  test('another host', async () => {
    const elsewhere = await issue({
      commonName: 'x',
      by: root,
      dns: ['events.example.test', '*.parcels.test'],
      ips: ['192.0.2.7'],
    });
    const ca = ['--ca', file('root.pem', root.cert)];
    expect(await failed(await serve(elsewhere), ca)).toMatch(
      /^error certificate_name: The certificate that 127\.0\.0\.1:\d+ shows is for events\.example\.test, \*\.parcels\.test, 192\.0\.2\.7, and not for 127\.0\.0\.1\. Name one of these in --node, or give the node a certificate for 127\.0\.0\.1\.\n$/,
    );
    expect(await failed(await serve(elsewhere), ca, 'localhost')).toContain('and not for localhost');
  });

  test('a name that a terminal would obey is shown harmless', async () => {
    const odd = await issue({ commonName: 'a\u001B[31mb', isAuthority: true });
    expect(await failed(await serve(await issueNode(odd)))).not.toContain('\u001B[31m');
  });

  test('TLS where there is none, and none where there is', async () => {
    const plain = await listening(http.createServer(answer));
    expect(await failed(plain)).toMatch(
      /^error tls_not_spoken: 127\.0\.0\.1:\d+ does not speak TLS, and --node says https:\/\/\. Write http:\/\/127/,
    );
    const port = await serve(node, intermediate.cert);
    const reverse = await run(['scavenge', 'status', '--node', `http://127.0.0.1:${port}`]);
    expect(reverse).toEqual({
      code: 3,
      out: '',
      err: `error tls_expected: 127.0.0.1:${port} speaks TLS, and --node says http://. Write https://127.0.0.1:${port} instead.\n`,
    });
    const send = (scheme: string, to: number) =>
      run(['webhook', 'send', `${scheme}://127.0.0.1:${to}/webhook/orders`, file('body.json', '{}')]);
    expect((await send('http', port)).err).toContain('tls_expected');
    expect((await send('https', plain)).err).toMatch(/tls_not_spoken: .*URL says https/);
  });

  test('nobody at all is still nobody', async () => {
    const port = await serve(node);
    for (const server of servers.splice(0)) server.close();
    expect(await run(['scavenge', 'status', '--node', `https://127.0.0.1:${port}`])).toMatchObject({
      code: 3,
      err: expect.stringContaining('error node_unreachable: No node answers at https'),
    });
  });
});

describe('answers over TLS', () => {
  const client = async (listener: http.RequestListener) =>
    new NodeClient(
      `https://ann:pw@127.0.0.1:${await serve(node, intermediate.cert, listener)}`,
      {},
      file('root.pem', root.cert),
    );

  test('have status, headers and body, however long, and what was sent arrives', async () => {
    const seen: unknown[] = [];
    const over = await client((request, reply) => {
      let body = '';
      request
        .on('data', (part: Buffer) => {
          body += part.toString();
        })
        .on('end', () => {
          seen.push([request.method, request.url, request.headers.authorization, request.headers['x-a'], body.length]);
          reply.writeHead(200, { 'x-b': ['1', '2'] }).end('x'.repeat(3_000_000));
        });
    });
    const response = await over.call('POST', '/a?b=c', { headers: { 'x-a': 'é' }, body: 'y'.repeat(100_000) });
    expect([response.status, response.headers.get('x-b'), (await response.text()).length]).toEqual([
      200,
      '1, 2',
      3_000_000,
    ]);
    expect(seen).toEqual([['POST', '/a?b=c', `Basic ${btoa('ann:pw')}`, expect.any(String), 100_000]]);
    expect(
      await expectStatus(await (await client((_, reply) => reply.writeHead(204).end())).call('GET', '/'), [204], ''),
    ).toBe('');
  });

  test('that break, or are given up, fail as those of fetch', async () => {
    const over = await client((_, reply) => {
      reply.writeHead(200, { 'content-length': '100' }).write('begun');
      setImmediate(() => reply.destroy());
    });
    await expect((await over.call('GET', '/')).text()).rejects.toThrow(TypeError);
    const ending = new AbortController();
    const held = await client((_, reply) => {
      reply.writeHead(200).write('begun');
    });
    const body = (await held.call('GET', '/', { signal: ending.signal })).text();
    ending.abort(new Error('enough'));
    await expect(body).rejects.toThrow('enough');
    await expect(
      (await client(() => {})).call('GET', '/', { signal: AbortSignal.abort(new Error('before')) }),
    ).rejects.toThrow('before');
  });
});
