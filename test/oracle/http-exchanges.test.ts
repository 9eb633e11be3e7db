import { describe, expect, it } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import { createApp } from '../../handlers/app.ts';
import { loadExchanges, replayExchanges } from '../support/exchanges.ts';
import type { Replay } from '../support/exchanges.ts';
import { fixturePath, installFiles, oracleTimeMs, unpackSet } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';

/**
 * The recorded HTTP exchanges under `/streams` that need no refusal, against our handlers over our store on the same
 * directory. Every deviation is listed here with its reason; one that is not listed fails the test, and so does one
 * that is listed and no longer occurs.
 */
async function replay(): Promise<Replay> {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet('orders-1-before'));
  const clock = new ManualClock(oracleTimeMs('orders-1-before'), 'microtask');
  const opened = await openTestStore({ storage, clock });
  const handler = createApp({ store: opened.store, clock, ids: new SeededIds(7), log: silentLog, meter: silentMeter });
  const result = await replayExchanges(handler, loadExchanges(fixturePath('http-exchanges.json')));
  await opened.close();
  return result;
}

/** `index what`, by reason. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {};

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
