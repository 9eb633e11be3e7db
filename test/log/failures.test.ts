import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { BLOCK_SUMS_FILE } from '../../core/log/format/block-sums-file.ts';
import { isSkuaError, type SkuaError } from '../../core/base/errors.ts';
import type { TransactionLog } from '../../core/log/transaction-log.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { appendGroup, checkpoint, CHUNK, contentOf, groupAt, logText, openTestLog, RECORD_MIN, textOf } from './kit.ts';
import { bySize, RUNS_FIXED } from '../support/run-size.ts';

/** Disks that are full, syncs that fail, and the order in which things become durable. */

const FIRST = 'chunk-000000.000000';
const OUTCOMES = [
  ['drop', 1],
  ['keep', 1],
  ['partial', 1],
  ['partial', 2],
  ['partial', 3],
  ['partial', 4],
  ['clean', 1],
  ['clean', 2],
  ['clean', 3],
] as const;

/**
 * Says of every way in which a power loss could end now that the log holds exactly the groups. The storage goes on
 * afterwards.
 */
async function expectAfterCrash(
  storage: FaultyStorage,
  name: string,
  ...allowed: readonly (readonly Uint8Array[])[]
): Promise<void> {
  const texts = allowed.map((groups) => textOf(...groups));
  const wasCrashed = storage.isCrashed;
  for (const [mode, seed] of OUTCOMES) {
    const after = storage.restart(mode, seed);
    const log = await openTestLog(after);
    const found = await logText(log.table);
    expect(
      texts.includes(found),
      `${name}, after ${mode} ${seed}: ${found.length} bytes instead of ${texts.map((text) => text.length).join(' or ')}`,
    ).toBe(true);
    // What stands behind bytes that were found must not be lost with them.
    const more = await appendGroup(log, [400], 77);
    const again = await openTestLog(after.restart('drop'));
    expect(
      (await logText(again.table)) === found + textOf(more),
      `${name}, after ${mode} ${seed} and a power loss`,
    ).toBe(true);
  }
  storage.isCrashed = wasCrashed;
}

/** Every append and completion of one small history, tried again until it succeeds. */
async function history(
  log: TransactionLog,
  groups: Uint8Array[],
  onRefusal: (error: SkuaError) => void,
): Promise<void> {
  const attempt = async (step: () => Promise<void>): Promise<void> => {
    for (let tries = 0; ; tries++) {
      try {
        return await step();
      } catch (error) {
        if (!isSkuaError(error) || tries > 3) throw error;
        onRefusal(error);
      }
    }
  };
  let attempts = 0;
  const append = (sizes: readonly number[]): Promise<void> =>
    attempt(async () => {
      // Another content each time, as other clients would send.
      const group = groupAt(log.end, sizes, ++attempts);
      await log.append(group.slice());
      groups.push(group);
    });
  await append([300, 5_000]);
  await append([700]);
  await attempt(() => log.completeChunk());
  await append([900]);
  await append([20_000, 400]);
  await attempt(() => log.completeChunk());
  await append([333]);
}

describe('a write that fails', () => {
  it.each(['disk_full', 'io_error'] as const)(
    'with %s, at any place, is rolled back: the log goes on and loses nothing',
    async (code) => {
      const plain = new FaultyStorage();
      const log = await openTestLog(plain);
      const first = plain.operations;
      await history(log, [], () => {});
      const { ops } = plain;
      let refusals = 0;
      for (let n = first; n < ops.length; n += bySize(5, 1)) {
        const { op, path, position } = ops[n]!;
        if (op === 'sync') continue;
        const name = `${op} of ${path} at ${position}, operation ${n + 1}`;
        const storage = new FaultyStorage({ seed: n });
        storage.failAt(n + 1, code);
        const trial = await openTestLog(storage);
        const groups: Uint8Array[] = [];
        const seenCodes: string[] = [];
        await history(trial, groups, (error) => {
          seenCodes.push(error.code);
        });
        expect(
          seenCodes.filter((seenCode) => seenCode !== code),
          name,
        ).toEqual([]);
        refusals += seenCodes.length;
        expect(await logText(trial.table), name).toBe(textOf(...groups));
        expect(storage.violations, name).toEqual([]);
        await expectAfterCrash(storage, name, groups);
        const md5Path = 'chunk-000001.000000';
        const bytes = await contentOf(storage.restart('keep'), md5Path);
        expect(textOf(bytes.subarray(-16)), `${name}: MD5`).toBe(
          textOf(createHash('md5').update(bytes.subarray(0, -16)).digest()),
        );
      }
      expect(refusals).toBeGreaterThan(bySize(1, 8));
    },
  );

  it('and whose client was told so is not found by a recovery, even when all its bytes got to the disk', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const storage = new FaultyStorage({ seed });
      const log = await openTestLog(storage);
      const groups = [await appendGroup(log, [300]), await appendGroup(log, [400])];
      // Three operations an append: data, slot, sync, and the checkpoint after it.
      storage.failAt(storage.operations + 1 + (seed % 2), 'disk_full');
      await expect(log.append(groupAt(log.end, [500], 7))).rejects.toMatchObject({ code: 'disk_full' });
      expect(log.end).toBe(700);
      await expectAfterCrash(storage, `seed ${seed}`, groups);
    }
  });

  it('of writer.chk alone refuses nobody', async () => {
    const storage = new FaultyStorage();
    const log = await openTestLog(storage);
    storage.failWhen((op, path) => (op === 'writeAt' && path === 'writer.chk' ? 'disk_full' : undefined));
    const groups = [await appendGroup(log, [300]), await appendGroup(log, [400]), await appendGroup(log, [500])];
    expect(log.end).toBe(1_200);
    await expectAfterCrash(storage, 'writer.chk stays behind', groups);
    // Without writer.chk durable at the end of data the slots must not go.
    await expect(log.completeChunk()).rejects.toMatchObject({ code: 'disk_full' });
    await expectAfterCrash(storage, 'no completion without it', groups);
    storage.failWhen(undefined);
    await log.completeChunk();
    await expectAfterCrash(storage, 'completed', groups);
  });

  it('on a disk that stays full refuses until there is room, and keeps what it has', async () => {
    const storage = new FaultyStorage();
    const log = await openTestLog(storage);
    const groups = [await appendGroup(log, [300])];
    await log.completeChunk();
    await log.completeChunk();
    storage.setCapacity(0);
    groups.push(await appendGroup(log, [30_000]));
    await log.completeChunk();
    for (let i = 0; i < 3; i++)
      await expect(log.append(groupAt(log.end, [300]))).rejects.toMatchObject({ code: 'disk_full' });
    await log.completeChunk();
    expect((await storage.list('')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    storage.setCapacity(Number.MAX_SAFE_INTEGER);
    groups.push(await appendGroup(log, [300]));
    await expectAfterCrash(storage, 'room again', groups);
    await log.close();
  });

  it('of a seal harms nobody', async () => {
    const storage = new FaultyStorage();
    const log = await openTestLog(storage);
    storage.failWhen((op) => (op === 'seal' ? 'io_error' : undefined));
    const groups = [await appendGroup(log, [300])];
    await log.completeChunk();
    groups.push(await appendGroup(log, [400]));
    expect(await logText(log.table)).toBe(textOf(...groups));
    await expectAfterCrash(storage, 'unsealed', groups);
  });
});

if (RUNS_FIXED)
  describe('a sync that fails', () => {
    it('stops the writer for good, tells once, and never syncs that file again', async () => {
      const plain = new FaultyStorage();
      const plainLog = await openTestLog(plain);
      const first = plain.operations;
      await history(plainLog, [], () => {});
      let stops = 0;
      for (let n = first; n < plain.ops.length; n++) {
        if (plain.ops[n]!.op !== 'sync') continue;
        const name = `sync of ${plain.ops[n]!.path}, operation ${n + 1}`;
        const storage = new FaultyStorage({ seed: n });
        storage.failAt(n + 1, 'sync_failed');
        const log = await openTestLog(storage);
        let told = 0;
        log.onStop((error) => {
          told++;
          expect(error.code).toBe('writer_stopped');
        });
        const groups: Uint8Array[] = [];
        const end = await history(log, groups, (error) => {
          throw error;
        }).then(
          () => null,
          (error: unknown) => error,
        );
        expect(isSkuaError(end, 'writer_stopped'), name).toBe(true);
        stops++;
        for (let i = 0; i < 3; i++) {
          await expect(log.append(groupAt(log.end, [400]))).rejects.toMatchObject({ code: 'writer_stopped' });
          await expect(log.completeChunk()).rejects.toMatchObject({ code: 'writer_stopped' });
        }
        expect(told, name).toBe(1);
        expect(await logText(log.table), `${name}: readers go on`).toBe(textOf(...groups));
        await log.flushCheckpoints();
        await log.close();
        expect(storage.violations, name).toEqual([]);
        const inFlight = await inFlightGroup(groups);
        await expectAfterCrash(storage, name, groups, ...inFlight.map((group) => [...groups, group]));
      }
      expect(stops).toBeGreaterThan(9);
    });

    /** What `history` appends next, in its only attempt. */
    async function inFlightGroup(groups: readonly Uint8Array[]): Promise<Uint8Array[]> {
      const all: Uint8Array[] = [];
      await history(await openTestLog(new FaultyStorage()), all, () => {});
      const next = all[groups.length];
      return next ? [next] : [];
    }

    it('of a checkpoint in the background stops the writer as well', async () => {
      for (const path of ['writer.chk', 'chaser.chk']) {
        const clock = new ManualClock();
        const storage = new FaultyStorage();
        const log = await openTestLog(storage, { clock });
        const groups = [await appendGroup(log, [300])];
        let told = 0;
        log.onStop(() => {
          told++;
        });
        storage.failWhen((op, of) => (op === 'sync' && of === path ? 'sync_failed' : undefined));
        await clock.advance(5_000);
        expect(told).toBe(1);
        await expect(log.append(groupAt(log.end, [300]))).rejects.toMatchObject({ code: 'writer_stopped' });
        expect(storage.violations).toEqual([]);
        await log.close();
        await expectAfterCrash(storage, path, groups);
      }
    });

    it('that a late listener asks about is told at once', async () => {
      const storage = new FaultyStorage();
      const log = await openTestLog(storage);
      storage.failAt(storage.operations + 3, 'sync_failed');
      await expect(log.append(groupAt(0, [300]))).rejects.toMatchObject({ code: 'writer_stopped' });
      let told: SkuaError | null = null;
      log.onStop((error) => {
        told = error;
      });
      expect(told).toMatchObject({ code: 'writer_stopped' });
    });
  });

if (RUNS_FIXED)
  describe('order of durability', () => {
    it('an append ends after a sync of the chunk file that follows data and slot, and costs one', async () => {
      const storage = new FaultyStorage();
      const log = await openTestLog(storage);
      for (let i = 0; i < 10; i++) {
        const before = storage.ops.length;
        await appendGroup(log, [300 + i]);
        const ops = storage.ops.slice(before).filter((op) => op.path === FIRST);
        expect(ops.map((op) => op.op)).toEqual(['writeAt', 'writeAt', 'sync']);
        expect(ops[0]!.position).toBe(128 + log.end - 300 - i);
        expect(ops[1]!.position).toBe(CHUNK + 512 * (1 + ((i + 1) % 2)));
        expect(storage.hasUnsynced(FIRST)).toBe(false);
        expect(storage.ops.slice(before).filter((op) => op.op === 'sync').length).toBe(1);
      }
    });

    it('writer.chk is durable at the end of data before the chunk is cut, and at the boundary before the next chunk has its name', async () => {
      const storage = new FaultyStorage();
      const log = await openTestLog(storage);
      await appendGroup(log, [300]);
      const before = storage.ops.length;
      await log.completeChunk();
      const told = storage.ops
        .slice(before)
        .map(
          (op) =>
            `${op.op} ${op.path.replace(/\.[0-9a-f-]{36}\.tmp$/, '.tmp')}${op.op === 'truncate' ? ` ${op.length}` : ''}`,
        );
      const steps = [
        'sync writer.chk',
        `truncate ${FIRST} 428`,
        `sync ${FIRST}`,
        `writeAt ${FIRST}`,
        `sync ${FIRST}`,
        `seal ${FIRST}`,
        'writeAt writer.chk',
        'sync writer.chk',
        'rename chunk-000001.000000.tmp',
      ];
      expect(told.filter((step) => steps.includes(step))).toEqual(steps);
      // The file of the next chunk is made beside that.
      const next = ['create chunk-000001.000000.tmp', 'sync chunk-000001.000000.tmp', 'rename chunk-000001.000000.tmp'];
      expect(told.filter((step) => next.includes(step))).toEqual(next);
    });

    it('a file that was made ready for the next chunk is used, or removed when the work is over, by a close or by a start', async () => {
      const temporary = async (storage: FaultyStorage): Promise<number> =>
        (await storage.list('')).filter((name) => name.endsWith('.tmp')).length;
      const storage = new FaultyStorage();
      const log = await openTestLog(storage);
      await appendGroup(log, [300]);
      await log.withNextChunk(async () => {
        expect(await temporary(storage)).toBe(1);
        const before = storage.ops.length;
        await log.completeChunk();
        expect(storage.ops.slice(before).map((op) => op.op)).not.toContain('create');
        expect(await temporary(storage)).toBe(0);
      });
      await appendGroup(log, [400]);
      const text = await logText(log.table);
      await log.withNextChunk(async () => {
        for (const [mode, seed] of OUTCOMES) {
          const after = storage.restart(mode, seed);
          const found = await openTestLog(after);
          expect(await logText(found.table)).toBe(text);
          expect(await temporary(after)).toBe(0);
        }
        storage.isCrashed = false;
      });
      expect(await temporary(storage)).toBe(0);
      await log.withNextChunk(async () => {
        await log.close();
        expect(await temporary(storage)).toBe(0);
      });
    });

    it('a file that was made ready does not take the room that completing a chunk needs', async () => {
      const storage = new FaultyStorage({ seed: 3 });
      const log = await openTestLog(storage);
      await appendGroup(log, [300]);
      await log.withNextChunk(async () => {
        storage.failAt(storage.operations + 2, 'disk_full');
        await expect(log.completeChunk()).rejects.toMatchObject({ code: 'disk_full' });
        expect((await storage.list('')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
        await log.completeChunk();
      });
      await appendGroup(log, [400]);
      expect(log.end).toBe(CHUNK + 400);
    });

    it('chaser.chk is never durable ahead of writer.chk, and both follow within a second', async () => {
      const clock = new ManualClock();
      const storage = new FaultyStorage();
      const log = await openTestLog(storage, { clock });
      for (let i = 0; i < 6; i++) {
        await appendGroup(log, [300]);
        if (i === 3) await log.completeChunk();
        const before = storage.ops.length;
        await clock.advance(1_000);
        const synced = storage.ops
          .slice(before)
          .filter((op) => op.op === 'sync' && !op.path.startsWith(BLOCK_SUMS_FILE))
          .map((op) => op.path);
        // The completion has flushed writer.chk itself.
        expect(synced).toEqual(i === 3 ? ['chaser.chk'] : ['writer.chk', 'chaser.chk']);
        const lost = storage.restart('drop');
        storage.isCrashed = false;
        expect(await checkpoint(lost, 'chaser.chk')).toBe(log.end);
        expect(await checkpoint(lost, 'writer.chk')).toBe(log.end);
      }
      await log.close();
      const { ops } = storage;
      ops.forEach((op, i) => {
        if (op.op === 'sync' && op.path === 'chaser.chk')
          expect(ops.slice(0, i).findLast((other) => other.path === 'writer.chk')?.op).toBe('sync');
      });
    });
  });

describe('MD5 of an inherited chunk', () => {
  it('is right whatever is appended while it is caught up', async () => {
    for (let seed = 1; seed <= bySize(3, 12); seed++) {
      const random = new Random(seed);
      const storage = new FaultyStorage({ seed, reads: seed % 3 === 0 ? 'sync' : 'async' });
      let log = await openTestLog(storage, { chunkSizeBytes: 4 * 1_048_576 });
      for (let i = random.int(0, 3); i > 0; i--) await appendGroup(log, [random.int(500, 900_000)]);
      await log.close();
      for (let lives = random.int(1, 3); lives > 0; lives--) {
        log = await openTestLog(storage);
        for (let i = random.int(0, 12); i > 0; i--) {
          await appendGroup(log, [random.int(RECORD_MIN, 90_000)]);
          if (random.chance(0.3))
            await new Promise((resolve) => {
              setImmediate(resolve);
            });
        }
        if (lives > 1) await log.close();
      }
      await log.completeChunk();
      const bytes = await contentOf(storage, FIRST);
      expect(textOf(bytes.subarray(-16)), `seed ${seed}`).toBe(
        textOf(createHash('md5').update(bytes.subarray(0, -16)).digest()),
      );
      await log.close();
    }
  });
});

describe('zeros ahead of the writer', () => {
  it('never overwrite data, whatever the sizes of the groups', async () => {
    for (let seed = 1; seed <= bySize(1, 6); seed++) {
      const random = new Random(seed);
      const storage = new FaultyStorage({ seed });
      let log = await openTestLog(storage, { chunkSizeBytes: 16 * 1_048_576 });
      const groups: Uint8Array[] = [];
      for (;;) {
        const bytes = random.chance(0.3) ? random.int(500_000, 3_000_000) : random.int(RECORD_MIN, 200_000);
        if (bytes > log.remaining) break;
        groups.push(await appendGroup(log, [bytes]));
        if (random.chance(0.05)) {
          await log.close();
          log = await openTestLog(storage);
        }
      }
      const text = textOf(...groups);
      expect(textOf((await contentOf(storage, FIRST)).subarray(128, 128 + log.end)) === text, `seed ${seed}`).toBe(
        true,
      );
      await log.completeChunk();
      expect(
        textOf((await contentOf(storage, FIRST)).subarray(128, 128 + text.length)) === text,
        `seed ${seed}, completed`,
      ).toBe(true);
      await log.close();
    }
  });
});
