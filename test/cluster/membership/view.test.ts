import { expect, test } from 'vitest';
import { MemberView } from '../../../core/cluster/membership/view.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { FakeCopy } from './fake-log.ts';

function viewOn(port: number, clock: ManualClock, ids: SeededIds, copy: FakeCopy): MemberView {
  return new MemberView(
    { copy, clock, ids, log: silentLog },
    {
      self: { address: 'm', port },
      clusterSize: 3,
      priority: 0,
      isReadOnlyReplica: false,
      version: '1',
      gossipIntervalMs: 2_000,
      gossipTimeoutMs: 2_500,
      gossipAllowedDifferenceMs: 60_000,
      leaderElectionTimeoutMs: 1_000,
      deadMemberRemovalMs: 1_800_000,
    },
  );
}

test('who wrote the newest epoch a moment ago is the leader before it has said so, until it is silent or says that it stops', async () => {
  const clock = new ManualClock();
  const ids = new SeededIds(1);
  const link = { isCut: false, latencyMs: () => 1, loss: () => 0 };
  const copy = new FakeCopy({ commits: [] }, clock, new Random(1), link);
  const [view, other] = [viewOn(1, clock, ids, copy), viewOn(2, clock, ids, copy)];
  view.stage = 'running';
  other.stage = 'running';
  view.table.merge({ ...other.entry(), sentMs: 1 }, 'answer');
  expect(view.leader()).toBeNull();
  copy.epoch = { number: 0, position: 0, id: view.instanceId, leaderInstanceId: other.instanceId };
  view.epochSinceMs = clock.monotonicMs();
  expect(view.leader()).toMatchObject({ instanceId: other.instanceId, isAlive: true });
  expect(view.state()).toBe('Follower');
  await clock.advance(1_001);
  expect(view.leader()).toBeNull();
  view.table.merge({ ...other.entry(), sentMs: 2 }, 'answer');
  expect(view.leader()).toMatchObject({ state: 'Leader' });
  view.table.merge({ ...other.entry(), sentMs: 3, state: 'ShuttingDown' }, 'answer');
  expect(view.leader()).toBeNull();
});
