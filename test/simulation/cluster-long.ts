import { parseArgs } from 'node:util';
import { leaveOut } from './cluster/faults.ts';

/**
 * The simulation of members of a cluster over many seeds: `node test/simulation/cluster-long.ts [--seeds 100000] [--from 1] [--history]`.
 * Prints what went wrong in which seed, with `--history` all that happened in it, and exits with 1. `--without RULE` leaves a rule out
 * (`cluster/faults.ts`), to see that the simulation notices; then the first seed that does ends it.
 */
const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '100000' }, from: { type: 'string', default: '1' }, without: { type: 'string', default: '' }, history: { type: 'boolean', default: false } },
});
if (values.without !== '') leaveOut(values.without);
const { simulate } = await import('./cluster/simulate.ts');
const from = Number(values.from);
const to = from + Number(values.seeds);
const sums: Record<string, number> = {};
let bad = 0;
for (let seed = from; seed < to && (values.without === '' || bad === 0); seed++) {
  const { problems, counts, history } = await simulate(seed);
  if (problems.length > 0) {
    bad++;
    if (values.history) console.error(history.join('\n'));
    console.error(problems.slice(0, values.history ? 20 : 2).join('\n'));
  }
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  if ((seed - from + 1) % 1_000 === 0) console.log(`seeds ${from} to ${seed}: ${bad} with problems; ${JSON.stringify(sums)}`);
}
console.log(`${to - from} seeds from ${from}: ${bad} with problems; ${JSON.stringify(sums)}`);
process.exitCode = bad > 0 ? 1 : 0;
