import { freshSeed } from './support/run-size.ts';
import { TEST_FILES } from './vitest.config.ts';
import { runOf } from './vitest.long.config.ts';

const seed = process.env['SKUA_TEST_SEED'] ?? String(freshSeed());
process.stdout.write(`Seeds from ${seed}: \`SKUA_TEST_SEED=${seed} npm run test:all\` has the same.\n`);

/** `npm run test:all`: every file, with every crash point, and seeds that nobody has tried. */
export default runOf('all', TEST_FILES, { SKUA_TEST_SEED: seed });
