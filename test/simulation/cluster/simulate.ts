import { ANY } from '../../../core/streams/api.ts';
import { follow, lead, openFunction, runTicks, scavenge } from './background.ts';
import { Clients, type FunctionSlot } from './clients.ts';
import { checkCopy, checkDirectory } from './copies.ts';
import { putBack } from './older-bucket.ts';
import { checkAll, checkStream } from './reads.ts';
import { SimMember } from './sim-member.ts';
import { Subscriber } from './subscribers.ts';
import { makePeace, makeTrouble } from './trouble.ts';
import { KEPT } from './truth.ts';
import { type ClientKind, LONG_MS, World } from './world.ts';

/**
 * Members of a cluster, each with a disk of its own, over one bucket, with functions and ticks beside them: two minutes
 * of everything that can go wrong with processes, disks and networks, then peace, in which all of them must have one
 * log. Removed objects are kept for 25 seconds here, and replies count for 10. Time is simulated and chance is seeded.
 */
export interface SimResult {
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** The log that came of it, in short. */
  readonly hash: number;
  readonly history: readonly string[];
}

const CHAOS_MS = 90_000;
/** What hangs in the network has arrived by then. */
const PEACE_MS = LONG_MS + 15_000;
const CHECK_EVERY_MS = 15_000;

export async function simulate(seed: number, clientKind: ClientKind = 'plain'): Promise<SimResult> {
  const world = new World(seed, clientKind);
  await run(world);
  const { judge } = world;
  let hash = 17;
  for (const { bytes } of judge.truth.records)
    for (let i = 0; i < bytes.length; i += 7) hash = (Math.imul(hash, 31) + bytes.charCodeAt(i)) | 0;
  return {
    problems: judge.problems.map((problem) => `seed ${seed}, ${problem}`),
    counts: judge.counts,
    hash,
    history: judge.history,
  };
}

async function run(world: World): Promise<void> {
  const { random, timeline, judge } = world;
  judge.truth.remembersAll = random.chance(0.6);
  const members = Array.from({ length: random.pick([2, 3, 3, 4]) }, (_, i) => new SimMember(world, `m${i + 1}`));
  const functions: FunctionSlot[] = Array.from({ length: random.int(0, 2) }, () => ({
    process: world.newProcess('function'),
    instance: null,
  }));
  for (const slot of functions) openFunction(world, slot);
  const clients = new Clients(world, members, functions);
  for (let i = random.int(2, 6); i > 0; i--) void clients.run();
  const subscribers = members.map((member) => new Subscriber(world, members, member));
  for (const subscriber of subscribers) void subscriber.run();
  for (let i = random.int(1, 2); i > 0; i--) void runTicks(world);
  for (const member of members) void follow(world, members, member);
  void lead(world, members);
  void scavenge(world, members);
  makeTrouble(world, members, functions);
  timeline.in(random.int(10_000, CHAOS_MS), () => {
    world.past = { bucket: world.bucket.fork(), commits: judge.truth.last };
  });
  for (let at = 0; at < CHAOS_MS; at += CHECK_EVERY_MS) {
    await timeline.runTo(at + CHECK_EVERY_MS);
    for (const member of members) await checkCopy(world, member);
    if (judge.problems.length > 0) return;
  }
  makePeace(world, members, functions);
  await timeline.runTo(CHAOS_MS + PEACE_MS);
  if (judge.problems.length > 0) return;
  // What comes next can be written a second time, alike but for its ids.
  if (random.chance(0.4)) world.past = { bucket: world.bucket.fork(), commits: judge.truth.last };
  await settle(world, members, clients);
  for (const subscriber of subscribers) subscriber.check();
  if (judge.problems.length > 0) return;
  if (random.chance(0.3)) {
    for (const { process } of functions) process.isDead = true;
    await putBack(world, members, clients);
    if (judge.problems.length > 0) return;
  }
  await world.settles(
    Promise.all(members.filter(({ hasDiverged }) => !hasDiverged).map((member) => checkDirectory(world, member))),
    "a member can't be closed in peace",
  );
}

/**
 * In peace every member takes a write, and shows the whole log, its own write at once and all others' after a while.
 */
export async function settle(world: World, members: readonly SimMember[], clients: Clients): Promise<void> {
  const { judge } = world;
  await world.settles(
    Promise.all(
      members.map(async (member) => {
        if (member.hasDiverged) return;
        const { opened, run } = member;
        if (opened === null || !opened.log.isCaughtUp) {
          judge.problem(
            `${run.process.name} does not serve in peace: ${String(opened?.log.trouble ?? 'it is not open')}`,
          );
          return;
        }
        const event = clients.newEvent('', 10);
        const { lastEventNumber } = await opened.store.append('a', ANY, [event]);
        judge.acknowledged('a', event.id, lastEventNumber);
        member.seen.set('a', Math.max(lastEventNumber, member.seen.get('a') ?? -1));
        await checkStream(world, member, 'a');
      }),
    ),
    'a write does not come to an end in peace',
  );
  await world.run(5_000);
  await world.settles(
    Promise.all(
      members.map(async (member) => {
        const { opened, run } = member;
        if (member.hasDiverged || opened === null) return;
        if (opened.store.end < judge.truth.end)
          judge.problem(
            `${run.process.name} ends at ${opened.store.end} after quiet time, and the log at ${judge.truth.end}`,
          );
        for (const stream of KEPT) await checkStream(world, member, stream);
        if (!(await checkAll(world, member))) judge.problem(`${run.process.name} can't be read in peace`);
        await checkCopy(world, member);
      }),
    ),
    'a read does not come to an end in peace',
  );
}
