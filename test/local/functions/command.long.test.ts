import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { missingFunction, runFunctionsServe } from '../../../local/commands/run-functions-serve.ts';
import { FakeIo } from '../support.ts';

let folder: string;
let io: FakeIo;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'skua-serve-'));
  io = new FakeIo({ env: { PATH: process.env['PATH'] } });
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** A call whose function was ended at its limit, by a machine that stood still, is made once more. */
async function asked(url: string, init: RequestInit): Promise<Response> {
  for (;;) {
    const reply = await fetch(url, init);
    if (reply.status !== 503 && reply.status !== 504) return reply;
    await reply.body?.cancel();
  }
}

function run(options: { readonly port?: number; readonly build?: boolean; readonly storage?: string }) {
  return runFunctionsServe(
    {
      options: {
        storage: path.join(folder, 'data'),
        port: 0,
        instances: 1,
        build: false,
        'no-ticks': true,
        ...options,
      },
      given: new Set(),
      positionals: [],
    },
    io,
  );
}

it('serves the built functions over a directory: write, tick, and read what was written', async () => {
  const running = run({ build: true });
  const tick = /POST (\S+)\/tick/;
  await Promise.race([
    io.written(tick),
    running.then((code) => {
      throw new Error(`ended with ${code}: ${io.out}`);
    }),
  ]);
  const url = tick.exec(io.out)![1]!;
  const headers = { authorization: `Basic ${Buffer.from('admin:changeit').toString('base64')}` };
  const event = [{ eventId: crypto.randomUUID(), eventType: 'weighed', data: { grams: 750 } }];
  const written = await asked(`${url}/streams/parcels`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/vnd.eventstore.events+json' },
    body: JSON.stringify(event),
  });
  expect([written.status, written.headers.get('location')]).toEqual([201, `${url}/streams/parcels/0`]);
  expect(await (await asked(`${url}/tick`, { method: 'POST' })).json()).toMatchObject({ manifest: 1 });
  const found = await (
    await asked(`${url}/streams/parcels/0`, { headers: { ...headers, accept: 'application/json' } })
  ).json();
  expect(found).toEqual({ grams: 750 });
  expect((await asked(`${url}/users`, { headers })).status).toBe(200);
  io.process.emit('SIGINT');
  expect(await running).toBe(0);
});

it('knows that a function is missing, as all are in a fresh clone', async () => {
  const moduleOf = (name: string): string => path.join(folder, `${name}.mjs`);
  expect(missingFunction(moduleOf)).toBe(moduleOf('webhook'));
  for (const name of ['webhook', 'admin', 'streams']) await writeFile(moduleOf(name), '');
  expect(missingFunction(moduleOf)).toBe(moduleOf('tick'));
  await writeFile(moduleOf('tick'), '');
  expect(missingFunction(moduleOf)).toBeUndefined();
});

it('refuses what is no place before it serves', async () => {
  for (const storage of ['s3:bucket/prefix', 's3:///prefix', ''])
    await expect(run({ storage })).rejects.toThrow(/^--storage: .* is not an object storage location/);
});

it('says that a port is taken', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    other.once('listening', resolve);
  });
  const { port } = other.address() as AddressInfo;
  await expect(run({ port })).rejects.toMatchObject({ code: 'port_in_use', exitCode: 3 });
  other.close();
});
