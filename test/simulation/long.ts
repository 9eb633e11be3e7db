import { parseArgs } from 'node:util';

const USAGE = `A simulation over many seeds. What went wrong in which seed is printed, and the exit code is 1 then.

  node test/simulation/long.ts NAME [options]

  crash            a store whose disk loses its power again and again
  scavenge         random histories with scavenges
  scavenge-crash   power losses in a scavenge: every operation and commit, in every mode, with every number of lost commits (some minutes a seed)
  object-log       writers, readers and ticks on one bucket
  auto-scavenge    auto-scavenge over many clusters
  cluster          members of a cluster over one bucket

  --seeds N        how many (default 100000)
  --from N         the first one (default 1)
  --history        all that happened in each seed, of auto-scavenge and cluster
  --without RULE   leaves a rule out, to see that the simulation notices, and ends with the first seed that does
`;
/** Problems of a seed that are printed; one is often followed by many. */
const PROBLEMS_MAX = 10;
const PROBLEM_LENGTH_MAX = 2_000;
const TELL_EVERY_MS = 10_000;

interface Outcome {
  readonly problems: readonly string[];
  readonly counts?: Readonly<Record<string, number>>;
  readonly history?: readonly string[];
}

const { values: { seeds, from, history: isTold, without }, positionals: [name = ''] } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: 'string', default: '100000' }, from: { type: 'string', default: '1' }, history: { type: 'boolean', default: false }, without: { type: 'string', default: '' } },
});
/** Rules that simulations of one process can leave out. */
const RULES: Readonly<Record<string, readonly string[]>> = { 'object-log': ['freshness', 'removal-age', 'nonce', 'refresh'], 'auto-scavenge': ['orders', 'lease', 'refusal'] };
if (without !== '' && name !== 'cluster' && RULES[name]?.includes(without) !== true) throw new Error(`${name} has no rule ${without}.`);
/** As the simulations name it: `withoutRemovalAge`. */
const options = without === '' ? {} : { [`without-${without}`.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]: true };

/** What simulates a seed. A rule is left out before anything is loaded that has it. */
const SIMULATIONS: Readonly<Record<string, () => Promise<(seed: number) => Promise<Outcome>>>> = {
  'crash': async () => {
    const { runChain } = await import('../support/crash-run.ts');
    return async (seed) => ({ problems: await runChain(seed, 12) });
  },
  'scavenge': async () => {
    const { newTally, playHistory } = await import('../scavenge/random-run.ts');
    return async (seed) => {
      const tally = newTally();
      return { problems: await playHistory({ seed, rounds: 4 }, tally), counts: { ...tally } };
    };
  },
  'scavenge-crash': async () => (await import('../scavenge/crash-kit.ts')).allCrashes,
  'object-log': async () => {
    const { simulate } = await import('./object-log/simulate.ts');
    return (seed) => simulate(seed, options);
  },
  'auto-scavenge': async () => {
    const { simulate } = await import('./auto-scavenge/simulate.ts');
    return async (seed) => {
      const { problems, counts, trace } = await simulate(seed, { ...options, keepTrace: isTold });
      return { problems, counts, history: trace };
    };
  },
  'cluster': async () => {
    if (without !== '') (await import('./cluster/faults.ts')).leaveOut(without);
    return (await import('./cluster/simulate.ts')).simulate;
  },
};

async function run(simulate: (seed: number) => Promise<Outcome>): Promise<number> {
  const [first, end] = [Number(from), Number(from) + Number(seeds)];
  const sums: Record<string, number> = {};
  let bad = 0;
  let toldMs = performance.now();
  for (let seed = first; seed < end && (without === '' || bad === 0); seed++) {
    const { problems, counts = {}, history = [] } = await simulate(seed);
    if (isTold) console.log(history.join('\n'));
    if (problems.length > 0) bad++;
    for (const problem of problems.slice(0, PROBLEMS_MAX)) console.error(problem.slice(0, PROBLEM_LENGTH_MAX));
    for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count;
    if (performance.now() - toldMs < TELL_EVERY_MS && seed < end - 1) continue;
    toldMs = performance.now();
    console.log(`seeds ${first} to ${seed}: ${bad} with problems; ${JSON.stringify(sums)}`);
  }
  return bad > 0 ? 1 : 0;
}

const load = SIMULATIONS[name];
if (load === undefined) console.error(USAGE);
process.exitCode = load === undefined ? 2 : await run(await load());
