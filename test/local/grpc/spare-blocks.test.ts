import { describe, expect, test } from 'vitest';
import { SpareBlocks } from '../../../local/grpc/spare-blocks.ts';

describe('memory of blocks that were sent', () => {
  test('goes to the owner alone that gave it, once', () => {
    const spares = new SpareBlocks();
    const [one, other] = [{}, {}];
    const block = spares.take(one, 100_000);
    spares.give(one, block);
    expect(spares.take(other, 100_000).buffer).not.toBe(block.buffer);
    const again = spares.take(one, 99_000);
    expect([again.buffer === block.buffer, again.length, again.byteOffset]).toEqual([true, 99_000, 0]);
    expect(spares.take(one, 100_000).buffer).not.toBe(block.buffer);
  });

  test('is given for blocks of about its size, of which one is kept', () => {
    const spares = new SpareBlocks();
    const owner = {};
    const [small, long] = [spares.take(owner, 40_000), spares.take(owner, 400_000)];
    spares.give(owner, small);
    spares.give(owner, long);
    expect(spares.heldBytes).toBe(long.buffer.byteLength);
    expect(spares.take(owner, 40_000).buffer.byteLength).toBeLessThan(80_000);
    expect(spares.heldBytes).toBe(0);
    spares.give(owner, small);
    expect(spares.take(owner, 60_000).buffer).not.toBe(small.buffer);
  });

  test('is neither made nor kept for small blocks and for giants', () => {
    const spares = new SpareBlocks();
    const owner = {};
    for (const bytes of [0, 1_000, 16_383, 524_289, 5_000_000]) {
      const block = spares.take(owner, bytes);
      expect([block.length, block.buffer.byteLength]).toEqual([bytes, bytes]);
      spares.give(owner, block);
      expect(spares.heldBytes).toBe(0);
    }
  });

  test('is kept up to a limit: who has been waiting longest loses it; and until its owner ends', () => {
    const spares = new SpareBlocks(300_000);
    const owners = Array.from({ length: 4 }, () => ({ bytes: new Uint8Array(0) as Uint8Array<ArrayBuffer> }));
    for (const owner of owners) owner.bytes = spares.take(owner, 98_304);
    for (const owner of owners) spares.give(owner, owner.bytes);
    expect(spares.heldBytes).toBe(294_912);
    const kept = owners.map((owner) => spares.take(owner, 98_304).buffer === owner.bytes.buffer);
    expect(kept).toEqual([false, true, true, true]);
    for (const owner of owners) spares.give(owner, owner.bytes);
    for (const owner of owners) spares.drop(owner);
    expect(spares.heldBytes).toBe(0);
    for (const owner of owners) expect(spares.take(owner, 98_304).buffer).not.toBe(owner.bytes.buffer);
  });
});
