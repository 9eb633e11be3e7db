import { encodeBase64 } from '../../base/base64.ts';
import { SkuaError } from '../../base/errors.ts';
import { fromHex, toHex } from '../../base/hex.ts';
import type { ChunkTable } from '../../log/api.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage } from '../../ports/storage.ts';
import {
  type Anchor,
  chainStart,
  decodeLeavesHeader,
  EVENT_FORMAT,
  HASH_BYTES,
  isSame,
  LEAVES_ENTRY_BYTES,
  LEAVES_HEADER_BYTES,
  leavesPath,
  type Sha256,
} from '../format/chain-layout.ts';
import { openChunkFile, recordRuns } from './record-file.ts';
import { sha256By } from '../format/sha256.ts';
import { inclusionPath, Tree } from './tree.ts';
import type { EventProof } from '../format/event-proof.ts';

interface EventProofParts {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly table: ChunkTable;
}

/**
 * The leaves of a chunk below a position, one behind the other, with the offsets at which the records lie in the chunk.
 */
interface Leaves {
  readonly leaves: readonly Uint8Array[];
  readonly offsets: readonly number[];
}

/**
 * All that is needed to verify, by an anchor, that the log had exactly this record at `position`. The leaves of its
 * chunk are held in memory. Throws `event_not_found` where there is no record, `proof_invalid` where the anchor does
 * not cover it, `proof_absent` where a scavenge has redacted it since, and `proof_damaged`.
 */
export async function proveRecord(
  { storage, digests, table }: EventProofParts,
  anchor: Anchor,
  position: number,
): Promise<EventProof> {
  const sha256 = sha256By(digests);
  const { chunkSizeBytes } = anchor;
  if (position >= anchor.position)
    throw new SkuaError(
      'proof_invalid',
      `The anchor of ${anchor.madeAt} covers the log below position ${anchor.position}, but the event is at ${position}. Give a newer anchor.`,
      { position, limit: anchor.position },
    );
  const number = Math.floor(position / chunkSizeBytes);
  const record = await recordAt(storage, table, position);
  if (record === null)
    throw new SkuaError('event_not_found', `There is no record at position ${position}.`, { position });
  const { leaves, offsets } = await leavesOf(storage, sha256, table, number, chunkSizeBytes, anchor.position);
  const index = offsets.indexOf(position - number * chunkSizeBytes);
  if (index < 0 || !isSame(leaves[index]!, sha256(record)))
    throw new SkuaError(
      'proof_absent',
      `The record at position ${position} is not the one in the hash chain: a scavenge has redacted it since, or it was changed. \`skua proof verify\` tells which.`,
      { position },
    );
  const links: { count: number; root: string }[] = [];
  const last = Math.floor((anchor.position - 1) / chunkSizeBytes);
  for (let next = number + 1; next <= last; next++)
    links.push(await rootOf(storage, sha256, table, next, chunkSizeBytes, anchor.position));
  const before =
    number === 0
      ? chainStart(sha256, fromHex(anchor.chain)!, chunkSizeBytes)
      : (await leavesHeader(storage, sha256, number - 1)).link;
  return {
    format: EVENT_FORMAT,
    chain: anchor.chain,
    chunkSizeBytes,
    anchorPosition: anchor.position,
    position,
    record: encodeBase64(record),
    index,
    count: leaves.length,
    path: inclusionPath(sha256, leaves, index).map(toHex),
    before: toHex(before),
    links,
  };
}

/** The bytes of a record's leaf. */
async function recordAt(storage: Storage, table: ChunkTable, position: number): Promise<Uint8Array | null> {
  const inForce = table.chunkAt(position);
  if (inForce === undefined) return null;
  const chunk = await openChunkFile(storage, inForce.name, inForce.isCompleted ? null : inForce.physicalBytes);
  try {
    for await (const run of recordRuns(chunk, chunk.startPosition, async () => {})) {
      const found = run.find((record) => record.position === position);
      if (found !== undefined) return found.bytes.slice();
      if (run.at(-1)!.position > position) return null;
    }
    return null;
  } finally {
    await chunk.file.retire();
  }
}

async function leavesOf(
  storage: Storage,
  sha256: Sha256,
  table: ChunkTable,
  number: number,
  chunkSize: number,
  below: number,
): Promise<Leaves> {
  const start = number * chunkSize;
  const leaves: Uint8Array[] = [];
  const offsets: number[] = [];
  if ((await storage.size(leavesPath(number))) !== null) {
    const { count } = await leavesHeader(storage, sha256, number);
    const file = await storage.open(leavesPath(number), 'read');
    try {
      const bytes = (await file.read(LEAVES_HEADER_BYTES, count * LEAVES_ENTRY_BYTES)).slice();
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      for (let at = 0; at < bytes.length; at += LEAVES_ENTRY_BYTES) {
        const offset = view.getUint32(at, true);
        if (start + offset >= below) break;
        offsets.push(offset);
        leaves.push(bytes.subarray(at + LEAVES_ENTRY_BYTES - HASH_BYTES, at + LEAVES_ENTRY_BYTES));
      }
      return { leaves, offsets };
    } finally {
      await file.close();
    }
  }
  const inForce = table.chunkAt(start)!;
  const chunk = await openChunkFile(storage, inForce.name, inForce.isCompleted ? null : inForce.physicalBytes);
  try {
    for await (const run of recordRuns(chunk, start, async () => {})) {
      for (const { position, bytes } of run) {
        if (position >= Math.min(below, start + chunkSize)) return { leaves, offsets };
        offsets.push(position - start);
        leaves.push(sha256(bytes));
      }
    }
    return { leaves, offsets };
  } finally {
    await chunk.file.retire();
  }
}

async function rootOf(
  storage: Storage,
  sha256: Sha256,
  table: ChunkTable,
  number: number,
  chunkSize: number,
  below: number,
): Promise<{ count: number; root: string }> {
  if (below >= (number + 1) * chunkSize && (await storage.size(leavesPath(number))) !== null) {
    const { count, root } = await leavesHeader(storage, sha256, number);
    return { count, root: toHex(root) };
  }
  const { leaves } = await leavesOf(storage, sha256, table, number, chunkSize, below);
  const tree = new Tree(sha256);
  for (const leaf of leaves) tree.add(leaf);
  return { count: leaves.length, root: toHex(tree.root()) };
}

async function leavesHeader(storage: Storage, sha256: Sha256, number: number) {
  const path = leavesPath(number);
  const file = await storage.open(path, 'read');
  try {
    return decodeLeavesHeader(sha256, path, await file.read(0, LEAVES_HEADER_BYTES));
  } finally {
    await file.close();
  }
}
