import { freshSeed } from './support/run-size.ts';
import { TEST_FILES } from './vitest.config.ts';
import { runOf } from './vitest.long.config.ts';

/**
 * Says that the seed has been told: the runner loads this file once for each group of files, and all are to have the
 * same.
 */
const TOLD = 'SKUA_TEST_SEED_TOLD';

const seed = (process.env['SKUA_TEST_SEED'] ??= String(freshSeed()));
if (process.env[TOLD] === undefined)
  process.stdout.write(`Seeds from ${seed}: \`SKUA_TEST_SEED=${seed} npm run test:all\` has the same.\n`);
process.env[TOLD] = 'true';

/** `npm run test:all`: every file, with every crash point, and seeds that nobody has tried. */
export default runOf('all', TEST_FILES, { SKUA_TEST_SEED: seed });
