import { beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../support/random.ts';
import { bySize } from '../support/run-size.ts';
import { isFlipFound, samples, unnoticed, type Sample } from './tampering.ts';
import { verify } from './proof-kit.ts';

/** Each change of each record is looked for in all of the log: twice the events take four times as long. */
const EVENTS = bySize(400, 400, 2_500);

let both: readonly Sample[] = [];
beforeAll(async () => { both = await samples(EVENTS, 61); });

describe('a directory of a few thousand events', () => {
  it('verifies as it is', async () => {
    for (const { storage, anchor, records } of both) {
      expect(await verify(storage, [anchor], true)).toMatchObject({ findings: 0, proven: records.length, anchors: 1 });
      expect(records.length).toBeGreaterThan(0.4 * EVENTS);
    }
  });

  it('has no record of which a flipped bit is not found', async () => {
    const random = new Random(62);
    const missed: string[] = [];
    for (const { name, storage, anchor, records } of both) {
      for (const record of records) {
        const bit = random.int(0, record.size * 8 - 1);
        if (!await isFlipFound(storage, anchor, record, bit)) missed.push(`${name}: bit ${bit} of ${record.position}`);
      }
    }
    expect(missed).toEqual([]);
  });

  it('has some records of which every single bit was flipped, and found', async () => {
    const random = new Random(63);
    const missed: string[] = [];
    for (const { name, storage, anchor, records } of both) {
      for (const record of [random.pick(records), random.pick(records)]) {
        for (let bit = 0; bit < record.size * 8; bit++) if (!await isFlipFound(storage, anchor, record, bit)) missed.push(`${name}: bit ${bit} of ${record.position}`);
      }
    }
    expect(missed).toEqual([]);
  });

  it('has no record that can be removed, doubled, moved or added to without being found', async () => {
    const random = new Random(64);
    for (const sample of both) expect(await unnoticed(sample, random, { share: 1, isOneEach: true })).toEqual([]);
  });
});
