import { parseArgs } from 'node:util';

const USAGE = `A simulation over many seeds, or one seed of all simulations. What went wrong in which seed is printed, and the exit code is 1 then.

  npm run simulate -- NAME [options]
  npm run simulate -- --seed N

  crash            a store whose disk loses its power again and again
  scavenge         random histories with scavenges
  object-log       writers, readers and ticks on one bucket
  auto-scavenge    auto-scavenge over many clusters
  cluster          members of a cluster over one bucket
  cluster-conditions  the same, and clients append on conditions
  membership       elections alone, over a log that holds nothing but epochs
  conditions       appends on conditions at a store over a directory
  object-conditions  the same by several writers of one bucket
  persistent       a group of a persistent subscription, its consumers and its node
  scavenge-crash   power losses in a scavenge: every operation and commit, in every mode, with every number of lost commits (some minutes a seed)

  --seed N         this one alone, and what came of it; without a NAME in each simulation
  --seeds N        how many (default 100000)
  --from N         the first one (default 1)
  --history        what came of each seed, and all that happened in it where that is kept (auto-scavenge, cluster)
  --without RULE   leaves a rule out, to see that the simulation notices, and ends with the first seed that does
`;
/** Problems of a seed that are printed; one is often followed by many. */
const PROBLEMS_MAX = 10;
const PROBLEM_LENGTH_MAX = 2_000;
const TELL_EVERY_MS = 10_000;

/** Times of trouble, each with a calm one behind it, that a membership goes through. */
const MEMBERSHIP_ROUNDS = 4;

interface Outcome {
  readonly problems: readonly string[];
  readonly counts?: Readonly<Record<string, number>>;
  readonly history?: readonly string[];
  /** What came of the seed, in short: the same each time that it is played. */
  readonly hash?: number;
}

const {
  values: { seed: one, seeds, from, history, without },
  positionals: [name = ''],
} = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '100000' },
    from: { type: 'string', default: '1' },
    history: { type: 'boolean', default: false },
    without: { type: 'string', default: '' },
  },
});
const first = Number(one ?? from);
const count = one === undefined ? Number(seeds) : 1;
const isTold = history || one !== undefined;
/** Rules that simulations of one process can leave out. */
const RULES: Readonly<Record<string, readonly string[]>> = {
  'object-log': ['freshness', 'removal-age', 'nonce', 'refresh'],
  'auto-scavenge': ['orders', 'lease', 'refusal'],
};
/** Simulations that read the sources without a rule. */
const EDITED = ['cluster', 'cluster-conditions', 'conditions', 'object-conditions'];
if (without !== '' && !EDITED.includes(name) && RULES[name]?.includes(without) !== true)
  throw new Error(`${name} has no rule ${without}.`);
/** As the simulations name it: `withoutRemovalAge`. */
const options =
  without === '' ? {} : { [`without-${without}`.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]: true };

/** What simulates a seed. A rule is left out before anything is loaded that has it. */
const SIMULATIONS: Readonly<Record<string, () => Promise<(seed: number) => Promise<Outcome>>>> = {
  crash: async () => {
    const { runChain } = await import('../support/crash-run.ts');
    return async (seed) => ({ problems: await runChain(seed, 12) });
  },
  scavenge: async () => {
    const { newTally, playHistory } = await import('../scavenge/random-run.ts');
    return async (seed) => {
      const tally = newTally();
      return { problems: await playHistory({ seed, rounds: 4 }, tally), counts: { ...tally } };
    };
  },
  'object-log': async () => {
    const { simulate } = await import('./shared-log/simulate.ts');
    return (seed) => simulate(seed, options);
  },
  'auto-scavenge': async () => {
    const { simulate } = await import('./auto-scavenge/simulate.ts');
    return async (seed) => {
      const { problems, counts, trace, hash } = await simulate(seed, { ...options, keepTrace: isTold });
      return { problems, counts, history: trace, hash };
    };
  },
  cluster: async () => {
    if (without !== '') (await import('./cluster/faults.ts')).leaveOut(without);
    const { simulate } = await import('./cluster/simulate.ts');
    return (seed) => simulate(seed);
  },
  'cluster-conditions': async () => {
    await leaveOutOfConditions();
    const { simulate } = await import('./cluster/simulate.ts');
    return (seed) => simulate(seed, 'deciding');
  },
  membership: async () => {
    const { simulate } = await import('../cluster/membership/simulate.ts');
    return (seed) => outcomeOf(seed, async () => ({ ...(await simulate(seed, MEMBERSHIP_ROUNDS)) }));
  },
  conditions: async () => {
    await leaveOutOfConditions();
    return (await import('../streams/conditions-run.ts')).simulateConditions;
  },
  'object-conditions': async () => {
    await leaveOutOfConditions();
    return (await import('../shared-log/conditions-run.ts')).simulateObjectConditions;
  },
  persistent: async () => {
    const { simulate } = await import('../persistent/simulation.ts');
    return (seed) => outcomeOf(seed, async () => ({ ...(await simulate(seed)) }));
  },
  // Last, as one seed takes minutes.
  'scavenge-crash': async () => (await import('../scavenge/crash-kit.ts')).allCrashes,
};

async function leaveOutOfConditions(): Promise<void> {
  if (without === '') return;
  const { CONDITION_FAULTS } = await import('../streams/conditions-faults.ts');
  (await import('./cluster/faults.ts')).leaveOut(without, CONDITION_FAULTS);
}

/** Of a simulation that throws what is wrong. */
async function outcomeOf(seed: number, play: () => Promise<Record<string, number>>): Promise<Outcome> {
  try {
    return { problems: [], counts: await play() };
  } catch (error) {
    return { problems: [`seed ${seed}: ${(error as Error).stack ?? String(error)}`] };
  }
}

/** Plays the seeds, and tells how many had problems. */
async function run(simulate: (seed: number) => Promise<Outcome>): Promise<number> {
  const end = first + count;
  const sums: Record<string, number> = {};
  let bad = 0;
  let toldMs = performance.now();
  for (let seed = first; seed < end && (without === '' || bad === 0); seed++) {
    const { problems, counts = {}, history: happened = [], hash } = await simulate(seed);
    // Buffers are freed in tasks of the event loop, which a simulation by itself never comes to.
    await new Promise(setImmediate);
    if (isTold)
      console.log(
        [...happened, `seed ${seed}: ${JSON.stringify({ problems: problems.length, ...counts, hash })}`].join('\n'),
      );
    if (problems.length > 0) bad++;
    for (const problem of problems.slice(0, PROBLEMS_MAX)) console.error(problem.slice(0, PROBLEM_LENGTH_MAX));
    for (const [what, times] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + times;
    if (one !== undefined || (performance.now() - toldMs < TELL_EVERY_MS && seed < end - 1)) continue;
    toldMs = performance.now();
    console.log(`seeds ${first} to ${seed}: ${bad} with problems; ${JSON.stringify(sums)}`);
  }
  return bad;
}

const names =
  name === '' && one !== undefined && without === ''
    ? Object.keys(SIMULATIONS)
    : Object.hasOwn(SIMULATIONS, name)
      ? [name]
      : [];
if (names.length === 0 || !Number.isSafeInteger(first) || !Number.isSafeInteger(count)) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  for (const each of names) {
    if (names.length > 1) console.log(`# ${each}`);
    if ((await run(await SIMULATIONS[each]!())) > 0) process.exitCode = 1;
  }
}
