import { describe, expect, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { createApp } from '../../handlers/app.ts';
import { loadExchanges, RECORDED_ENDPOINT, replayExchanges, unexplained } from '../support/exchanges.ts';
import { fixturePath, installFiles, unpackSet } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';

/** When the exchanges were recorded: `$maxAge` depends on it. */
const RECORDED_AT_MS = Date.UTC(2026, 10, 21, 7, 28, 12);
const exchanges = loadExchanges(fixturePath('http-exchanges.json'));

/** Replays the recording against the directory it was made on; `spoil` alters replies, to see that it would be noticed. */
async function replay(spoil: (response: Response) => Response | Promise<Response>) {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet('orders-1-before'));
  const clock = new ManualClock(RECORDED_AT_MS, 'microtask');
  const opened = await openTestStore({ storage, clock, scavenge: { nodeEndpoint: RECORDED_ENDPOINT } });
  try {
    const app = createApp({ store: opened.store, scavenger: opened.scavenger, clock, ids: new SeededIds(), log: silentLog, meter: silentMeter, security: null, node: null });
    return await replayExchanges(async (request) => spoil(await app(request)), exchanges, () => opened.scavenger.idle());
  } finally {
    await opened.close();
  }
}

describe('the recorded exchanges under /streams and /admin/scavenge', () => {
  test('are answered alike, but for what was decided otherwise', async () => {
    const result = await replay((response) => response);
    expect(result.compared).toBe(75);
    expect(unexplained(result)).toEqual([]);
  });

  test('would show a changed body, header or status', async () => {
    const body = await replay(async (response) => {
      const text = await response.text();
      return new Response(text === '' ? null : text.replace('"relation": "edit"', '"relation": "edit" '), response);
    });
    expect(new Set(unexplained(body).map(({ what }) => what))).toEqual(new Set(['body']));
    expect(unexplained(body).length).toBeGreaterThan(30);
    const header = await replay((response) => {
      response.headers.delete('vary');
      return response;
    });
    expect(new Set(unexplained(header).map(({ what }) => what))).toEqual(new Set(['header vary']));
  });
});
