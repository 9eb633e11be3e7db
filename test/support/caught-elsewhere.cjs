// Loaded by the programs that tests start (`caught.ts`): they write down for the test what guards of the product catch
// in them. No module, since a single executable loads none.
const { subscribe } = require('node:diagnostics_channel');
const { appendFileSync } = require('node:fs');

subscribe('skua.caught', ({ error }) =>
  appendFileSync(
    process.env.SKUA_TEST_CAUGHT,
    `${JSON.stringify({ message: error?.message ?? String(error), stack: error?.stack ?? String(error) })}\n`,
  ),
);
