import { parseArgs } from 'node:util';
import { runChain } from '../support/crash-run.ts';

/**
 * The crash simulation without end: `node test/simulation/long.ts [--seconds 600] [--seed 1000] [--losses 12]`. Each
 * seed is a disk that loses its power again and again. Prints the seed of what goes wrong and exits with 1; the same
 * seed shows it again.
 */
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '600' }, seed: { type: 'string', default: '1000' }, losses: { type: 'string', default: '12' } },
});
const deadline = performance.now() + Number(values.seconds) * 1000;
const first = Number(values.seed);
let seed = first;
for (; performance.now() < deadline; seed++) {
  const problems = await runChain(seed, Number(values.losses));
  if (problems.length > 0) {
    console.error(problems.slice(0, 20).join('\n'));
    process.exit(1);
  }
  if (seed % 20 === 0) console.log(`seeds ${first} to ${seed}: nothing lost`);
}
console.log(`${seed - first} seeds from ${first}, ${Number(values.losses)} power losses each: nothing lost`);
