import { describe, expect, it } from 'vitest';
import { isCrash } from '../../support/crash.ts';
import { bySize } from '../../support/run-size.ts';
import type { CrashMoment } from '../../support/faulty-storage.ts';
import { byPosition, checkpointsOf, differences, everyCase, expectCopy, prepare } from './catch-up-kit.ts';
import { readRawLog } from '../../scavenge/raw-log.ts';

/**
 * The power fails at every operation of a catch-up, whatever the directory was before. What the disk makes of it, the
 * next catch-up goes on with, and in the end the copy holds what the bucket does.
 */

/** Every how many operations one is tried: no multiple of 3, since the moments of crashes change with them. */
const EVERY = bySize(1, 5, 1);
const MOMENTS: readonly CrashMoment[] = ['before', 'middle', 'after'];
const OUTCOMES = ['keep', 'drop', 'partial', 'clean'] as const;

describe('a catch-up', () => {
  it('ends with a copy of the log, whatever the directory was', async () => {
    for (const { name, log, disk, scavengedTo } of await everyCase()) {
      const storage = disk();
      await expectCopy(storage, await prepare(storage, log.objects), log, name, scavengedTo);
      const { writer, chaser } = await checkpointsOf(storage);
      expect(chaser, name).toBe(writer);
      expect(storage.violations, name).toEqual([]);
      const again = storage.operations;
      await prepare(storage, log.objects);
      expect(storage.operations, `${name}: nothing is written where nothing is missing`).toBe(again);
    }
  });

  it('that a power loss ends at any operation goes on at the next opening', async () => {
    let crashes = 0;
    for (const { name, log, disk, scavengedTo } of await everyCase()) {
      const whole = disk();
      await prepare(whole, log.objects);
      for (let n = 1; n <= whole.operations; n += EVERY) {
        const crashing = disk(n);
        crashing.crashAt(n, MOMENTS[n % 3]!);
        const error = await prepare(crashing, log.objects).then(
          () => null,
          (reason: unknown) => reason,
        );
        if (error !== null && !isCrash(error)) throw error;
        expect(crashing.isCrashed, `${name}, operation ${n}`).toBe(true);
        crashes++;
        const outcome = OUTCOMES[Math.floor(n / 3) % 4]!;
        const storage = crashing.restart(outcome, n);
        const at = `${name}: ${MOMENTS[n % 3]} operation ${n}, ${outcome}`;
        const copy = await prepare(storage, log.objects).catch((reason: unknown) => {
          throw new Error(at, { cause: reason });
        });
        if (n % 7 === 0) await expectCopy(storage, copy, log, at, scavengedTo);
        else
          expect(differences(byPosition(await readRawLog(storage)), await log.records(), scavengedTo), at).toEqual([]);
        // What is right may not depend on what the system shows and has on no disk.
        if (outcome !== 'clean') continue;
        const later = storage.restart('drop', n);
        await expectCopy(later, await prepare(later, log.objects), log, `${at}, then drop`, scavengedTo);
      }
    }
    expect(crashes).toBeGreaterThan(300 / EVERY);
  });
});
