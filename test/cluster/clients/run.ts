// Applications over an official client, at members of a cluster that are killed and resign: `node
// test/cluster/clients/run.ts --library eventstore --tls --seconds 30`.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Outcome, Work } from './applications.ts';
import { ClientCluster } from './members.ts';
import type { NodePreference } from './members.ts';

const APPLICATIONS = fileURLToPath(new URL('applications.ts', import.meta.url));
const PREFERENCES: readonly NodePreference[] = ['leader', 'follower', 'random', 'readOnlyReplica'];
/** Between one thing that happens to the members and the next, in milliseconds. */
const BETWEEN_MS = 1_500;

const { values } = parseArgs({
  options: {
    library: { type: 'string', default: 'eventstore' },
    tls: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '20' },
    json: { type: 'string' },
  },
});
const say = (line: string): void => {
  process.stderr.write(`${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
};

/** What a run has found. */
export interface RunReport {
  readonly problems: readonly string[];
  readonly faults: Readonly<Record<string, number>>;
  readonly acknowledged: number;
  readonly given: number;
  readonly subscriptions: number;
  readonly ownReads: number;
  readonly lateOwnReads: number;
  /** How often applications were told what. */
  readonly told: Readonly<Record<string, number>>;
}

/** Kills the leader, has it resign, stops it, and kills a follower, in turn; it ends when all is well again. */
async function suffer(cluster: ClientCluster, untilMs: number): Promise<Record<string, number>> {
  const done: Record<string, number> = {};
  const killed = async (member: ClientCluster['members'][number]): Promise<void> => {
    await member.kill();
    await sleep(BETWEEN_MS);
    await member.start();
  };
  const happenings: Record<string, () => Promise<void>> = {
    'the leader is killed': async () => killed(await cluster.leader()),
    'the leader resigns': async () => cluster.resign(await cluster.leader()),
    'a follower is killed': async () => {
      const leader = await cluster.leader();
      await killed(cluster.members.slice(0, 3).find((member) => member !== leader)!);
    },
    'the leader is stopped': async () => {
      const leader = await cluster.leader();
      await leader.stop();
      await leader.start();
    },
  };
  while (Date.now() < untilMs) {
    for (const [name, happen] of Object.entries(happenings)) {
      await sleep(BETWEEN_MS);
      say(name);
      await happen();
      await cluster.settled();
      done[name] = (done[name] ?? 0) + 1;
    }
  }
  return done;
}

interface Applications {
  readonly begun: Promise<void>;
  readonly outcome: Promise<Outcome>;
  readonly process: ChildProcess;
}

function start(work: Work): Applications {
  const child = fork(APPLICATIONS, [JSON.stringify(work)], { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
  let said = '';
  child.stderr!.on('data', (text: Buffer) => {
    said = (said + text.toString()).slice(-4_000);
  });
  const begun = Promise.withResolvers<void>();
  const outcome = Promise.withResolvers<Outcome>();
  child.on('message', (message) => (message === 'begun' ? begun.resolve() : outcome.resolve(message as Outcome)));
  const fail = (error: Error): void => {
    begun.reject(error);
    outcome.reject(error);
  };
  // Such as where it can't be told anything any more.
  child.once('error', fail);
  child.once('exit', (code, signal) =>
    fail(new Error(`The applications with ${work.name} ended with ${code ?? signal}: ${said}`)),
  );
  outcome.promise.catch(() => {});
  return { begun: begun.promise, outcome: outcome.promise, process: child };
}

async function run(): Promise<RunReport> {
  const library = values.library as Work['library'];
  const cluster = await ClientCluster.start(values.tls);
  say('all members are there');
  const all = PREFERENCES.map((preference) =>
    start({
      library,
      name: preference,
      isSecure: values.tls,
      connectionString: cluster.connectionString(
        library === 'kurrent' ? 'kurrentdb' : 'esdb',
        preference,
        preference === 'random',
      ),
    }),
  );
  try {
    await Promise.all(all.map(({ begun }) => begun));
    const faults = await suffer(cluster, Date.now() + Number(values.seconds) * 1_000);
    say('quiet');
    for (const { process: child } of all) child.send('over');
    const outcomes = await Promise.all(all.map(({ outcome }) => outcome));
    const sum = (of: (outcome: Outcome) => number): number =>
      outcomes.reduce((total, outcome) => total + of(outcome), 0);
    const told: Record<string, number> = {};
    for (const outcome of outcomes)
      for (const [what, times] of Object.entries(outcome.told)) told[what] = (told[what] ?? 0) + times;
    return {
      problems: [...outcomes.flatMap(({ problems }) => problems), ...cluster.problems],
      faults,
      acknowledged: sum(({ acknowledged }) => acknowledged),
      given: sum(({ given }) => given),
      subscriptions: sum(({ subscriptions }) => subscriptions),
      ownReads: sum(({ ownReads }) => ownReads),
      lateOwnReads: sum(({ lateOwnReads }) => lateOwnReads),
      told,
    };
  } finally {
    for (const { process: child } of all) child.kill('SIGKILL');
    await cluster.stop();
  }
}

const report = await run();
const text = JSON.stringify(report, null, 2);
if (values.json !== undefined) writeFileSync(values.json, `${text}\n`);
process.stdout.write(`${text}\n`);
process.exit(report.problems.length === 0 ? 0 : 1);
