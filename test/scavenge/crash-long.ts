import { parseArgs } from 'node:util';
import { type Crash, crashAndGoOn, prepare } from './crash-kit.ts';

/**
 * Power losses in a scavenge: every storage operation and every commit, in every mode, with every number of lost commits:
 * `node test/scavenge/crash-long.ts [--seed 1] [--seeds 3]`. Exits with 1 when something goes wrong.
 */
const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' }, seeds: { type: 'string', default: '3' } } });
const MODES = ['drop', 'keep', 'partial', 'clean'] as const;
const first = Number(values.seed);
let tried = 0;

for (let seed = first; seed < first + Number(values.seeds); seed++) {
  // Neighbours are merged while they are executed, or after that.
  const prepared = await prepare(seed, { mergesWhileExecuting: seed % 3 !== 0 });
  const check = async (crash: Crash): Promise<void> => {
    tried++;
    const wrong = await crashAndGoOn(prepared, crash);
    if (wrong.length === 0) return;
    console.error(`directory of seed ${seed}`, wrong.slice(0, 20).map((problem) => problem.slice(0, 2_000)).join('\n'));
    process.exit(1);
  };
  for (const mode of MODES) {
    for (let operation = 1; operation <= prepared.operations; operation++) for (const commitsLost of [0, 1, 2, 4, 8, 16]) await check({ operation, mode, commitsLost, seed: operation });
    for (let commit = 1; commit <= prepared.commits; commit++) for (let commitsLost = 0; commitsLost <= commit; commitsLost++) await check({ commit, mode, commitsLost, seed: commit });
    console.log(`directory of seed ${seed}, ${mode}: ${tried} power losses so far, all is well`);
  }
}
