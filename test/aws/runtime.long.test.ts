import { existsSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildBundles } from '../support/lambda/built-bundles.ts';
import type { BuiltBundles } from '../support/lambda/built-bundles.ts';
import { scheduledEvent } from '../support/lambda/events.ts';
import { LambdaDriver } from '../support/lambda/lambda-driver.ts';
import { ric } from '../support/lambda/ric.ts';
import { SecretStore } from '../support/lambda/secret-store.ts';
import { describeFunctions } from '../support/lambda/runtime-suite.ts';
import { s3ForTests } from '../support/s3/s3-for-tests.ts';
import type { S3ForTests } from '../support/s3/s3-for-tests.ts';

let bundles: BuiltBundles;
let s3: S3ForTests;

beforeAll(async () => {
  [bundles, s3] = await Promise.all([buildBundles(), s3ForTests()]);
});

afterAll(async () => {
  await s3?.close();
  await bundles?.remove();
});

function driverFor(prefix: string, command: (folder: string) => readonly [string, ...string[]]): LambdaDriver {
  return new LambdaDriver({
    bundles: bundles.folder,
    command,
    env: {
      ...s3.env,
      AWS_ENDPOINT_URL_S3: s3.endpoint,
      AWS_REGION: s3.region,
      SERVER_STORAGE: `s3://${s3.bucket}/${prefix}`,
      SERVER_DEFAULT_ADMIN_PASSWORD: 'first',
      SERVER_DEFAULT_OPS_PASSWORD: 'second',
      SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: 'a token',
      SERVER_CHUNK_SIZE: '131072',
      SERVER_TICK_SECONDS: '300',
    },
  });
}

describe('the bundles', () => {
  it('are small, and have no packages beside them', () => {
    for (const { name, bytes, bytesMax, inputs } of bundles.sizes) {
      const largest = Object.entries(inputs)
        .sort(([, a], [, b]) => b - a)
        .slice(0, 8);
      expect(bytes, `${name}, of ${largest.join(' ')}`).toBeLessThanOrEqual(bytesMax);
    }
    for (let folder = bundles.folder; folder !== path.dirname(folder); folder = path.dirname(folder))
      expect(existsSync(path.join(folder, 'node_modules'))).toBe(false);
  });

  it('have no tracing in them, and script engines only where scripts run', () => {
    for (const { name, inputs } of bundles.sizes) {
      expect(
        Object.keys(inputs).filter(
          (owner) => owner.startsWith('@opentelemetry') || owner === 'pino' || owner === 'yaml',
        ),
        name,
      ).toEqual([]);
      expect(existsSync(path.join(bundles.folder, name, 'quickjs.wasm'))).toBe(name === 'webhook' || name === 'admin');
    }
  });
});

/** By our own stand-in for the platform's runtime. */
function bootstrapped(folder: string): readonly [string, ...string[]] {
  const bootstrap = fileURLToPath(new URL('../../local/functions/bootstrap.mjs', import.meta.url));
  return [process.execPath, bootstrap, path.join(folder, 'index.mjs')];
}

describe('the built functions, by the runtime interface', () => {
  let driver: LambdaDriver;
  beforeAll(() => {
    driver = driverFor('bootstrap', bootstrapped);
  });
  afterAll(() => driver?.restart());

  describeFunctions(() => driver);

  it('read each no secrets but their own, from the secret store, and have none in their configuration', async () => {
    const store = await new SecretStore({
      'first-admin': 'of admin',
      'first-ops': 'of ops',
      token: 'to seal with',
    }).listen();
    const secretDriver = (env: Readonly<Record<string, string>>) =>
      new LambdaDriver({
        bundles: bundles.folder,
        command: bootstrapped,
        env: {
          ...s3.env,
          AWS_ENDPOINT_URL_S3: s3.endpoint,
          AWS_ENDPOINT_URL_SECRETS_MANAGER: store.url,
          AWS_REGION: s3.region,
          SERVER_STORAGE: `s3://${s3.bucket}/secrets`,
          SERVER_CHUNK_SIZE: '131072',
          ...env,
        },
      });
    // As the stack gives them (test/aws/stack.long.test.ts).
    const users = {
      SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: 'first-admin',
      SERVER_DEFAULT_OPS_PASSWORD_SECRET: 'first-ops',
    };
    const sealing = { SERVER_CONNECTORS__DATA_PROTECTION__TOKEN_SECRET: 'token' };
    const [tick, streams, admin, webhook] = [
      secretDriver({}),
      secretDriver(users),
      secretDriver({ ...users, ...sealing }),
      secretDriver(sealing),
    ] as const;
    try {
      expect(await tick.value('tick', scheduledEvent())).toMatchObject({ outcome: 'idle' });
      expect(store.asked).toEqual([]);
      expect(
        (
          await streams.http('streams', 'GET', '/streams/nothing', {
            user: ['admin', 'of admin'],
            headers: { accept: 'application/json' },
          })
        ).statusCode,
      ).toBe(404);
      expect(store.asked.toSorted()).toEqual(['first-admin', 'first-ops']);
      // The users are there by now: nobody needs their first passwords any more.
      store.asked.length = 0;
      const settings = {
        instanceTypeName: 'webhook-source',
        routingScript: Buffer.from('function route() { return { stream: "a" }; }').toString('base64'),
        signature: { scheme: 'GitHub', secret: 'shared' },
      };
      const json = { 'content-type': 'application/json' };
      expect(
        (
          await admin.http('admin', 'POST', '/connectors/github', {
            user: ['ops', 'of ops'],
            headers: json,
            body: JSON.stringify({ settings }),
          })
        ).statusCode,
      ).toBe(200);
      expect(
        (await admin.http('admin', 'POST', '/connectors/github/start', { user: ['ops', 'of ops'] })).statusCode,
      ).toBe(200);
      expect(store.asked).toEqual(['token']);
      expect(
        await webhook.http('webhook', 'POST', '/webhook/github', { user: null, headers: json, body: '{}' }),
      ).toMatchObject({ statusCode: 401, body: '' });
      expect(store.asked).toEqual(['token', 'token']);
      // What can't be read is no reply with a reason, and the next call tries again.
      await webhook.restart();
      store.secrets.set('token', { status: 400, name: 'AccessDeniedException' });
      expect(
        await webhook.http('webhook', 'POST', '/webhook/github', { user: null, headers: json, body: '{}' }),
      ).toMatchObject({ statusCode: 500, body: '' });
      expect(webhook.output).toContain('the role of the function may not read it');
      store.secrets.set('token', 'to seal with');
      expect(
        (await webhook.http('webhook', 'POST', '/webhook/github', { user: null, headers: json, body: '{}' }))
          .statusCode,
      ).toBe(401);
      for (const each of [tick, streams, admin, webhook])
        expect(each.output).not.toMatch(/of admin|of ops|to seal with/);
    } finally {
      for (const each of [tick, streams, admin, webhook]) await each.restart();
      await store.close();
    }
  });

  it('say what is wrong with their settings in their log, and answer all the same', async () => {
    const broken = new LambdaDriver({
      bundles: bundles.folder,
      command: bootstrapped,
      env: { SERVER_STORAGE: `s3://${s3.bucket}/broken` },
    });
    // A tick has no users, and so needs no passwords.
    const brokenTick = new LambdaDriver({
      bundles: bundles.folder,
      command: bootstrapped,
      env: { SERVER_STORAGE: `s3://${s3.bucket}/broken`, SERVER_TICK_SECONDS: 'soon' },
    });
    try {
      expect((await broken.http('streams', 'GET', '/streams/a')).statusCode).toBe(500);
      expect(broken.output).toContain('SERVER_DEFAULT_ADMIN_PASSWORD');
      expect(await brokenTick.invoke('tick', scheduledEvent())).toMatchObject({ kind: 'error' });
    } finally {
      await broken.restart();
      await brokenTick.restart();
    }
  });
});

describe.skipIf(ric.command === null)(
  `the built functions, by the platform's own client${ric.command === null ? ` (skipped: ${ric.reason})` : ''}`,
  () => {
    let driver: LambdaDriver;
    beforeAll(() => {
      driver = driverFor('ric', ric.command!);
    });
    afterAll(() => driver?.restart());

    describeFunctions(() => driver);
  },
);
