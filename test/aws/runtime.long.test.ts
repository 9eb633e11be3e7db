import { existsSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildBundles } from '../support/lambda/built-bundles.ts';
import type { BuiltBundles } from '../support/lambda/built-bundles.ts';
import { scheduledEvent } from '../support/lambda/events.ts';
import { LambdaDriver } from '../support/lambda/lambda-driver.ts';
import { ric } from '../support/lambda/ric.ts';
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
    bundles: bundles.folder, command,
    env: {
      ...s3.env, AWS_ENDPOINT_URL_S3: s3.endpoint, AWS_REGION: s3.region, SERVER_STORAGE: `s3://${s3.bucket}/${prefix}`, SERVER_DEFAULT_ADMIN_PASSWORD: 'first', SERVER_DEFAULT_OPS_PASSWORD: 'second',
      SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: 'a token', SERVER_CHUNK_SIZE: '131072', SERVER_TICK_SECONDS: '15',
    },
  });
}

describe('the bundles', () => {
  it('are small, and have no packages beside them', () => {
    for (const { name, bytes, bytesMax } of bundles.sizes) expect(bytes, name).toBeLessThanOrEqual(bytesMax);
    expect(bundles.sizes.find(({ name }) => name === 'webhook')!.bytes).toBeLessThan(1_000_000);
    for (let folder = bundles.folder; folder !== path.dirname(folder); folder = path.dirname(folder)) expect(existsSync(path.join(folder, 'node_modules'))).toBe(false);
  });

  it('have no tracing in them, and script engines only where scripts run', () => {
    for (const { name, inputs } of bundles.sizes) {
      expect(Object.keys(inputs).filter((owner) => owner.startsWith('@opentelemetry') || owner === 'pino' || owner === 'yaml'), name).toEqual([]);
      expect(existsSync(path.join(bundles.folder, name, 'quickjs.wasm'))).toBe(name === 'webhook' || name === 'admin');
    }
  });
});

describe('the built functions, by the runtime interface', () => {
  let driver: LambdaDriver;
  beforeAll(() => { driver = driverFor('bootstrap', (folder) => [process.execPath, path.join(bundles.folder, 'bootstrap.mjs'), folder]); });
  afterAll(() => driver?.restart());

  describeFunctions(() => driver);

  it('say what is wrong with their settings in their log, and answer all the same', async () => {
    const broken = new LambdaDriver({ bundles: bundles.folder, command: (folder) => [process.execPath, path.join(bundles.folder, 'bootstrap.mjs'), folder], env: { SERVER_STORAGE: `s3://${s3.bucket}/broken` } });
    try {
      expect((await broken.http('streams', 'GET', '/streams/a')).statusCode).toBe(500);
      expect(broken.output).toContain('SERVER_DEFAULT_ADMIN_PASSWORD');
      expect(await broken.invoke('tick', scheduledEvent())).toMatchObject({ kind: 'error' });
    } finally {
      await broken.restart();
    }
  });
});

describe.skipIf(ric.command === null)(`the built functions, by the platform's own client${ric.command === null ? ` (skipped: ${ric.reason})` : ''}`, () => {
  let driver: LambdaDriver;
  beforeAll(() => { driver = driverFor('ric', ric.command!); });
  afterAll(() => driver?.restart());

  describeFunctions(() => driver);
});
