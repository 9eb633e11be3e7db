import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { createSecurity } from '../../core/security/security.ts';
import type { OpenStore } from '../../core/store.ts';
import { createApp } from '../../handlers/app.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { loadExchanges, RECORDED_ENDPOINT } from '../support/exchanges.ts';
import type { Exchange } from '../support/exchanges.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { fixturePath, installFiles, unpackSet } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

/** The recorded refusals and looks at users, with the credentials of the recording, over the directory that it was made on. */
const CASES = loadExchanges(fixturePath('http-exchanges.json')).filter(({ request, response }) => response.status === 401 || request.path.startsWith('/users'));

let opened: OpenStore;
let app: ReturnType<typeof createApp>;

beforeAll(async () => {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet('orders-1-before'));
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  opened = await openTestStore({ storage, clock });
  const parts = { store: opened.store, clock, ids: new SeededIds(), log: silentLog, meter: silentMeter };
  const security = createSecurity({ ...parts, keys: nodeKeys }, { passwordFormat: 'strong', allowAnonymousStreamAccess: false, adminPassword: 'unused', opsPassword: 'unused' });
  await security.start();
  app = createApp({ ...parts, scavenger: new FakeScavenger(), security, node: null });
});

afterAll(() => opened.close());

/** A user who lacks a role is 403 here; the reference makes no difference. */
function statusOf({ request, response }: Exchange): number {
  return response.status === 401 && request.headers['authorization']?.startsWith('Basic b3Vybzp') === true ? 403 : response.status;
}

test('there are refusals of each kind, and users', () => {
  expect(CASES.map(statusOf)).toEqual([401, 401, 403, 200, 200, 200, 404]);
});

test.each(CASES.map((exchange) => ({ name: `${exchange.request.method} ${exchange.request.path}`, exchange })))('$name', async ({ exchange }) => {
  const { request, response } = exchange;
  const reply = await app(new Request(`https://${RECORDED_ENDPOINT}${request.path}`, { method: request.method, headers: request.headers }));
  expect(reply.status).toBe(statusOf(exchange));
  expect(reply.headers.get('access-control-allow-methods')).toBe(response.headers['access-control-allow-methods'] ?? null);
  expect(reply.headers.has('www-authenticate')).toBe(reply.status === 401);
  const text = await reply.text();
  if (response.status === 200) expect(text).toBe(response.body);
  else if (response.status === 404) expect(JSON.parse(text)).toMatchObject({ code: 'user_not_found', success: false, error: 'NotFound' });
});
