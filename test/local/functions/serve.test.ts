import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { functionOf } from '../../../infra/aws/paths.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { serveFunctions } from '../../../local/functions/serve.ts';
import type { ServedFunctions } from '../../../local/functions/serve.ts';

let bundles: string;
let served: ServedFunctions | null = null;
let output: string;

beforeEach(async () => {
  bundles = await mkdtemp(path.join(tmpdir(), 'skua-bundles-'));
  output = '';
});

afterEach(async () => {
  await served?.close();
  served = null;
  await rm(bundles, { recursive: true, force: true });
});

/** A function that answers with what it was called with, unless it is given another source. */
async function serve(sources: Readonly<Record<string, string>> = {}, instancesMax = 2): Promise<string> {
  for (const name of ['webhook', 'admin', 'streams', 'tick']) {
    await mkdir(path.join(bundles, name));
    await writeFile(
      path.join(bundles, name, 'index.mjs'),
      sources[name] ??
        `
      let calls = 0;
      export async function handler(event, context) {
        return { statusCode: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: '${name}', pid: process.pid, calls: ++calls, cwd: process.cwd(), event, left: context.getRemainingTimeInMillis() }) };
      }`,
    );
  }
  served = await serveFunctions({
    moduleOf: (name) => path.join(bundles, name, 'index.mjs'),
    port: 0,
    env: { ...process.env, SERVER_STORAGE: 'somewhere' },
    instancesMax,
    clock: systemClock,
    ticks: false,
    onOutput: (_, text) => {
      output += text;
    },
  });
  return served.url;
}

describe('functions on this machine', () => {
  it('get requests as the events of the platform, in folders of their own', async () => {
    const url = await serve();
    const reply = await fetch(`${url}/streams/a%2Fb?x=1&x=2`, {
      method: 'POST',
      body: Buffer.from([0, 255]),
      headers: { 'content-type': 'application/octet-stream', cookie: 'a=1; b=2', 'x-one': '1' },
    });
    expect(reply.status).toBe(200);
    const { name, cwd, event, left } = (await reply.json()) as {
      name: string;
      cwd: string;
      event: Record<string, any>;
      left: number;
    };
    expect([name, path.basename(cwd)]).toEqual(['streams', 'streams']);
    expect(event).toMatchObject({
      version: '2.0',
      rawPath: '/streams/a%2Fb',
      rawQueryString: 'x=1&x=2',
      cookies: ['a=1', 'b=2'],
      body: 'AP8=',
      isBase64Encoded: true,
      requestContext: {
        domainName: '127.0.0.1',
        http: { method: 'POST', sourceIp: expect.stringContaining('127.0.0.1') },
      },
    });
    expect(event['headers']).toMatchObject({
      'x-one': '1',
      'x-forwarded-proto': 'http',
      'x-forwarded-port': new URL(url).port,
    });
    expect(event['headers'].cookie).toBeUndefined();
    expect(left).toBeGreaterThan(20_000);
  });

  it('get text as text', async () => {
    const url = await serve();
    const { event } = (await (
      await fetch(`${url}/webhook/x`, {
        method: 'POST',
        body: '{"a":"ü"}',
        headers: { 'content-type': 'application/json' },
      })
    ).json()) as { event: Record<string, unknown> };
    expect(event).toMatchObject({ body: '{"a":"ü"}', isBase64Encoded: false });
  });

  it.each([
    ['/webhook/x', 'webhook'],
    ['/admin/scavenge', 'admin'],
    ['/users', 'admin'],
    ['/connectors/x', 'admin'],
    ['/auto-scavenge/status', 'admin'],
    ['/streams/users', 'streams'],
    ['/usersx', 'streams'],
    ['/webhook', 'streams'],
    ['/', 'streams'],
  ])('serve %s by %s', (requestPath, name) => {
    expect(functionOf(requestPath)).toBe(name);
  });

  it('stay warm, and are as many as there are calls at once, up to a limit', async () => {
    const url = await serve({
      streams: `
      export async function handler(event) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return { statusCode: 200, headers: {}, body: String(process.pid) };
      }`,
    });
    const pids = await Promise.all(Array.from({ length: 8 }, async () => (await fetch(`${url}/streams/a`)).text()));
    expect(new Set(pids).size).toBe(2);
    expect(pids).toContain(await (await fetch(`${url}/streams/a`)).text());
  });

  it('begin anew after a crash, which is answered like on the platform', async () => {
    const url = await serve(
      {
        streams: `
      export async function handler(event) {
        if (event.rawPath.endsWith('crash')) process.exit(7);
        if (event.rawPath.endsWith('throw')) throw new TypeError('oh');
        return { statusCode: 200, headers: {}, body: 'yes' };
      }`,
      },
      1,
    );
    expect((await fetch(`${url}/streams/crash`)).status).toBe(502);
    expect((await fetch(`${url}/streams/throw`)).status).toBe(502);
    expect(await (await fetch(`${url}/streams/a`)).text()).toBe('yes');
    expect(output).toContain('exit code 7');
    expect(output).toContain('TypeError: oh');
  });

  it('say why they can not be loaded', async () => {
    const url = await serve({ streams: 'throw new Error("no such thing");' });
    expect((await fetch(`${url}/streams/a`)).status).toBe(502);
    expect(output).toContain('no such thing');
  });

  it('give replies back as they are', async () => {
    const url = await serve({
      streams: `
      export async function handler() {
        return { statusCode: 201, headers: { 'x-a': '1', 'content-type': 'image/png' }, cookies: ['a=1', 'b=2'], body: 'AP8=', isBase64Encoded: true };
      }`,
    });
    const reply = await fetch(`${url}/`);
    expect([reply.status, reply.headers.get('x-a'), reply.headers.getSetCookie()]).toEqual([201, '1', ['a=1', 'b=2']]);
    expect(new Uint8Array(await reply.arrayBuffer())).toEqual(Uint8Array.of(0, 255));
  });

  it('run a tick when they are asked, and no second one beside it', async () => {
    const url = await serve({
      tick: `
      let running = 0, ticks = 0;
      export async function handler(event) {
        running++;
        await new Promise((resolve) => setImmediate(resolve));
        return { ticks: ++ticks, running: running--, source: event.source };
      }`,
    });
    const replies = await Promise.all([1, 2].map(async () => (await fetch(`${url}/tick`, { method: 'POST' })).json()));
    expect(replies).toEqual([
      { ticks: 1, running: 1, source: 'aws.events' },
      { ticks: 1, running: 1, source: 'aws.events' },
    ]);
    expect((await fetch(`${url}/tick`)).status).toBe(405);
  });
});
