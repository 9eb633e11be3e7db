import { expect, test } from 'vitest';
import { isScavengeDue } from '../../../core/cluster/replica/scavenge-due.ts';
import { FaultyStorage } from '../../support/faulty-storage.ts';
import { openMember, prepare, TestLog } from './catch-up-kit.ts';

test('a copy that was cut back is scavenged again, whatever came between: what it had removed may have come back with the files of the bucket', async () => {
  const log = await TestLog.begin();
  await log.write(16);
  await log.compact();
  const disk = new FaultyStorage({ seed: 1 });
  await prepare(disk, log.objects);
  expect(await isScavengeDue(disk)).toBe(false);
  await log.write(3);
  await log.scavenge();
  await log.compact();
  await prepare(disk, log.objects);
  // The process ends before it has opened the copy.
  const later = disk.restart('drop');
  expect(await isScavengeDue(later)).toBe(true);
  const member = await openMember(later, log, 70);
  for (let turns = 0; turns < 100_000 && (await isScavengeDue(later)); turns++)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  expect([await isScavengeDue(later), member.scavenger.last()?.result]).toEqual([false, 'Success']);
  await member.close();
  const again = await openMember(later, log, 71);
  expect(again.scavenger.current()).toBe(null);
  await again.close();
});
