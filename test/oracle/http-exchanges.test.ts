import { describe, expect, it } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import { createApp } from '../../handlers/app.ts';
import { loadExchanges, RECORDED_ENDPOINT, replayExchanges } from '../support/exchanges.ts';
import type { Replay } from '../support/exchanges.ts';
import { fixturePath, installFiles, oracleTimeMs, unpackSet } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';

/**
 * The recorded HTTP exchanges under `/streams` and `/admin/scavenge` that need no refusal, against our handlers over our store on the same
 * directory. Every deviation is listed here with its reason; one that is not listed fails the test, and so does one
 * that is listed and no longer occurs.
 */
async function replay(): Promise<Replay> {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet('orders-1-before'));
  const clock = new ManualClock(oracleTimeMs('orders-1-before'), 'microtask');
  const opened = await openTestStore({ storage, clock, scavenge: { nodeEndpoint: RECORDED_ENDPOINT } });
  const handler = createApp({ store: opened.store, scavenger: opened.scavenger, clock, ids: new SeededIds(7), log: silentLog, meter: silentMeter, security: null, node: null });
  const result = await replayExchanges(handler, loadExchanges(fixturePath('http-exchanges.json')), () => opened.scavenger.idle());
  await opened.close();
  return result;
}

/** `index what`, by reason. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'Bad input that the reference answers with 500 is 400.': ['57 status'],
  'ES-ResolveLinkTos: False turns resolution off, as documented.': ['22 body'],
  'Error bodies are problem documents; the recorded text, where there is one, is the detail.': [
    '16 header content-type', '16 body', '32 header content-type', '32 body', '33 header content-type', '33 body', '34 header content-type', '34 body', '35 header content-type', '35 body', '56 header content-type', '56 body', '57 header content-type', '57 body', '58 header content-type', '58 body', '61 header content-type', '61 body', '71 header content-type', '71 body', '76 header content-type', '76 body', '77 header content-type', '77 body', '79 header content-type', '79 body',
  ],
  'A scavenge that is already running is 409.': ['79 status'],
  'Our memtable is written before the index is scavenged, so there are other tables; and the last chunk holds no records of that node\'s start.': ['81 body', '82 body'],
  'The recorded node had written records of its own start behind the directory\'s last one.': ['39 header etag', '39 body', '40 header etag', '40 body', '43 header etag'],
};

describe('http-exchanges.json', () => {
  it('is answered as recorded, but for the listed deviations', async () => {
    const { deviations, skipped, compared } = await replay();
    console.log(`${compared} exchanges compared, ${skipped.length} left to other parts, ${deviations.length} deviations:`);
    const found: Record<string, string[]> = {};
    for (const { index, what, reason, expected, actual } of deviations) {
      (found[reason ?? 'NOBODY DECIDED THIS'] ??= []).push(`${index} ${what}`);
      if (reason === null) console.log(`exchange ${index}, ${what}\n  recorded ${String(expected)}\n  ours     ${String(actual)}`);
    }
    for (const [reason, list] of Object.entries(found)) console.log(`  ${reason}\n    ${list.join(', ')}`);
    expect(found).toEqual(EXPECTED);
    expect(compared).toBeGreaterThan(50);
  });
});
