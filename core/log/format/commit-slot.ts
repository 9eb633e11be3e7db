import { i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import type { Digests } from '../../ports/digests.ts';

/**
 * Commit slots (core/log/FORMAT.md, "The end of the log"). Before a group is synced, its start, its end and the
 * checksum of its bytes are written into one of two alternating slots in the unused tail of the ongoing chunk file. One
 * sync makes data and slot durable together; after a crash the newest slot whose checksum holds names the end of the
 * log.
 */

/** Slot i lies at file offset chunkSize + SLOT_STRIDE_BYTES * (1 + i): each in a sector of its own, behind the data. */
const SLOT_STRIDE_BYTES = 512;
export const SLOT_BYTES = 40;
const MAGIC = [0x53, 0x6b, 0x75, 0x61, 0x53, 0x6c, 0x6f, 0x74]; // "SkuaSlot"

export interface CommitSlot {
  /** Grows by one a group; the parity chooses the slot. */
  readonly sequence: number;
  /** Global positions of the group. */
  readonly start: number;
  readonly end: number;
  /** CRC-32 of the group's bytes. */
  readonly checksum: number;
}

export function slotOffset(chunkSize: number, sequence: number): number {
  return chunkSize + SLOT_STRIDE_BYTES * (1 + (sequence % 2));
}

export function encodeSlot(out: Uint8Array, slot: CommitSlot, digests: Digests): void {
  out.set(MAGIC, 0);
  putI64(out, 8, slot.sequence);
  putI64(out, 16, slot.start);
  putI64(out, 24, slot.end);
  putI32(out, 32, slot.checksum | 0);
  putI32(out, 36, digests.crc32(out.subarray(0, 36)) | 0);
}

/** Null when the bytes are no slot: never written, torn, or cut off. */
export function decodeSlot(b: Uint8Array, digests: Digests): CommitSlot | null {
  if (b.length < SLOT_BYTES) return null;
  for (let i = 0; i < MAGIC.length; i++) if (b[i] !== MAGIC[i]) return null;
  if (u32(b, 36) !== digests.crc32(b.subarray(0, 36))) return null;
  return { sequence: i64(b, 8), start: i64(b, 16), end: i64(b, 24), checksum: u32(b, 32) };
}
