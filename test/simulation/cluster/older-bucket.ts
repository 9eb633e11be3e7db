import { ANY } from '../../../core/streams/api.ts';
import { isSkuaError } from '../../../core/base/errors.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { isEnd, tickOnce } from './background.ts';
import type { Clients } from './clients.ts';
import { checkCopy } from './copies.ts';
import { objectOptions } from './open-member.ts';
import type { SimMember } from './sim-member.ts';
import { FRESH_MS, type World } from './world.ts';

/** A running member looks for what became of the log this often, and a bit. */
const LOOK_MS = 80_000;

/**
 * The bucket is put back to what it was a while before, while all members stand still or are stopped; then others write
 * to it, or nobody. Whoever knows more of the log that is gone than this one has must say so and end, and write
 * nothing.
 */
export async function putBack(world: World, members: readonly SimMember[], clients: Clients): Promise<void> {
  const { random, judge, past } = world;
  if (past === null || past.commits >= judge.truth.last) return;
  const isRunning = random.chance(0.5);
  const knew = new Map(members.map((member) => [member, member.opened?.log.applied ?? 0]));
  for (const member of members) {
    member.mayDiverge = true;
    member.mayBeOfAnother = past.commits === 0;
    if (isRunning) member.run.process.freeze(3 * FRESH_MS);
    else member.stop();
  }
  await world.run(2 * FRESH_MS);
  world.bucket = past.bucket;
  judge.truth.cutTo(past.commits);
  judge.note(`the bucket is put back to commit ${past.commits}`);
  for (const [member, known] of knew) if (known > past.commits) judge.silenced.add(member.address);
  await others(world, clients, [...knew.values()], !isRunning);
  if (!isRunning) for (const member of members) member.restart('clean', true);
  for (let ms = 0; ms < LOOK_MS; ms += 2_000) {
    for (const member of members) void write(member, clients);
    await world.run(2_000);
  }
  for (const [member, known] of knew) {
    if (known > past.commits && !member.hasDiverged)
      judge.problem(
        `${member.run.process.name} knew commit ${known} of a log that was put back to ${past.commits}, and goes on: ${String(member.opened?.log.trouble)}`,
      );
    if (!member.hasDiverged) await checkCopy(world, member);
  }
}

/**
 * Somebody else writes to the bucket: nothing, a little, or just as much as a member knows of the log that is gone.
 * `mayTick`: and has it taken into files. There a running member can't tell its last commit from another one of that
 * number and length, which an opening does: rule 3 of core/cluster/replica/README.md takes that into account.
 */
async function others(world: World, clients: Clients, known: readonly number[], mayTick: boolean): Promise<void> {
  const { random, judge } = world;
  const to = random.pick([
    judge.truth.last,
    judge.truth.last + random.int(1, 5),
    random.pick(known),
    random.pick(known) + random.int(1, 5),
  ]);
  const process = world.newProcess('another');
  const work = (async () => {
    const instance = await openObjectStore(world.objectWorld(process), objectOptions(world));
    while (judge.truth.last < to) await instance.store.append('a', ANY, [clients.newEvent('', 10)]);
    // A scavenge may be under way there.
    if (mayTick && random.chance(0.5))
      await tickOnce(world, process).catch((error: unknown) => isEnd(world, 'a tick', error));
  })();
  await world.settles(work, 'another writer of the older bucket does not come to an end');
}

async function write(member: SimMember, clients: Clients): Promise<void> {
  const { opened } = member;
  if (opened === null || !opened.log.isCaughtUp) return;
  await opened.store.append('a', ANY, [clients.newEvent('')]).catch((error: unknown) => {
    if (!isSkuaError(error)) throw error;
  });
}
