import { parseArgs } from 'node:util';
import { simulate } from './auto-scavenge/simulate.ts';

/**
 * The simulation of auto-scavenge over many clusters: `node test/simulation/auto-scavenge-long.ts [--seeds 100000] [--from 1]`.
 * Prints what went wrong in which seed and exits with 1; `--trace` with one seed shows what happened in it.
 */
const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '100000' }, from: { type: 'string', default: '1' }, trace: { type: 'boolean', default: false } },
});
const from = Number(values.from);
const to = from + Number(values.seeds);
const sums: Record<string, number> = {};
let bad = 0;
for (let seed = from; seed < to; seed++) {
  const { problems, counts, trace } = await simulate(seed, { keepTrace: values.trace });
  if (values.trace) console.log(trace.join('\n'));
  if (problems.length > 0) {
    bad++;
    console.error(problems.slice(0, 5).join('\n'));
  }
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  if ((seed - from + 1) % 1_000 === 0) console.log(`seeds ${from} to ${seed}: ${bad} with problems; ${JSON.stringify(sums)}`);
}
console.log(`${to - from} seeds from ${from}: ${bad} with problems; ${JSON.stringify(sums)}`);
process.exitCode = bad > 0 ? 1 : 0;
