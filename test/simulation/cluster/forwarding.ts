import { SkuaError } from '../../../core/base/errors.ts';
import type { MemberLog } from '../../../core/cluster/api.ts';
import type { HeldWrite } from '../../../core/cluster/patience/patience.ts';
import { answered, type Answer, comesAgain, type Outcome, put, type Request } from './requests.ts';
import type { SimMember } from './sim-member.ts';
import type { World } from './world.ts';

/**
 * How long a member waits for the leader's answer, for a newer epoch behind it, and for its own copy to show what it
 * acknowledges.
 */
const ANSWER_MS = 6_000;
const EPOCH_MS = 8_000;
const SHOWN_MS = 5_000;
const TRIES_MAX = 4;

/**
 * A member sends a request on to the leader (core/cluster/README.md, rule 13): with the epoch in which it is sent, and
 * again, or decided by itself, when the leader certainly did not take it; when no answer comes, after it has seen a
 * newer epoch, and only what carries ids.
 */
export async function forward(
  world: World,
  members: readonly SimMember[],
  member: SimMember,
  request: Request,
  wasUnknown: boolean,
  isGone: () => boolean,
): Promise<Answer> {
  const { judge } = world;
  const before = judge.truth.last;
  const startedMs = world.timeline.now;
  const { run } = member;
  const atWork = (): Promise<void> =>
    new Promise((resolve) => {
      run.process.deliver(resolve);
    });
  // While the process stands still the request lies in its socket.
  await atWork();
  const held = run.patience.begin(isGone);
  let isOpen = false;
  const heard = (outcome: Outcome): Promise<Answer> =>
    answered(world, `${run.process.name}, which forwards,`, request, outcome, {
      before,
      wasUnknown,
      startedMs,
      ...(member.run === run && { member }),
    });
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    await atWork();
    const log = member.run === run ? member.opened?.log : null;
    if (log == null) return 'failed';
    if (held.refusal() !== null) {
      judge.count('expired');
      return heard({ kind: isOpen ? 'unknown' : 'failed', first: -1, position: -1, code: '' });
    }
    const epoch = log.epoch;
    const leader =
      epoch === null ? undefined : members.find(({ run: { instanceId } }) => instanceId === epoch.leaderInstanceId);
    if (epoch === null || leader === undefined || leader === member)
      return heard(await put(world, member.opened!.store, request, null, startedMs, () => held.refusal()));
    judge.count('forwarded');
    const outcome = await send(world, member, leader, request, { epoch: epoch.number, arrivedMs: startedMs, held });
    if (outcome !== null && outcome.code !== 'not_leader') {
      if (outcome.kind === 'done' || outcome.kind === 'repeat')
        await shown(log, outcome.position + 1, within(world, SHOWN_MS));
      return heard(outcome);
    }
    if (outcome === null) {
      // The leader may have it still, and decide it when the same request has been refused elsewhere.
      comesAgain(request);
      isOpen = true;
      const isNewer = await newerEpoch(world, member, epoch.number);
      if (!isNewer || request.token !== null || request.what !== 'append')
        return heard({ kind: 'unknown', first: -1, position: -1, code: '' });
      judge.count('anew');
    } else await world.wait(world.random.int(1, 200));
  }
  return heard({ kind: 'failed', first: -1, position: -1, code: '' });
}

/** How a request goes: in which epoch, when it came to the member, and for how long that has had it. */
interface Sent {
  readonly epoch: number;
  readonly arrivedMs: number;
  readonly held: HeldWrite;
}

/**
 * The leader's answer; null when none comes. The request may arrive long after that, and what has ids may arrive twice.
 */
function send(world: World, from: SimMember, to: SimMember, request: Request, sent: Sent): Promise<Outcome | null> {
  const { random, timeline } = world;
  const { promise, resolve } = Promise.withResolvers<Outcome | null>();
  timeline.in(ANSWER_MS, () => resolve(null));
  const { process } = to.run;
  const { run } = from;
  // What it knows of the clock there it was told some time before.
  const aheadMs = process.nowMs() - run.process.nowMs() - random.int(0, 50);
  const atMs = run.process.nowMs() + aheadMs - sent.held.ageMs;
  const arrive = (): void =>
    process.deliver(() => {
      if (to.opened?.log == null || to.run.process !== process) return;
      void decideAsLeader(world, to, request, sent, atMs).then((outcome) => {
        if (!world.areApart(from.address, to.address))
          timeline.in(world.delayMs(), () => run.process.deliver(() => resolve(outcome)));
      });
    });
  // It may lie in a buffer on its way for long.
  const wayMs = world.delayMs() + (!world.isPeace && random.chance(0.05) ? random.int(8_000, 30_000) : 0);
  if (!world.areApart(from.address, to.address)) timeline.in(wayMs, arrive);
  if (!world.isPeace && random.chance(0.05)) {
    world.judge.count('late');
    if (request.token === null) {
      comesAgain(request);
      timeline.in(random.int(1_000, 60_000), arrive);
    }
  }
  return promise;
}

async function decideAsLeader(
  world: World,
  leader: SimMember,
  request: Request,
  { epoch, arrivedMs }: Sent,
  atMs: number,
): Promise<Outcome> {
  const { log, store } = leader.opened!;
  const held = leader.run.patience.beginPassedOn(atMs, () => false);
  const fence = (): SkuaError | null => {
    if (log!.epoch?.number === epoch) return held.refusal();
    world.judge.count('fenced');
    return new SkuaError('not_leader', `This request was sent in epoch ${epoch}.`, {});
  };
  return put(world, store, request, epoch, arrivedMs, fence);
}

async function newerEpoch(world: World, member: SimMember, than: number): Promise<boolean> {
  const { run } = member;
  for (let waitedMs = 0; waitedMs < EPOCH_MS; waitedMs += 500) {
    if (member.run !== run) return false;
    if ((member.opened?.log?.epoch?.number ?? -1) > than) return true;
    await world.wait(500);
  }
  return false;
}

/** Resolves when the member's readers see the log up to this position, or the signal comes first. */
function shown(log: MemberLog, position: number, signal: AbortSignal): Promise<void> {
  if (log.end >= position) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  log.onApplied(() => {
    if (log.end >= position) resolve();
  });
  return promise;
}

function within(world: World, ms: number): AbortSignal {
  const ending = new AbortController();
  world.timeline.in(ms, () => ending.abort());
  return ending.signal;
}
