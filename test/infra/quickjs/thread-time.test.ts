import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systemThreadCpuMs, threadCpuMs } from '../../../infra/quickjs/script-messages.ts';

/** Both are read one behind the other; the system brings its own account up to date at least this often. */
const APART_MS = 20;

test.skipIf(!existsSync('/proc/thread-self/schedstat'))(
  'what Linux tells of the processor time of a thread, under a Node.js that does not, is the same',
  () => {
    const first = systemThreadCpuMs();
    let turns = 0;
    for (const end = threadCpuMs() + 50; threadCpuMs() < end;) turns++;
    const [before, told, after] = [threadCpuMs(), systemThreadCpuMs(), threadCpuMs()];
    expect(turns).toBeGreaterThan(0);
    expect(told - first).toBeGreaterThan(50 - APART_MS);
    expect(told).toBeGreaterThan(before - APART_MS);
    expect(told).toBeLessThan(after + APART_MS);
  },
);
