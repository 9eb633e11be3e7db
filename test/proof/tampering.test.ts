import { beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../support/random.ts';
import { bySize } from '../support/run-size.ts';
import { isFlipFound, samples, unnoticed, type Sample } from './tampering.ts';
import { verify } from './proof-kit.ts';

/** Each change of each record is looked for in all of the log: twice the events take four times as long. */
const EVENTS = bySize(400, 400, 2_500);
const EVERY = bySize(40, 1);
const BITS_EVERY = bySize(7, 1);

let both: readonly Sample[] = [];
beforeAll(async () => {
  both = await samples(EVENTS, 61);
});

describe('what somebody does to records behind an anchor, before and behind a scavenge', () => {
  it('is nothing at first', async () => {
    for (const { storage, anchor, records } of both) {
      expect(await verify(storage, [anchor], true)).toMatchObject({ findings: 0, proven: records.length, anchors: 1 });
      expect(records.length).toBeGreaterThan(0.4 * EVENTS);
    }
  });

  it('is found where it is one flipped bit', async () => {
    const random = new Random(62);
    const missed: string[] = [];
    for (const { name, storage, anchor, records } of both) {
      const look = async (record: Sample['records'][number], bit: number): Promise<void> => {
        if (!(await isFlipFound(storage, anchor, record, bit)))
          missed.push(`${name}: bit ${bit} of ${record.position}`);
      };
      for (let i = 0; i < records.length; i += EVERY) await look(records[i]!, random.int(0, records[i]!.size * 8 - 1));
      // And every bit of some.
      for (const record of [random.pick(records), random.pick(records)])
        for (let bit = 0; bit < record.size * 8; bit += BITS_EVERY) await look(record, bit);
    }
    expect(missed).toEqual([]);
  });

  it('is found where records are removed, doubled, moved or added', async () => {
    const random = new Random(64);
    for (const sample of both)
      expect(await unnoticed(sample, random, bySize({ share: 0.03 }, { share: 1, isOneEach: true }))).toEqual([]);
  });
});
