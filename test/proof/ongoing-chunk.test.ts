import { beforeAll, describe, expect, it } from 'vitest';
import { BLOCK_BYTES } from '../../core/cache/cache.ts';
import type { Anchor } from '../../core/integrity/format/chain-layout.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { Random } from '../support/random.ts';
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

async function changed({ storage }: Log, { file, offset, size }: Framed, at = size - 12): Promise<MemoryStorage> {
  const copy = await copyOf(storage);
  const opened = await copy.open(file, 'write');
  const [byte] = await opened.read(offset + at, 1);
  await opened.writeAt(offset + at, Uint8Array.of(byte! ^ 1));
  await opened.close();
  return copy;
}

describe('the chunk that is being written', () => {
  it('is proven up to the newest anchor', async () => {
    expect(await verify(log.storage, log.anchors)).toMatchObject({
      findings: 0,
      proven: log.records.length,
      anchors: 3,
    });
  });

  it('has a changed record named, with the few beside it, and nothing said to be proven', async () => {
    const record = log.records[100]!;
    const { told, proven, anchors } = await verify(await changed(log, record), log.anchors.slice(-1));
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
  });

  it('has a changed record named alone that fills its block', async () => {
    const record = log.records.find(({ size }) => size > 3 * BLOCK_BYTES)!;
    const { told } = await verify(await changed(log, record, 2 * BLOCK_BYTES), log.anchors.slice(-1));
    expect(told[1]).toMatchObject({
      code: 'changed',
      file: record.file,
      position: record.position,
      message: expect.stringMatching(`^The record at position ${record.position} of `),
    });
  });

  it('is proven up to the last anchor that holds, behind which the change is', async () => {
    const [first, second] = log.anchors;
    const record = log.records.find(({ position }) => position > first!.position)!;
    const { told, proven, anchors } = await verify(await changed(log, record), log.anchors);
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
