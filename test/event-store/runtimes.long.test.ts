import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { build } from 'esbuild';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestNode } from '../../local/testing/index.ts';
import type { TestNode } from '../../local/testing/index.ts';
import { Spawned } from '../local/spawn.ts';
import { launched } from '../ui/chromium.ts';

/** The client in other runtimes than Node.js: they run the shortened contract against the port of a node. */

const ROOT = new URL('../..', import.meta.url).pathname;
const WORKERD = path.join(ROOT, 'test/runtimes/node_modules/@cloudflare/workerd-linux-64/bin/workerd');
const CHECKS = /^\d{2} checks$/;

/** The client and the contract as one text, which ends with `tail`. */
async function program(format: 'esm' | 'iife', tail: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { connect, isSkuaError } from './local/client/index.ts';
        import { shortContract } from './test/event-store/short-contract.ts';
        const run = (options) => shortContract(connect(options), isSkuaError);
        ${tail}`,
      resolveDir: ROOT,
      loader: 'ts',
    },
    bundle: true,
    platform: 'neutral',
    format,
    target: 'es2022',
    write: false,
  });
  return outputFiles[0]!.text;
}

let node: TestNode;
const credentials = { username: 'admin', password: 'of-these-tests' };
/** Of a page that is let in. */
let page: ReturnType<typeof createServer>;
let origin: string;

beforeAll(async () => {
  page = createServer((_, reply) => {
    reply.setHeader('content-type', 'text/html');
    reply.end('<!doctype html><title>An application</title>');
  });
  await new Promise<void>((resolve) => {
    page.listen(0, '127.0.0.1', resolve);
  });
  origin = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  node = await startTestNode({
    users: [{ name: 'admin', password: credentials.password }],
    options: { CorsOrigins: `${origin},${origin.replace('127.0.0.1', 'app.test')}` },
  });
});
afterAll(async () => {
  page.close();
  await node.stop();
});

describe.skipIf(!existsSync(WORKERD))('workerd (npm run install:tests has it)', () => {
  test('runs the contract against the port of a node', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'skua-workerd-'));
    try {
      writeFileSync(
        path.join(folder, 'main.mjs'),
        await program(
          'esm',
          `export default {
             async fetch(request) {
               try {
                 return new Response(await run(await request.json()));
               } catch (error) {
                 return new Response(String(error?.stack ?? error), { status: 500 });
               }
             },
           };`,
        ),
      );
      writeFileSync(
        path.join(folder, 'config.capnp'),
        `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (modules = [(name = "main.mjs", esModule = embed "main.mjs")],
      compatibilityDate = "2026-06-01", globalOutbound = "network")),
    (name = "network", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`,
      );
      const worker = new Spawned(
        WORKERD,
        ['serve', 'config.capnp', '--control-fd=1'],
        {},
        { cwd: folder, isGroup: true },
      );
      try {
        const [, port] = await worker.seen(/"port":(\d+)/);
        const reply = await fetch(`http://127.0.0.1:${port}/`, {
          method: 'POST',
          body: JSON.stringify({ url: node.url, credentials }),
        });
        expect(await reply.text()).toMatch(CHECKS);
      } finally {
        await worker.end();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

const started = await launched();
const why = typeof started === 'string' ? started : null;

describe.skipIf(why !== null)(`Chromium${why === null ? '' : ` (${why})`}`, () => {
  const browser = started as Browser;
  afterAll(() => browser.close());

  async function runIn(address: string, options: object): Promise<unknown> {
    const context = await browser.newContext();
    try {
      const tab = await context.newPage();
      await tab.goto(address);
      const text = await program('iife', 'globalThis.skuaContract = (options) => run(options).catch(String);');
      await tab.evaluate(text);
      return await tab.evaluate(`skuaContract(${JSON.stringify(options)})`);
    } finally {
      await context.close();
    }
  }

  test("runs the contract in the node's own page", async () => {
    expect(await runIn(`${node.url}/ui`, { url: node.url, credentials })).toMatch(CHECKS);
  });

  test('runs it in a page of another origin that CorsOrigins names, also one that is not secure, and in no other', async () => {
    for (const letIn of [origin, origin.replace('127.0.0.1', 'app.test')])
      expect(await runIn(letIn, { url: node.url, credentials })).toMatch(CHECKS);
    expect(await runIn(origin.replace('127.0.0.1', 'other.test'), { url: node.url, credentials })).toMatch(
      /did not answer/,
    );
  });
});
