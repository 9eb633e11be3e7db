import { fromHex, toHex } from '../../base/hex.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage } from '../../ports/storage.ts';
import { type Anchor, ANCHOR_FORMAT, chainStart, PROOF_FOLDER } from '../format/chain-layout.ts';
import { sha256By } from '../format/sha256.ts';
import { dense, leavesHeader, readChain, receiptHeader } from '../chain/chain.ts';

/**
 * The newest anchor that the files of a chain give by themselves: for the completed chunks that have been hashed.
 * Nothing is written and no lock taken, so that a node may run meanwhile. Null where no chain is kept. Rejects with
 * `proof_damaged`, and what the storage throws.
 */
export async function keptAnchor(storage: Storage, digests: Digests): Promise<Omit<Anchor, 'madeAt'> | null> {
  const kept = await readChain(storage);
  if (kept === null) return null;
  const { chain, chunkSizeBytes } = kept;
  const sha256 = sha256By(digests);
  const start = chainStart(sha256, fromHex(chain)!, chunkSizeBytes);
  const names = await storage.list(PROOF_FOLDER);
  const leaves = dense(names, 'leaves');
  const receipts = dense(names, 'receipt');
  const link = leaves === 0 ? start : (await leavesHeader(storage, sha256, leaves - 1)).link;
  const head = receipts === 0 ? start : (await receiptHeader(storage, sha256, receipts - 1)).head;
  return {
    format: ANCHOR_FORMAT,
    chain,
    chunkSizeBytes,
    position: leaves * chunkSizeBytes,
    link: toHex(link),
    receipts,
    receiptsHead: toHex(head),
  };
}
