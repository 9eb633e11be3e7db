import { expect } from 'vitest';
import type { Manifest, ShippedPiece } from '../../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../../core/backup/repository/api.ts';
import { Shipper } from '../../../core/backup/shipper/shipper.ts';
import type { BaseReason, ShipperParts } from '../../../core/backup/shipper/shipper.ts';
import { listAll } from '../../../core/ports/object-store.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import { MemoryObjects } from '../memory-objects.ts';
import type { ShippableLog } from '../../../core/store/shippable-log/shippable-log.ts';
import { ManualClock } from '../manual-clock.ts';

export interface TestShipper {
  readonly shipper: Shipper;
  readonly wanted: BaseReason[];
}

export function shipperOf(
  log: ShippableLog,
  repository: () => Promise<Repository>,
  nodeId: string,
  more: Partial<ShipperParts> = {},
): TestShipper {
  const wanted: BaseReason[] = [];
  return {
    wanted,
    shipper: new Shipper({
      repository,
      nodeId,
      log,
      clock: new ManualClock(),
      onBaseWanted: (reason) => wanted.push(reason),
      ...more,
    }),
  };
}

/**
 * All that the repository holds behind the base must be the log itself, from whole chunk to whole chunk, up to `to`.
 */
export async function expectShippedChunks(
  repository: Repository,
  base: Manifest,
  log: ShippableLog,
  to = log.end,
): Promise<readonly ShippedPiece[]> {
  const pieces = await repository.shipped(base.id);
  let at = base.checkpoints.writer;
  for (const piece of pieces) {
    expect(piece.previousEnd ?? piece.from).toBe(at);
    if (piece.previousEnd !== undefined)
      expect([at, piece.from % log.chunkSizeBytes]).toEqual([log.dataEnd(Math.floor(at / log.chunkSizeBytes)), 0]);
    expect(Buffer.compare(await repository.readShipped(piece), await log.read(piece.from, piece.to))).toBe(0);
    at = piece.to;
  }
  expect(at).toBe(to);
  return pieces;
}

/** The same objects without those that a function leaves out. */
export async function copyOfObjects(
  objects: ObjectStore,
  isLeftOut: (key: string) => boolean = () => false,
): Promise<MemoryObjects> {
  const copy = new MemoryObjects();
  for await (const { key } of listAll(objects, '')) if (!isLeftOut(key)) await copy.put(key, (await objects.get(key))!);
  return copy;
}
