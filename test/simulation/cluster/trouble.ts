import { openFunction } from './background.ts';
import type { FunctionSlot } from './clients.ts';
import type { SimMember } from './sim-member.ts';
import { LONG_MS, type World } from './world.ts';

/** What happens to members, functions, disks and networks, one thing after the other until there is peace. */
export function makeTrouble(world: World, members: readonly SimMember[], functions: readonly FunctionSlot[]): void {
  const { random, timeline } = world;
  timeline.in(random.int(500, 8_000), () => {
    if (world.isPeace) return;
    happen(world, random.pick(members), members, functions);
    makeTrouble(world, members, functions);
  });
}

function happen(
  world: World,
  member: SimMember,
  members: readonly SimMember[],
  functions: readonly FunctionSlot[],
): void {
  const { random, timeline, judge } = world;
  const forMs = random.chance(0.7) ? random.int(500, 8_000) : random.int(8_000, LONG_MS);
  switch (random.int(0, 15)) {
    case 0:
    case 1:
      member.kill();
      break;
    case 2:
      member.loseMains();
      break;
    case 3:
    case 4:
      member.loseMainsSoon();
      break;
    case 5:
    case 6:
    case 7:
      member.freeze();
      break;
    case 8: {
      judge.count('cuts');
      const { name } = member.run.process;
      judge.note(`${name} does not reach the bucket for ${forMs} ms`);
      world.cut.add(name);
      timeline.in(forMs, () => world.cut.delete(name));
      break;
    }
    case 9:
    case 10: {
      const other = random.pick(members);
      if (other === member) return;
      const pair = [member.address, other.address].sort().join(' ');
      judge.note(`${pair} do not reach each other for ${forMs} ms`);
      world.apart.add(pair);
      timeline.in(forMs, () => world.apart.delete(pair));
      break;
    }
    case 11: {
      judge.count('fullDisks');
      judge.note(`the disk of ${member.address} is full for ${forMs} ms`);
      const { storage } = member;
      storage.setCapacity(1);
      timeline.in(forMs, () => storage.setCapacity(Number.MAX_SAFE_INTEGER));
      break;
    }
    case 12:
      judge.count('failedSyncs');
      judge.note(`a sync of ${member.address} will fail`);
      member.health.failingSyncs = 1;
      break;
    case 13:
      member.health.slow = random.pick([0, 0.05, 0.5]);
      break;
    case 14:
      [() => void member.restore(), () => member.empty(), () => {}][random.int(0, 2)]!();
      break;
    default: {
      if (functions.length === 0) return;
      const slot = random.pick(functions);
      if (random.chance(0.6)) slot.process.freeze(forMs);
      else {
        slot.process.isDead = true;
        slot.process = world.newProcess('function');
        openFunction(world, slot);
      }
    }
  }
}

/** Everybody can do everything again. What hangs in the network still arrives. */
export function makePeace(world: World, members: readonly SimMember[], functions: readonly FunctionSlot[]): void {
  world.judge.note('peace');
  world.isPeace = true;
  world.network.faults = 0;
  world.cut.clear();
  world.apart.clear();
  for (const member of members) {
    member.run.process.thaw();
    member.health.slow = 0;
    member.health.failingSyncs = 0;
    member.storage.setCapacity(Number.MAX_SAFE_INTEGER);
    member.storage.crashAt(0);
  }
  for (const { process } of functions) process.thaw();
}
