import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SCHEME_NAMES } from '../../../core/webhook/format/schemes.ts';
import { createSignatureVerifier } from '../../../core/webhook/signatures/signatures.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { secretFor, settingsFor } from '../../webhook/signatures/signing.ts';
import { run } from '../run.ts';

/**
 * `skua webhook send` against a receiver that answers what the test says, and `skua webhook test` in the real sandbox.
 */

const BODY = Buffer.from('{"id":5,"note":"Grüße"}');

interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

let folder: string;
let server: Server;
let address: string;
let received: Received[];
let answer: { status: number; headers?: Record<string, string>; text?: string };

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'skua-webhook-'));
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      received.push({
        method: request.method!,
        url: request.url!,
        headers: request.headers,
        body: Buffer.concat(parts),
      });
      response.writeHead(answer.status, answer.headers).end(answer.text);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  received = [];
  answer = { status: 202 };
});

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const to = path.join(folder, name);
  await writeFile(to, content);
  return to;
}

async function send(...words: string[]) {
  return run('webhook', 'send', `${address}/webhook/orders`, await file('body.json', BODY), ...words);
}

/** The words that name a scheme with all that belongs to it. */
async function signedBy(scheme: string): Promise<string[]> {
  const { header, prefix, encoding, hash } = settingsFor(scheme);
  const more = Object.entries({ header, prefix, encoding, hash }).flatMap(([name, value]) =>
    value === null ? [] : [`--signature-${name}`, value],
  );
  return ['--scheme', scheme, '--secret-file', await file('secret', `${secretFor(scheme)}\n`), ...more];
}

describe('send', () => {
  test.each(SCHEME_NAMES)('signs as %s', async (scheme) => {
    expect(await send(...(await signedBy(scheme)))).toMatchObject({ code: 0, err: '' });
    const [call] = received;
    expect(call).toMatchObject({
      method: 'POST',
      url: '/webhook/orders',
      body: BODY,
      headers: { 'content-type': 'application/json' },
    });
    const headers = new Map(Object.entries(call!.headers).map(([name, value]) => [name, String(value)]));
    const verifier = createSignatureVerifier(nodeKeys, { ...settingsFor(scheme), timestampToleranceMs: 60_000 }, [
      secretFor(scheme),
    ]);
    expect(verifier.verify(headers, call!.body, Date.now())).toEqual({ kind: 'valid', secretIndex: 0 });
  });

  test('id, time, media type and headers are as given', async () => {
    const words = [
      '--id',
      'msg_1',
      '--timestamp',
      '1700000000',
      '--content-type',
      'application/x+json',
      '--header',
      'X-One=1',
      '--header',
      'x-one=2',
      '--header',
      'X-Two=a=b',
    ];
    expect(await send(...(await signedBy('StandardWebhooks')), ...words)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^202 Accepted \(\d+\.\d ms\): Accepted: .*\nDelivery: msg_1\n$/) as string,
    });
    expect(received[0]!.headers).toMatchObject({
      'webhook-id': 'msg_1',
      'webhook-timestamp': '1700000000',
      'content-type': 'application/x+json',
      'x-one': '1,2',
      'x-two': 'a=b',
    });
  });

  test('a header that is given wins over the one that was made', async () => {
    await send(...(await signedBy('GitHub')), '--header', 'x-hub-signature-256=sha256=00');
    expect(received[0]!.headers['x-hub-signature-256']).toBe('sha256=00');
  });

  test('without a scheme nothing is signed', async () => {
    expect((await send('--json')).out).toMatch(
      /^\{"status":202,"meaning":"Accepted: the event is about to be written, unless the script skipped the call [^"]*skippedStatus[^"]*","id":null,"durationMs":[\d.]+\}\n$/,
    );
    expect(Object.keys(received[0]!.headers).join()).not.toMatch(/signature|hmac/);
  });

  test.each([
    [200, 0],
    [201, 0],
    [202, 0],
    [204, 0],
    [302, 1],
    [400, 1],
    [401, 4],
    [403, 4],
    [404, 1],
    [405, 1],
    [408, 1],
    [413, 1],
    [415, 1],
    [418, 1],
    [422, 1],
    [429, 1],
    [500, 1],
    [502, 1],
    [503, 3],
    [504, 1],
  ])('an answer %i ends with code %i', async (status, code) => {
    answer = { status, headers: { location: `${address}/elsewhere` } };
    const result = await send();
    expect(result).toMatchObject({ code, err: '' });
    expect(result.out).toMatch(new RegExp(`^${status} [A-Z][^(]* \\(\\d+\\.\\d ms\\): [A-Z].*\\.\n$`));
    expect(received).toHaveLength(1);
  });

  test('the beginning of an answer is shown, without what a terminal would obey', async () => {
    answer = { status: 400, text: `no\u001B[2J good\r\n${'x'.repeat(2_000_000)}` };
    const { out } = await send();
    expect(out).toContain('\nAnswer: no [2J good xxx');
    expect(out.length).toBeLessThan(1_000);
  });

  test('nobody answers: 3', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => {
      closed.listen(0, '127.0.0.1', resolve);
    });
    const url = `http://127.0.0.1:${(closed.address() as AddressInfo).port}/webhook/orders`;
    await new Promise((resolve) => {
      closed.close(resolve);
    });
    expect(await run('webhook', 'send', url, await file('body.json', BODY))).toEqual({
      code: 3,
      out: '',
      err: `error receiver_unreachable: No answer from ${url} (ECONNREFUSED).\n`,
    });
  });

  test('no file: 3', async () => {
    expect(await run('webhook', 'send', address, path.join(folder, 'absent'))).toMatchObject({
      code: 3,
      err: expect.stringContaining('error file_unreadable') as string,
    });
    expect(await send('--scheme', 'Stripe', '--secret-file', path.join(folder, 'absent'))).toMatchObject({ code: 3 });
  });

  const usage: [string[], string][] = [
    [
      ['--scheme', 'Strpe', '--secret-file', 'SECRET'],
      `--scheme must be one of ${SCHEME_NAMES.join(', ')}, not 'Strpe'. Did you mean Stripe?`,
    ],
    [['--scheme', 'Stripe'], '--scheme needs --secret-file FILE.'],
    [['--secret-file', 'SECRET'], `--secret-file needs --scheme: one of ${SCHEME_NAMES.join(', ')}.`],
    [['--id', 'x'], 'Without --scheme nothing is signed: leave out --id, --timestamp and the --signature options.'],
    [
      ['--scheme', 'StandardWebhooks', '--secret-file', 'SECRET'],
      '--secret-file: A secret of StandardWebhooks is whsec_ followed by Base64.',
    ],
    [['--scheme', 'GitHub', '--secret-file', 'EMPTY'], '--secret-file: A secret of GitHub is a non-empty string.'],
    [['--scheme', 'GitHub', '--secret-file', 'BINARY'], '--secret-file: the file is not UTF-8 text.'],
    [
      ['--scheme', 'GitHub', '--secret-file', 'SECRET', '--timestamp', '5'],
      '--timestamp: GitHub does not sign a time.',
    ],
    [
      ['--scheme', 'GitHub', '--secret-file', 'SECRET', '--timestamp', '-5'],
      "--timestamp must be a whole number from 0 to 253402300799, not '-5'.",
    ],
    [
      ['--scheme', 'Stripe', '--secret-file', 'SECRET', '--id', 'x'],
      "--id: Stripe has no delivery id header. Use --header name=value with the header that the connector's deduplication:header names.",
    ],
    [
      ['--scheme', 'GitHub', '--secret-file', 'SECRET', '--signature-hash', 'sha1'],
      '--signature-hash: Belongs to the scheme Generic: leave it out, since GitHub fixes it.',
    ],
    [['--scheme', 'Generic', '--secret-file', 'SECRET'], '--scheme Generic needs --signature-header NAME.'],
    [
      ['--scheme', 'Generic', '--secret-file', 'SECRET', '--signature-header', 'x', '--signature-encoding', 'base32'],
      '--signature-encoding: Use one of hex, base64.',
    ],
    [['--header', 'x'], "--header must be name=value, not 'x'."],
    [['--header', 'a b=c'], "--header: 'a b' with this value is not a valid HTTP header."],
    [['--header', 'Content-Length=5'], "--header can't set content-length: it is set by the connection."],
  ];
  test.each(usage)('%j is wrong usage', async (words, message) => {
    const files: Record<string, string> = {
      SECRET: await file('secret', 'hush'),
      EMPTY: await file('empty', '\n'),
      BINARY: await file('binary', new Uint8Array([255])),
    };
    expect(await send(...words.map((word) => files[word] ?? word))).toEqual({
      code: 2,
      out: '',
      err: `error: ${message}\nSee: skua webhook send --help\n`,
    });
    expect(received).toEqual([]);
  });
  test.each(['webhook/orders', 'ftp://x/y', 'http://ann:pw@127.0.0.1/webhook/x'])(
    '%s is no address for a call',
    async (url) => {
      expect(await run('webhook', 'send', url, await file('body.json', BODY))).toMatchObject({ code: 2, out: '' });
    },
  );
  test('a secret is in no output', async () => {
    for (const scheme of SCHEME_NAMES) {
      const { out, err } = await send(...(await signedBy(scheme)));
      expect(out + err).not.toContain(secretFor(scheme));
    }
  });
});

const ROUTE = `function route({ body, headers, path, query }) {
  if (body.kind === 'ping') return null;
  if (body.kind === 'bad') throw new Error('no such kind');
  return { stream: [body.kind, path, query.region, headers['content-type']].join('|'), schema: headers['x-event'] };
}`;

describe('test', () => {
  async function trial(script: string, payload: string | Uint8Array, ...words: string[]) {
    return run('webhook', 'test', await file('route.js', script), await file('payload.json', payload), ...words);
  }

  test('shows stream and schema', async () => {
    const { code, out, err } = await trial(
      ROUTE,
      '{"kind":"order"}',
      '--header',
      'X-Event=order.placed',
      '--query',
      'region=eu',
    );
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(
      /^Outcome: {2}routed\nStream: {3}order\|\/webhook\/trial\|eu\|application\/json\nSchema: {3}order\.placed\nDuration: \d+\.\d\d ms\n$/,
    );
  });

  const outcomes: [string, string, string | Uint8Array, object][] = [
    ['no schema', ROUTE, '{"kind":"order"}', { outcome: 'routed', schema: null }],
    ['a script with a byte order mark', `\uFEFF${ROUTE}`, '{"kind":"order"}', { outcome: 'routed' }],
    ['skipped', ROUTE, '{"kind":"ping"}', { outcome: 'skipped', stream: null, error: null }],
    ['a throw', ROUTE, '{"kind":"bad"}', { outcome: 'failed', error: expect.stringContaining('no such kind') }],
    ['a stream of the system', 'route = () => ({ stream: "$x" })', '{}', { outcome: 'failed', stream: '$x' }],
    [
      'a script that is none',
      'function route( {',
      '{}',
      { outcome: 'failed', error: expect.stringContaining('line 1') },
    ],
    [
      'a script without route',
      'function rout() {}',
      '{}',
      { outcome: 'failed', error: expect.stringContaining('route') },
    ],
    ['a payload that is no JSON', ROUTE, '{"kind":', { outcome: 'invalid-json' }],
    ['a payload that is no text', ROUTE, new Uint8Array([0x22, 0xff, 0x22]), { outcome: 'invalid-json' }],
    ['an empty payload', ROUTE, '', { outcome: 'invalid-json' }],
    ['a script that never ends', 'function route() { for (;;); }', '{}', { outcome: 'timed-out', stream: null }],
  ];
  test.each(outcomes)('%s', async (_, script, payload, expected) => {
    const { code, out, err } = await trial(script, payload, '--json');
    const result = JSON.parse(out) as { outcome: string };
    expect(Object.keys(result)).toEqual(['outcome', 'stream', 'schema', 'error', 'durationMs']);
    expect(result).toMatchObject(expected);
    expect({ code, err }).toEqual({
      code: result.outcome === 'routed' || result.outcome === 'skipped' ? 0 : 1,
      err: '',
    });
  });

  test('what is perhaps not meant is told, and the call goes on', async () => {
    const script = 'const route = () => ({ stream: "s", type: "order-placed" });';
    const { code, out } = await trial(script, '{}');
    expect(code).toBe(0);
    expect(out).toMatch(
      /\nSchema: {3}none: the type is WebhookReceived\nWarning: {2}The script returns type, .* what it returns as schema, else WebhookReceived\.\nDuration: /,
    );
    expect(JSON.parse((await trial(script, '{}', '--json')).out)).toMatchObject({
      outcome: 'routed',
      warnings: [expect.stringContaining('schema')],
    });
  });

  test('an integer that a script would not see whole is told, and its text can be had', async () => {
    const script =
      'const route = ({ body, text }) => ({ stream: `${body.id}|${/\\d{16,}/.exec(text)[0]}`, schema: "t" });';
    const { code, out } = await trial(script, '{"id": 9007199254740993}');
    expect(code).toBe(0);
    expect(out).toMatch(
      /\nStream: {3}9007199254740992\|9007199254740993\n.*\nWarning: {2}The body has an integer beyond 2\^53, .*request\.text/,
    );
    expect((await trial(script, '{"id": "9007199254740993"}')).out).not.toContain('Warning');
  });

  test('a skip says so, and what the sender is answered', async () => {
    const { code, out, err } = await trial(ROUTE, '{"kind":"ping"}');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(
      /^Outcome: {2}skipped: nothing would be written\nAnswer: {3}400, .*skippedStatus.*200, 202 or 204.*\nDuration: /,
    );
  });

  test('where the connector may write', async () => {
    const [script, payload] = ['route = () => ({ stream: "orders-7" })', '{}'];
    expect((await trial(script, payload, '--stream', 'returns', '--stream', 'orders-*')).code).toBe(0);
    const { code, out } = await trial(script, payload, '--stream', 'returns');
    expect(code).toBe(1);
    expect(out).toMatch(
      /^Outcome: {2}failed, status 500\nStream: {3}orders-7\n[^]*Why: .*may not write to the stream "orders-7"/,
    );
  });

  test('a time limit of its own', async () => {
    const { out } = await trial('function route() { for (;;); }', '{}', '--script-timeout-ms', '20');
    expect(out).toContain('Outcome:  timed out, status 500\nWhy:      ');
    expect(out).toContain('20 ms');
  });

  test('a script that is too long is refused', async () => {
    expect(await trial(' '.repeat(131_073), '{}')).toMatchObject({
      code: 1,
      err: expect.stringContaining('error file_too_large') as string,
    });
  });
});
