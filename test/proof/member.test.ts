import { expect, test } from 'vitest';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { openMember, TestLog } from '../cluster/replica/catch-up-kit.ts';
import { scavenge, verify } from './proof-kit.ts';

test('a member of a cluster keeps a chain of its own over its copy, through its own scavenges and what others write', async () => {
  const log = await TestLog.begin();
  await log.write(16);
  await log.compact();
  const disk = new FaultyStorage({ seed: 1 });
  let member = await openMember(disk, log, 60, true);
  const anchors = [await member.hashChain!.anchor()];
  await scavenge(member);
  anchors.push(await member.hashChain!.anchor());
  await member.close();
  expect(member.hashChain).toBeNull();
  const before = await verify(disk, anchors, true);
  expect(before).toMatchObject({ findings: 0, anchors: 2 });
  await log.refresh();
  await log.write(6);
  member = await openMember(disk, log, 61);
  anchors.push(await member.hashChain!.anchor());
  await member.close();
  const after = await verify(disk, anchors, true);
  expect(after).toMatchObject({ findings: 0, anchors: 3, removed: before.removed });
  expect(after.proven).toBeGreaterThan(before.proven);
});
