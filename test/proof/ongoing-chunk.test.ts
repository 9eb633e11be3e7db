import { beforeAll, describe, expect, it } from 'vitest';
import { BLOCK_BYTES } from '../../core/cache/cache.ts';
import type { Anchor } from '../../core/integrity/format/chain-layout.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { Random } from '../support/random.ts';
import type { Suspect } from '../../core/integrity/verify-chain/verify-report.ts';
import { append, copyOf, fill, openProven, recordsIn, verify, type Framed } from './proof-kit.ts';

/** All of the log is in the chunk that is being written. */
const CHUNK_BYTES = 2_097_152;

interface Log {
  readonly storage: MemoryStorage;
  readonly anchors: readonly Anchor[];
  readonly records: readonly Framed[];
}

async function logOf(seed: number): Promise<Log> {
  const storage = new MemoryStorage();
  const open = await openProven(storage, { seed, chunkSizeBytes: CHUNK_BYTES });
  const random = new Random(seed);
  const anchors: Anchor[] = [];
  for (let i = 0; i < 3; i++) {
    await fill(open, random, 300);
    // A record that reaches over a whole block is alone in it.
    await append(open, 'large', random.bytes(3 * BLOCK_BYTES));
    anchors.push(await open.hashChain!.anchor());
  }
  await open.close();
  return { storage, anchors, records: await recordsIn(storage, anchors.at(-1)!.position) };
}

let log: Log;
beforeAll(async () => {
  log = await logOf(71);
});

/** With other bits in `count` bytes of a record from `at` on. */
async function changed(
  { storage }: Log,
  { file, offset, size }: Framed,
  { at = size - 12, bits = 1, count = 1 } = {},
): Promise<MemoryStorage> {
  const copy = await copyOf(storage);
  const opened = await copy.open(file, 'write');
  const bytes = await opened.read(offset + at, count);
  await opened.writeAt(
    offset + at,
    bytes.map((byte) => byte ^ bits),
  );
  await opened.close();
  return copy;
}

/** Where a store finds an event. */
async function positionOf({ storage }: Log, stream: string, number: number): Promise<number> {
  const open = await openProven(await copyOf(storage), { chunkSizeBytes: CHUNK_BYTES });
  try {
    return (await open.store.readEvent(stream, number)).position;
  } finally {
    await open.close();
  }
}

describe('the chunk that is being written', () => {
  it('is proven up to the newest anchor', async () => {
    expect(await verify(log.storage, log.anchors)).toMatchObject({
      findings: 0,
      proven: log.records.length,
      anchors: 3,
    });
  });

  it('has the record named in which one byte is another', async () => {
    for (const i of [3, 100, 170])
      for (const bits of [1, 0x80, 0xff]) {
        const record = log.records[i]!;
        const { told } = await verify(await changed(log, record, { bits }), log.anchors.slice(-1));
        expect(told.map(({ code }) => code)).toEqual(['chain', 'changed']);
        expect(told[1]).toMatchObject({ file: record.file, position: record.position, likely: 1 });
        const [{ stream, number, position }] = told[1]!.records as [Suspect];
        expect(position).toBe(record.position);
        if (stream === 'kept' || stream === 'other') expect(await positionOf(log, stream, number!)).toBe(position);
        expect(told[1]!.message).toContain(
          ` Most likely it is event ${number} of stream '${stream}' at position ${position}: another byte at offset ${record.offset + record.size - 12}, and nothing else, makes this difference. The others are `,
        );
      }
  });

  it('has a record named in which more was changed, with the few beside it, and nothing said to be proven', async () => {
    const record = log.records[100]!;
    const storage = await changed(log, record, { at: record.size - 15, count: 4 });
    const { told, proven, anchors } = await verify(storage, log.anchors.slice(-1));
    expect({ proven, anchors }).toEqual({ proven: 0, anchors: 0 });
    expect(told.map(({ code }) => code)).toEqual(['chain', 'changed']);
    const [, , first, last] = /(\d+) records at positions (\d+) to (\d+)/.exec(told[1]!.message)!.map(Number) as [
      number,
      number,
      number,
      number,
    ];
    expect(told[1]).toMatchObject({ file: record.file, position: first });
    expect(record.position).toBeGreaterThanOrEqual(first);
    expect(record.position).toBeLessThanOrEqual(last);
    expect(last - first).toBeLessThan(2 * BLOCK_BYTES);
    // What to compare: the first of them by stream and number, and how many others there are.
    const { records = [], recordsTotal } = told[1]!;
    expect(records).toHaveLength(8);
    // The log begins with an epoch record, which is of no stream.
    expect(records[0]).toEqual({ position: first, stream: null, number: null, isReadable: true });
    for (const { stream, number, position, isReadable } of records.slice(1)) {
      expect(isReadable).toBe(true);
      // Of the others most have expired.
      if (stream === 'kept' || stream === 'other') expect(await positionOf(log, stream, number!)).toBe(position);
      expect(told[1]!.message).toContain(`event ${number} of stream '${stream}' at position ${position}, `);
    }
    expect(told[1]!.message).toContain(`. They are a record of the log itself at position ${first}, event `);
    expect(told[1]!.message).toMatch(new RegExp(`, and ${recordsTotal! - 8} more\\.$`));
  });

  it('has a changed record named first that can no longer be read', async () => {
    const record = log.records[100]!;
    const lengthOfStream = { at: 4 + 32, bits: 0x7f, count: 2 };
    const { told } = await verify(await changed(log, record, lengthOfStream), log.anchors.slice(-1));
    expect(told.map(({ code }) => code)).toEqual(['chain', 'changed']);
    expect(told[1]).toMatchObject({ file: record.file, position: record.position });
    expect(told[1]!.records).toHaveLength(8);
    expect(told[1]!.records![0]).toEqual({
      position: record.position,
      stream: null,
      number: null,
      isReadable: false,
    });
    expect(told[1]!.message).toContain(
      `Most likely it is the record at position ${record.position}, which can't be read. The others are a record of the log itself at`,
    );
  });

  it.each([
    ['length', 1],
    ['second length', -2],
    ['position', 8],
  ])('has a changed record named first whose %s is another', async (_, at) => {
    const record = log.records[100]!;
    const { told } = await verify(
      await changed(log, record, { at: at < 0 ? record.size + at : at }),
      log.anchors.slice(-1),
    );
    expect(told.map(({ code }) => code)).toEqual(['unreadable', 'chain', 'changed']);
    expect(told[0]).toMatchObject({ file: record.file, position: record.position });
    expect(told[2]).toMatchObject({ file: record.file, position: record.position });
    expect(told[2]!.records![0]).toMatchObject({ position: record.position, isReadable: false });
  });

  it('has a changed record named alone that fills its block', async () => {
    const record = log.records.find(({ size }) => size > 3 * BLOCK_BYTES)!;
    const { told } = await verify(await changed(log, record, { at: 2 * BLOCK_BYTES, count: 3 }), log.anchors.slice(-1));
    expect(told[1]).toMatchObject({
      code: 'changed',
      file: record.file,
      position: record.position,
      message: expect.stringMatching(
        `^The record at position ${record.position} of .* It is event \\d of stream 'large' at position ${record.position}\\.$`,
      ),
      records: [{ position: record.position, stream: 'large', number: expect.any(Number), isReadable: true }],
      recordsTotal: 1,
    });
  });

  it('is proven up to the last anchor that holds, behind which the change is', async () => {
    const [first, second] = log.anchors;
    const record = log.records.find(({ position }) => position > first!.position)!;
    const storage = await changed(log, record, { at: record.size - 15, count: 4 });
    const { told, proven, anchors } = await verify(storage, log.anchors);
    expect({ proven, anchors }).toEqual({
      proven: log.records.filter(({ position }) => position < first!.position).length,
      anchors: 1,
    });
    expect(told.find(({ position }) => position === second!.position)!.message).toContain(
      `behind position ${first!.position}, up to which an anchor holds`,
    );
    // What an anchor has proven is under no suspicion, though it lies in the same block.
    expect(told.find(({ code }) => code === 'changed')).toMatchObject({ file: record.file, position: first!.position });
  });

  it('names no record where the checksums of its blocks were changed, too', async () => {
    const storage = await changed(log, log.records[100]!);
    await storage.remove('block-sums');
    expect((await verify(storage, log.anchors.slice(-1))).told.map(({ code }) => code)).toEqual(['chain']);
  });
});

describe('an anchor of another chain', () => {
  it('is called that, and nothing else is said', async () => {
    const { anchors } = await logOf(72);
    const { told, proven } = await verify(log.storage, anchors.slice(-1));
    expect(told.map(({ code }) => code)).toEqual(['chain']);
    expect(told[0]!.message).toContain(
      `is of another chain, ${anchors[0]!.chain}, than that of this directory, ${log.anchors[0]!.chain}`,
    );
    expect(proven).toBe(0);
  });

  it('keeps those of this one from nothing, wherever they end', async () => {
    const { anchors } = await logOf(73);
    const farther = { ...anchors.at(-1)!, position: CHUNK_BYTES * 5 };
    expect(await verify(log.storage, [...log.anchors, farther])).toMatchObject({
      findings: 1,
      anchors: 3,
      proven: log.records.length,
    });
  });
});
