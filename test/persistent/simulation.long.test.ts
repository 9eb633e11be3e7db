import { test } from 'vitest';
import { simulate } from './simulation.ts';

/** Seeds from `SKUA_TEST_SEED`, as many as `SKUA_TEST_SEEDS`. */
const from = Number(process.env['SKUA_TEST_SEED'] ?? 1_000);
const count = Number(process.env['SKUA_TEST_SEEDS'] ?? 4_000);

test(`the rules of persistent subscriptions hold for ${count} seeds from ${from}`, { timeout: 3_600_000 }, async () => {
  for (let seed = from; seed < from + count; seed++) await simulate(seed).catch((error: unknown) => { throw new Error(`seed ${seed}: ${String(error)}`, { cause: error }); });
});
