import { beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../support/random.ts';
import { isFlipFound, samples, unnoticed, type Sample } from './tampering.ts';
import { verify } from './proof-kit.ts';

let both: readonly Sample[] = [];
beforeAll(async () => { both = await samples(700, 11); });

describe('what somebody does to records behind an anchor', () => {
  it('finds a flipped bit of every fortieth record, before and behind a scavenge', async () => {
    const random = new Random(12);
    const missed: string[] = [];
    for (const { name, storage, anchor, records } of both) {
      expect((await verify(storage, [anchor], true)).findings).toBe(0);
      for (let i = 0; i < records.length; i += 40) {
        const record = records[i]!;
        const bit = random.int(0, record.size * 8 - 1);
        if (!await isFlipFound(storage, anchor, record, bit)) missed.push(`${name}: bit ${bit} of ${record.position}`);
      }
    }
    expect(missed).toEqual([]);
  });

  it('finds every single bit of a record', async () => {
    const missed: string[] = [];
    for (const { name, storage, anchor, records } of both) {
      const record = records[Math.floor(records.length / 3)]!;
      for (let bit = 0; bit < record.size * 8; bit += 7) if (!await isFlipFound(storage, anchor, record, bit)) missed.push(`${name}: bit ${bit} of ${record.position}`);
    }
    expect(missed).toEqual([]);
  });

  it('finds records that are removed, doubled, moved or added', async () => {
    const random = new Random(13);
    for (const sample of both) expect(await unnoticed(sample, random, { share: 0.03 })).toEqual([]);
  });
});
