import { describe, it } from 'vitest';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { expectCopy, prepare, TestLog } from './catch-up-kit.ts';

describe('the files of a copy', () => {
  it('come from the bucket into an empty directory, an old one, and one that stands inside a chunk which was scavenged meanwhile', async () => {
    const log = await TestLog.begin();
    await log.write(30);
    await log.compact();
    const storage = new MemoryStorage();
    await expectCopy(storage, await prepare(storage, log.objects), log);
    await log.write(17);
    await log.compact();
    await expectCopy(storage, await prepare(storage, log.objects), log);
    await log.write(10);
    await log.scavenge();
    await log.compact();
    await expectCopy(storage, await prepare(storage, log.objects), log);
  });
});
