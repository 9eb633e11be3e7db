import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Timing } from '../../local/client/caller.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { openStore } from '../../local/embedded/index.ts';
import { serveFunctions } from '../../local/functions/serve.ts';
import type { FunctionName } from '../../local/functions/serve.ts';
import { startTestNode } from '../../local/testing/index.ts';
import { fetchBy } from '../support/lambda/call-function.ts';

/** Servers for the contract of event stores. */

export const PASSWORD = 'first-of-all';

export interface Server {
  readonly url: string;
  readonly credentials: { readonly username: string; readonly password: string };
  readonly fetch: typeof fetch;
  redact(stream: string, version: number): Promise<void>;
  stop(): Promise<void>;
}

/** Waits are turns of the process: nothing that is waited for takes longer. */
export const quick: Timing = {
  sleep: () => new Promise((resolve) => setImmediate(resolve)),
  random: () => 0,
};

/** A node with users. */
export async function aNode(): Promise<Server> {
  const node = await startTestNode({ users: [{ name: 'admin', password: PASSWORD }] });
  return {
    url: node.url,
    credentials: { username: 'admin', password: PASSWORD },
    fetch,
    redact: async (stream, version) => {
      await node.store.redact(stream, { events: [version], reason: 'a test' });
    },
    stop: () => node.stop(),
  };
}

/**
 * Functions over a directory of objects: their own handler, with the events that the platform makes of requests, and
 * beside them a store that carries the log on, as ticks do. A process has one of them.
 */
export async function functions(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'skua-event-store-'));
  Object.assign(process.env, {
    SERVER_STORAGE: folder,
    SERVER_DEFAULT_ADMIN_PASSWORD: PASSWORD,
    SERVER_DEFAULT_OPS_PASSWORD: 'second',
    SERVER_LOG_LEVEL: 'Error',
  });
  const upkeep = await openStore({ bucket: folder });
  const { handler } = await import('../../infra/aws/functions/streams.ts');
  const url = 'https://store.example.com';
  const send = fetchBy(handler, url);
  return {
    url,
    credentials: { username: 'admin', password: PASSWORD },
    fetch: send,
    redact: async (stream, version) => {
      await upkeep.redact(stream, { events: [version], reason: 'a test' });
    },
    stop: async () => {
      await upkeep.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Functions as `skua functions serve` runs them: built, each in a process of its own, behind a port. */
export async function servedFunctions(moduleOf: (name: FunctionName) => string): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'skua-served-'));
  const upkeep = await openStore({ bucket: folder });
  const served = await serveFunctions({
    moduleOf,
    port: 0,
    instancesMax: 2,
    clock: systemClock,
    ticks: false,
    env: {
      ...process.env,
      SERVER_STORAGE: folder,
      SERVER_DEFAULT_ADMIN_PASSWORD: PASSWORD,
      SERVER_DEFAULT_OPS_PASSWORD: 'second',
    },
    onOutput: () => {},
  });
  return {
    url: served.url,
    credentials: { username: 'admin', password: PASSWORD },
    fetch,
    redact: async (stream, version) => {
      await upkeep.redact(stream, { events: [version], reason: 'a test' });
    },
    stop: async () => {
      await served.close();
      await upkeep.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
