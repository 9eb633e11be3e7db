import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import * as net from 'node:net';
import * as zlib from 'node:zlib';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { codingFor, withoutCoding } from '../../../handlers/http/encoding.ts';
import type { Coding } from '../../../handlers/http/context.ts';
import { COMPRESSED_REPLIES_MAX, ReplyCompression } from '../../../local/http/response-compression.ts';
import { Flow } from '../../../local/http/flow.ts';
import { startServer } from '../../../local/http/server.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { ATOM, harness, numbered } from '../../handlers/harness.ts';

const BROWSER = 'gzip, deflate, br, zstd';
const UNPACK: Readonly<Record<Coding, (bytes: Uint8Array) => Buffer>> = {
  gzip: zlib.gunzipSync,
  deflate: zlib.inflateSync,
  br: zlib.brotliDecompressSync,
  zstd: zlib.zstdDecompressSync,
};
const ALL = new Set<Coding>(['zstd', 'br', 'gzip', 'deflate']);

describe('what a client takes', () => {
  test.each<[string, Coding | null]>([
    [BROWSER, 'zstd'],
    ['gzip, deflate', 'gzip'],
    ['br, gzip', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['*', 'zstd'],
    ['*;q=0.5, zstd;q=0', 'br'],
    ['x-gzip', 'gzip'],
    ['GZIP ; Q=0.8', 'gzip'],
    ['identity', null],
    ['identity, gzip;q=0.5', null],
    ['identity;q=0.5, gzip', 'gzip'],
    ['', null],
    ['gzip;q=0', null],
    ['gzip;q=x', null],
    ['compress', null],
    ['gzip;q=2', null],
    [`gzip${', a'.repeat(500)}`, null],
    [`${'a,'.repeat(40)}gzip`, null],
  ])('%j: %s', (accept, coding) => expect(codingFor(accept, ALL)).toBe(coding));

  test('is looked at in a moment, whatever it is', () => {
    const before = process.threadCpuUsage().user;
    for (const accept of [',', ';', 'q=', ' ', 'gzip;q=1;']) codingFor(accept.repeat(32_768 / accept.length), ALL);
    expect(process.threadCpuUsage().user - before).toBeLessThan(1_000_000);
  });

  test('a tag without its coding', () => {
    expect(['"5;17-gzip"', '"5;17"', '5;17-zstd', '5;-166502420', '"x-br-br"', '-', ''].map(withoutCoding)).toEqual([
      '"5;17"',
      '"5;17"',
      '5;17',
      '5;-166502420',
      '"x-br"',
      '-',
      '',
    ]);
  });
});

describe('bodies', () => {
  const text = Array.from({ length: 40_000 }, (_, i) => `{"n":${i},"text":"Zoë 😀 ${i % 7}"}`).join('\n');

  test.each([...ALL])('%s: short ones whole, long ones and streams block by block', async (coding) => {
    const encoder = new ReplyCompression();
    const short = await encoder.encode(text.slice(0, 5_000), coding, false);
    expect(UNPACK[coding](short as Uint8Array).toString()).toBe(text.slice(0, 5_000));
    for (const body of [text, Buffer.from(text), new Blob([text]).stream()]) {
      const packed = await encoder.encode(body as never, coding, false);
      const bytes = Buffer.from(await new Response(packed as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
      expect(bytes.length).toBeLessThan(Buffer.byteLength(text) / 4);
      expect(UNPACK[coding](bytes).equals(Buffer.from(text))).toBe(true);
    }
    expect(encoder.open).toBe(0);
  });

  test('that go on come out block by block, and end with their reader', async () => {
    const encoder = new ReplyCompression(1);
    const ended: unknown[] = [];
    const pieces = ['id: 0\ndata: {}\n\n', 'id: 1\ndata: {}\n\n'];
    const source = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          if (pieces.length > 0) controller.enqueue(Buffer.from(pieces.shift()!));
          else return new Promise(() => {});
        },
        cancel: (reason) => {
          ended.push(reason);
        },
      },
      { highWaterMark: 0 },
    );
    const packed = encoder.encode(source, 'gzip', true) as ReadableStream<Uint8Array>;
    expect(encoder.encode(source, 'gzip', true)).toBeNull();
    const gunzip = zlib.createGunzip();
    let out = '';
    gunzip.on('data', (part: Buffer) => {
      out += part.toString();
    });
    const reader = packed.getReader();
    for (let i = 0; i < 2; i++) {
      gunzip.write((await reader.read()).value!);
      await expect.poll(() => out, { timeout: 600_000 }).toContain(`id: ${i}\n`);
    }
    await reader.cancel();
    expect([ended.length, encoder.open]).toEqual([1, 0]);
  });

  test('that fail end the reply with the failure', async () => {
    const encoder = new ReplyCompression();
    const failing = new ReadableStream<Uint8Array>({
      pull: () => {
        throw new Error('the disk');
      },
    });
    await expect(
      new Response(encoder.encode(failing, 'gzip', true) as ReadableStream<Uint8Array<ArrayBuffer>>).text(),
    ).rejects.toThrow('the disk');
    expect(encoder.open).toBe(0);
    expect(COMPRESSED_REPLIES_MAX).toBeGreaterThan(0);
  });
});

describe('over HTTP', () => {
  let server: HttpServer;
  let h: ReturnType<typeof harness>;
  beforeEach(async () => {
    h = harness({ encoder: new ReplyCompression() });
    server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: (request) => h.app(request), log: silentLog });
    await h.fill('s', ...numbered(100));
  });
  afterEach(() => server.stop(1_000));

  function ask(path: string, headers: Record<string, string>): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      httpRequest(`${server.url}${path}`, { headers }, resolve).on('error', reject).end();
    });
  }
  async function whole(reply: IncomingMessage): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of reply) parts.push(part as Buffer);
    return Buffer.concat(parts);
  }

  test.each<[string, Coding]>([
    [BROWSER, 'zstd'],
    ['gzip, deflate', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['deflate', 'deflate'],
  ])('%s', async (accept, coding) => {
    const plain = await whole(await ask('/streams/s', { accept: ATOM }));
    const reply = await ask('/streams/s', { accept: ATOM, 'accept-encoding': accept });
    const bytes = await whole(reply);
    expect(reply.headers['content-encoding']).toBe(coding);
    expect(reply.headers.vary).toContain('Accept-Encoding');
    expect(UNPACK[coding](bytes).equals(plain)).toBe(true);
    // The tag is another one, and each of them is known again.
    const tag = reply.headers.etag!;
    expect(tag).toMatch(new RegExp(`^"99;-?\\d+-${coding}"$`));
    for (const known of [tag, tag.replace(`-${coding}`, ''), tag.slice(1, -1)])
      expect(
        (await whole(await ask('/streams/s', { accept: ATOM, 'accept-encoding': accept, 'if-none-match': known })))
          .length,
      ).toBe(0);
    expect((await ask('/streams/s', { accept: ATOM, 'if-none-match': tag.replace('99;', '98;') })).statusCode).toBe(
      200,
    );
  });

  test('a document that does not change is one and the same for all, compressed once, and counts for nobody', async () => {
    const encode = vi.spyOn(ReplyCompression.prototype, 'encode');
    const flow = new Flow();
    const counting = await startServer({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => h.app(request),
      log: silentLog,
      flow,
    });
    onTestFinished(() => {
      encode.mockRestore();
      return counting.stop(1_000).then(() => {});
    });
    const socket = net.connect(counting.port, '127.0.0.1');
    const pipelined = (headers: string) => `GET /openapi.json HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
    socket.write(
      pipelined('').repeat(20) + pipelined('Accept-Encoding: br\r\n').repeat(20) + pipelined('Connection: close\r\n'),
    );
    let bytes = 0;
    let held = 0;
    for await (const part of socket) {
      bytes += (part as Buffer).length;
      held = Math.max(held, flow.replies.heldBytes);
    }
    const { length } = await whole(await ask('/openapi.json', {}));
    expect(bytes).toBeGreaterThan(21 * length);
    expect([held, encode.mock.calls.length]).toEqual([0, 1]);
    // Half of what was served before was white space.
    const text = (await whole(await ask('/openapi.json', {}))).toString();
    expect(text).toBe(JSON.stringify(JSON.parse(text)));
  });

  test('short answers, binary ones and clients that take nothing get them as they are', async () => {
    await h.send(
      'POST',
      '/streams/bytes',
      { 'content-type': 'application/octet-stream', 'es-eventtype': 'x', 'es-eventid': h.id() },
      new Uint8Array(5_000),
    );
    for (const [path, headers] of [
      ['/streams/s/0', { accept: 'application/json', 'accept-encoding': BROWSER }],
      ['/streams/bytes/0', { accept: 'application/octet-stream', 'accept-encoding': BROWSER }],
      ['/streams/s', { accept: ATOM }],
      ['/streams/s', { accept: ATOM, 'accept-encoding': 'identity' }],
      ['/nothing', { 'accept-encoding': BROWSER }],
    ] as const)
      expect((await ask(path, headers)).headers['content-encoding']).toBeUndefined();
  });

  test('an event stream arrives event by event', async () => {
    const reply = await ask('/streams/s?from=98', { accept: 'text/event-stream', 'accept-encoding': BROWSER });
    onTestFinished(() => {
      reply.destroy();
    });
    expect(reply.headers['content-encoding']).toBe('gzip');
    let text = '';
    reply.pipe(zlib.createGunzip()).on('data', (part: Buffer) => {
      text += part.toString();
    });
    await expect.poll(() => text, { timeout: 600_000 }).toContain('event: caught-up');
    await h.fill('s', { n: 100 });
    await expect.poll(() => text, { timeout: 600_000 }).toContain('id: 100\n');
  });

  test('lines that go on are compressed on the way, and fetch reads them', async () => {
    await h.fill('long', ...numbered(2_000));
    const lines = await (
      await fetch(`${server.url}/streams/long`, { headers: { accept: 'application/x-ndjson' } })
    ).text();
    expect(lines.split('\n')).toHaveLength(2_001);
    const reply = await ask('/streams/long', { accept: 'application/x-ndjson', 'accept-encoding': 'gzip, deflate' });
    expect(reply.headers['content-encoding']).toBe('gzip');
    expect(zlib.gunzipSync(await whole(reply)).toString()).toBe(lines);
  });

  test('none at all where the option says so', async () => {
    const off = harness({ options: { compressionMinBytes: -1 } });
    await off.fill('s', ...numbered(100));
    for (const accept of ['gzip', BROWSER])
      expect(
        (await off.get('/streams/s', ATOM, { 'accept-encoding': accept })).headers.get('content-encoding'),
      ).toBeNull();
  });
});
