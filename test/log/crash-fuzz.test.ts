import { describe, expect, it } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import type { TransactionLog } from '../../core/log/transaction-log.ts';
import { codeOf } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { KillableStorage } from './killable-storage.ts';
import { appendGroup, CHUNK, groupAt, logText, openTestLog, RECORD_MIN, readBackward, textOf } from './kit.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';

/**
 * One disk that loses its power again and again at random operations, of appends, completions and recoveries, or whose
 * process is killed, which leaves unsynced bytes for the next one to read and the next power loss to take; now and then
 * the system could not write them, and holds them for written. After each the log must end at the last acknowledged
 * position, or behind the one group that was in flight, and hold exactly the bytes that were appended.
 */

const SEEDS = seedsFrom(1, bySize(25, 200, 1_000));
const LOSSES = 6;
/** What ends a life of the disk. */
const EXPECTED: readonly (string | null)[] = ['storage_crashed', 'writer_stopped', 'disk_full', 'sync_failed'];

class Expectation {
  /** Bytes of the acknowledged groups. */
  text = '';
  /** Positions at which the log may end. */
  end = 0;
  /** The group that is being appended, and where it ends. */
  flight: { readonly text: string; readonly end: number } | null = null;
  /** A completion is under way, which moves the end to here. */
  boundary: number | null = null;
  /** Where a chunk ended that was completed on a full disk: complete for good once the next chunk has begun. */
  reopened: number | null = null;

  /** Takes in where a restarted log ends. */
  settle(end: number, text: string): string | null {
    const { flight, boundary, reopened } = this;
    this.reopened = null;
    this.flight = null;
    this.boundary = null;
    if (end === this.end && text === this.text) return null;
    if ((end === boundary || end === reopened) && text === this.text) {
      this.end = end;
      return null;
    }
    if (flight && end === flight.end && text === this.text + flight.text) {
      this.end = flight.end;
      this.text = text;
      return null;
    }
    return `ends at ${end} with ${text.length} bytes; acknowledged are ${this.end} with ${this.text.length}${flight ? `, in flight ${flight.end} with ${this.text.length + flight.text.length}` : ''}`;
  }
}

async function work(
  log: TransactionLog,
  random: Random,
  clock: ManualClock,
  expected: Expectation,
  steps: number,
  isFull: boolean,
): Promise<void> {
  for (let i = 0; i < steps; i++) {
    if (random.chance(0.12)) {
      expected.boundary = (Math.floor(log.end / CHUNK) + 1) * CHUNK;
      const before = log.end;
      await log.completeChunk();
      if (isFull) expected.reopened = before;
      expected.end = expected.boundary;
      expected.boundary = null;
    }
    const sizes = Array.from({ length: random.int(1, 4) }, () =>
      random.chance(0.2) ? random.int(4_000, 14_000) : random.int(RECORD_MIN, 900),
    );
    const group = groupAt(log.end, sizes, random.int(1, 1_000_000));
    if (group.length > log.remaining) continue;
    expected.flight = { text: textOf(group), end: log.end + group.length };
    try {
      await log.append(group.slice());
    } catch (error) {
      // Refused is refused: a full disk must leave nothing to be found.
      if (isSkuaError(error, 'disk_full')) {
        expected.flight = null;
        continue;
      }
      throw error;
    }
    expected.reopened = null;
    expected.text += expected.flight.text;
    expected.end = expected.flight.end;
    expected.flight = null;
    if (random.chance(0.1)) await clock.advance(1_000);
  }
}

async function chain(seed: number): Promise<string | null> {
  const random = new Random(seed);
  const expected = new Expectation();
  let storage = new FaultyStorage({ seed, reads: random.pick(['sync', 'async']) });
  for (let loss = 0; loss < LOSSES; loss++) {
    const clock = new ManualClock(0, 'microtask');
    const reach = random.int(1, random.pick([12, 60, 200]));
    const isKilled = random.chance(0.4);
    if (!isKilled) storage.crashAt(storage.operations + reach, random.pick(['before', 'middle', 'after']));
    const isFull = !isKilled && random.chance(0.4);
    if (isFull) storage.failAt(storage.operations + random.int(20, 80), 'disk_full');
    try {
      const log = await openTestLog(isKilled ? new KillableStorage(storage, reach) : storage, { clock });
      const problem = expected.settle(log.end, await logText(log.table));
      if (problem !== null) return `seed ${seed}, loss ${loss}: ${problem}`;
      await work(log, random, clock, expected, random.int(1, 40), isFull);
      if (random.chance(0.5)) await log.close();
    } catch (error) {
      if (!EXPECTED.includes(codeOf(error))) throw new Error(`seed ${seed}, loss ${loss}`, { cause: error });
    }
    if (storage.violations.length > 0) return `seed ${seed}, loss ${loss}: ${storage.violations.join()}`;
    if (!isKilled || random.chance(0.3))
      storage = storage.restart(
        random.pick(['drop', 'keep', 'partial', 'partial', 'clean', 'clean']),
        random.int(1, 1_000_000),
      );
  }
  const log = await openTestLog(storage);
  const problem = expected.settle(log.end, await logText(log.table));
  if (problem !== null) return `seed ${seed}, at last: ${problem}`;
  const backward = (await readBackward(log.table)).reverse();
  if (backward.reduce((sum, record) => sum + record.bytes.length + 8, 0) !== expected.text.length)
    return `seed ${seed}: backward reads differ`;
  if (log.remaining < 500) await log.completeChunk();
  await appendGroup(log, [500]);
  await log.close();
  return null;
}

describe('power losses at random operations of the log', () => {
  it('lose nothing and leave nothing in part', async () => {
    const problems: string[] = [];
    for (const seed of SEEDS) {
      if (problems.length >= 5) break;
      const problem = await chain(seed);
      if (problem !== null) problems.push(problem);
    }
    expect(problems).toEqual([]);
  });
});
