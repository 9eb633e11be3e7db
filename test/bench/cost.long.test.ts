import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { measureCluster } from './cost/cluster.ts';
import { COST_PAGE } from './cost/main.ts';
import { measure } from './cost/measure.ts';
import { ASSUMPTIONS, monthOf } from './cost/model.ts';
import { PRICES } from './cost/prices.ts';

test('counted requests are those of the page, and of the promise', async () => {
  const measured = await measure();
  expect(measured.append).toMatchObject({ puts: 1, gets: 0 });
  expect(measured.appendUnknown.gets).toBeLessThanOrEqual(3);
  expect(measured.read).toMatchObject({ puts: 0, gets: 1 });
  expect(measured.webhook.puts).toBe(1);
  const page = readFileSync(COST_PAGE, 'utf8');
  expect(page).toContain('| append of one event, stream known to the instance | 1 | 0 |');
  expect(page).toContain(`| webhook: note and event | ${measured.webhook.puts} |`);
  expect(page).toContain(PRICES.asOf);
});

test('those of a cluster too: an append is one conditional write, and followers ask for nothing', async () => {
  const { append, idleHour } = await measureCluster();
  expect(append.puts).toBe(1);
  expect(append.gets).toBeLessThan(0.1);
  // The leader looks every two seconds.
  expect(idleHour.gets).toBeLessThan(1.2 * 1_800);
  expect(readFileSync(COST_PAGE, 'utf8')).toContain('| append of one event, until all members have it | 1 |');
});

test('a month is the sum of its parts', () => {
  const one = { puts: 1, gets: 0, bytesIn: 1_000, bytesOut: 0 };
  const none = { puts: 0, gets: 0, bytesIn: 0, bytesOut: 0 };
  const measured = {
    eventBytes: 1_000,
    recordBytes: 974,
    append: one,
    appendUnknown: one,
    read: none,
    webhook: one,
    idleTick: none,
    busyTick: none,
    tickCommits: 1,
    scavengedChunk: none,
    chunkBytes: 1,
  };
  const assumed = { ...ASSUMPTIONS, readsPerEvent: 0, functionMs: 0, tickMs: 0, monthsKept: 1 };
  const month = monthOf(1, 1, measured, assumed, {
    ...PRICES,
    putPer1000: 1,
    storedGbMonth: 10,
    invocationsPerMillion: 0,
  });
  expect(month.puts).toBe(2_592_000);
  expect(month.dollars.requests).toBe(2_592);
  expect(month.storedGb).toBeCloseTo(2.592, 6);
  expect(month.dollars.total).toBeCloseTo(2_592 + 25.92, 6);
  // Twice what one log takes has to be divided among two.
  expect(monthOf(80, 1, measured, { ...assumed, commitMs: 25 }, PRICES).logs).toBe(2);
});
