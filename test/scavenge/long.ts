import { parseArgs } from 'node:util';
import { newTally, playHistory } from './random-run.ts';

/**
 * Random histories with scavenges without end: `node test/scavenge/long.ts [--seconds 600] [--seed 1000] [--rounds 4]`.
 * Prints the seed of what goes wrong and exits with 1; the same seed shows it again.
 */
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '600' }, seed: { type: 'string', default: '1000' }, rounds: { type: 'string', default: '4' } },
});
const deadline = performance.now() + Number(values.seconds) * 1000;
const first = Number(values.seed);
const tally = newTally();
let seed = first;
for (; performance.now() < deadline; seed++) {
  const problems = await playHistory({ seed, rounds: Number(values.rounds) }, tally);
  if (problems.length > 0) {
    console.error(problems.slice(0, 20).map((problem) => problem.slice(0, 2_000)).join('\n'));
    process.exit(1);
  }
  if (seed % 20 === 0) console.log(`seeds ${first} to ${seed}: ${JSON.stringify(tally)}`);
}
console.log(`${seed - first} seeds from ${first}: ${JSON.stringify(tally)}`);
