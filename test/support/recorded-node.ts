import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { createSecurity } from '../../core/security/security.ts';
import { createApp } from '../../handlers/app.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { loadExchanges, RECORDED_ENDPOINT, replayExchanges } from './exchanges.ts';
import type { Replay } from './exchanges.ts';
import { FakeNode } from './fake-node.ts';
import { fixturePath, installFiles, unpackSet } from './fixtures.ts';
import { ManualClock } from './manual-clock.ts';
import { SeededIds } from './seeded-ids.ts';
import { openTestStore } from './test-store.ts';
import { contextOf } from './app-context.ts';

/**
 * Replays the recorded exchanges against our handlers, with users and access lists, on the directory they were recorded
 * on.
 */
export async function replayRecording(
  nowMs: number,
  spoil: (response: Response) => Response | Promise<Response> = (response) => response,
): Promise<Replay> {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet('orders-1-before'));
  const clock = new ManualClock(nowMs, 'microtask');
  const opened = await openTestStore({ storage, clock, scavenge: { nodeEndpoint: RECORDED_ENDPOINT } });
  try {
    const parts = { store: opened.store, clock, ids: new SeededIds(7), log: silentLog, meter: silentMeter };
    const security = createSecurity(
      { ...parts, keys: nodeKeys },
      { passwordFormat: 'strong', allowAnonymousStreamAccess: false, adminPassword: 'unused', opsPassword: 'unused' },
    );
    await security.start();
    const app = createApp(contextOf({ ...parts, scavenger: opened.scavenger, security, node: new FakeNode() }));
    return await replayExchanges(
      async (request) => spoil(await app(request)),
      loadExchanges(fixturePath('http-exchanges.json')),
      () => opened.scavenger.idle(),
    );
  } finally {
    await opened.close();
  }
}
