import { isSkuaError } from '../../../core/base/errors.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { tick } from '../../../core/shared-log/tick/tick.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import type { FunctionSlot } from './clients.ts';
import { PASSING } from './codes.ts';
import { objectOptions } from './open-member.ts';
import type { SimProcess } from '../shared-log/sim-process.ts';
import type { SimMember } from './sim-member.ts';
import { REMOVE_AFTER_MS, type World } from './world.ts';

/** What a tick, a scavenge, or an epoch may end with beside what writes may. */
const ENDS = [
  ...PASSING,
  'copy_behind',
  'outcome_unknown',
  'commit_outcome_unknown',
  'io_error',
  'epoch_lost',
  'aborted',
  'scavenge_in_progress',
  'scavenge_not_found',
  'file_not_found',
  'wrong_expected_version',
  'manifest_invalid',
];

export function isEnd(world: World, what: string, error: unknown): void {
  if (!isSkuaError(error) || !ENDS.includes(error.code))
    world.judge.problem(`${what}: ${String((error as Error).stack)}`);
}

/** A tick after the other, in a process that may stand still or die in the middle of one. */
export async function runTicks(world: World): Promise<void> {
  const { random, timeline } = world;
  while (!world.isPeace) {
    await world.wait(random.int(4_000, 25_000));
    const process = world.newProcess('tick');
    if (random.chance(0.1)) process.freeze(random.int(1_000, 2 * REMOVE_AFTER_MS));
    if (random.chance(0.1))
      timeline.in(random.int(1, 2_000), () => process.freeze(random.int(1_000, 2 * REMOVE_AFTER_MS)));
    if (random.chance(0.1))
      timeline.in(random.int(1, 2_000), () => {
        process.isDead = true;
      });
    const work = tickOnce(world, process).catch((error: unknown) => isEnd(world, 'a tick', error));
    await Promise.race([work, world.wait(90_000)]);
  }
}

/**
 * Takes the tail into files, scavenges these to the points that members have written, and removes what nobody reads any
 * more.
 */
export async function tickOnce(world: World, process: SimProcess): Promise<void> {
  const { random, judge } = world;
  const objects = world.objectWorld(process);
  const { outcome, manifest, scavenge } = await tick({
    world: objects,
    scratch: new MemoryStorage(),
    open: openObjectStore,
    scavengeStates: new MemoryScavengeStates(),
    deadlineMs: process.monotonicMs() + 60_000,
    options: objectOptions(world),
    settings: {
      compactCommitsMin: random.pick([1, 1, 5, 20]),
      compactAfterMs: 20_000,
      scavenge: { repairHistory: false },
    },
  });
  if (outcome !== 'published') return;
  judge.count('compactions');
  if (scavenge !== null) judge.count('sharedScavenges');
  judge.note(
    `${process.name} has written manifest ${manifest}${scavenge === null ? '' : `; scavenge ${scavenge.state} ${scavenge.result ?? ''}`}`,
  );
}

/** Opens an instance over the bucket alone, as a function does. */
export function openFunction(world: World, slot: FunctionSlot): void {
  const { process } = slot;
  slot.instance = null;
  openObjectStore(world.objectWorld(process), objectOptions(world)).then(
    (instance) => {
      if (slot.process === process) slot.instance = instance;
    },
    (error: unknown) => {
      isEnd(world, 'a function', error);
      world.timeline.in(1_000, () => {
        if (slot.process === process) openFunction(world, slot);
      });
    },
  );
}

/**
 * A member follows: it is fed by whoever it takes for the leader, and asks the bucket when that one is silent. What it
 * was sent may come late, and to a later run of it.
 */
export async function follow(world: World, members: readonly SimMember[], member: SimMember): Promise<void> {
  const { random, timeline, judge } = world;
  let silent = 0;
  for (;;) {
    await world.wait(random.int(100, 600));
    const { opened, run } = member;
    if (opened === null) continue;
    const leader = members.find((other) => other.run.instanceId === opened.log.epoch?.leaderInstanceId);
    const isHeard =
      leader !== undefined &&
      leader !== member &&
      leader.opened !== null &&
      !world.areApart(leader.address, member.address);
    if (!isHeard || random.chance(0.1)) {
      if (++silent % 2 === 0)
        run.process.deliver(() => {
          opened.log.refresh().catch((error: unknown) => isEnd(world, `a refresh at ${run.process.name}`, error));
        });
      continue;
    }
    const from = opened.log.applied + 1;
    leader.run.process.deliver(() => {
      const bytes = leader.opened?.log.recent(from, random.pick([100, 10_000, 1_000_000]));
      if (bytes == null || bytes.length === 0) return;
      const arrive = (): void => {
        const to = member.opened;
        const now = member.run;
        if (to === null) return;
        now.process.deliver(() => {
          judge.count('pushed');
          to.log
            .takePushed(bytes)
            .catch((error: unknown) => isEnd(world, `what was pushed to ${now.process.name}`, error));
        });
      };
      timeline.in(world.delayMs(), arrive);
      if (!world.isPeace && random.chance(0.05)) timeline.in(random.int(1_000, 60_000), arrive);
    });
  }
}

/** Longest that a member begins no commit while another one takes the lead. */
const HOLD_MS_MAX = 3_000;

/**
 * Members begin epochs, far more often and with less reason than they would; others hold their commits meanwhile, as
 * one that resigns does.
 */
export async function lead(world: World, members: readonly SimMember[]): Promise<void> {
  const { random, judge } = world;
  while (!world.isPeace) {
    await world.wait(random.int(500, 20_000));
    if (random.chance(0.5)) hold(world, random.pick(members));
    for (const member of random.chance(0.7) ? [random.pick(members)] : members) {
      const { opened, run } = member;
      if (opened === null || !opened.log.isCaughtUp) continue;
      run.process.deliver(() => {
        opened.log.lead(run.instanceId, opened.log.epoch?.number ?? -1).then(
          ({ number, leaderInstanceId }) => {
            judge.count('epochs');
            judge.note(`${run.process.name} leads in epoch ${number}`);
            const epoch = judge.truth.epochs.find((known) => known.number === number);
            if (leaderInstanceId !== run.instanceId || epoch?.leader !== run.instanceId)
              judge.problem(
                `${run.process.name} was told that it leads in epoch ${number}, which is of ${epoch?.leader}`,
              );
          },
          (error: unknown) => isEnd(world, `an epoch of ${run.process.name}`, error),
        );
      });
    }
  }
}

function hold(world: World, { opened, run }: SimMember): void {
  if (opened === null) return;
  const holding = new AbortController();
  world.timeline.in(world.random.int(1, HOLD_MS_MAX), () => {
    holding.abort();
  });
  run.process.deliver(() => {
    world.judge.count('holds');
    opened.log.hold(holding.signal).catch((error: unknown) => isEnd(world, `a hold of ${run.process.name}`, error));
  });
}

/** Copies are scavenged, each by itself, now and then, and stopped now and then. */
export async function scavenge(world: World, members: readonly SimMember[]): Promise<void> {
  const { random, judge } = world;
  while (!world.isPeace) {
    await world.wait(random.int(3_000, 40_000));
    const member = random.pick(members);
    const { opened, run } = member;
    if (opened === null || !opened.log.isCaughtUp) continue;
    run.process.deliver(() => {
      opened.scavenger.start({ threshold: random.pick([-1, 0, 0, 10]), syncOnly: random.chance(0.3) }).then(
        ({ scavengeId }) => {
          judge.count('scavenges');
          judge.note(`${run.process.name} begins scavenge ${scavengeId}`);
        },
        (error: unknown) => isEnd(world, `a scavenge at ${run.process.name}`, error),
      );
    });
    if (random.chance(0.2))
      world.timeline.in(random.int(1, 3_000), () =>
        run.process.deliver(() => {
          opened.scavenger.stop('current').catch((error: unknown) => isEnd(world, 'the stop of a scavenge', error));
        }),
      );
  }
}
