import { parseArgs } from 'node:util';
import { simulate } from './object-log/simulate.ts';

/**
 * The simulation of the log on object storage over many seeds: `node test/simulation/object-log-long.ts [--seeds 100000] [--from 1]`.
 * Prints what went wrong in which seed and exits with 1. `--without freshness`, `removal-age`, `nonce` or `refresh` leaves a
 * rule out, to see that the simulation notices.
 */
const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '100000' }, from: { type: 'string', default: '1' }, without: { type: 'string', default: '' } },
});
const from = Number(values.from);
const to = from + Number(values.seeds);
const options = {
  withoutFreshness: values.without === 'freshness', withoutRemovalAge: values.without === 'removal-age', withoutNonce: values.without === 'nonce', withoutRefresh: values.without === 'refresh',
};
const sums: Record<string, number> = {};
let bad = 0;
for (let seed = from; seed < to; seed++) {
  const { problems, counts } = await simulate(seed, options);
  if (problems.length > 0) {
    bad++;
    console.error(problems.slice(0, 5).join('\n'));
  }
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  if ((seed - from + 1) % 1_000 === 0) console.log(`seeds ${from} to ${seed}: ${bad} with problems; ${JSON.stringify(sums)}`);
}
console.log(`${to - from} seeds from ${from}: ${bad} with problems; ${JSON.stringify(sums)}`);
process.exitCode = bad > 0 ? 1 : 0;
