import { decodeBase64 } from '../../base/base64.ts';
import { i32, i64 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { fromHex, toHex } from '../../base/hex.ts';
import { decodePrepare, PREPARE, type PrepareRecord, RecordFrame } from '../../log/format/records.ts';
import type { Digests } from '../../ports/digests.ts';
import {
  type Anchor,
  chainLink,
  EVENT_FORMAT,
  HASH_BYTES,
  isCount,
  isHex,
  nodeHash,
  type Sha256,
} from './chain-layout.ts';
import { sha256By } from './sha256.ts';

/** One record, and what leads from it to the hash of an anchor. Hashes are 64 hex digits. */
export interface EventProof {
  readonly format: typeof EVENT_FORMAT;
  readonly chain: string;
  readonly chunkSizeBytes: number;
  /** Of the anchor to which the links lead. */
  readonly anchorPosition: number;
  /** Of the record in the log. */
  readonly position: number;
  /** Base64: the record's length (u32, little-endian) and its payload. */
  readonly record: string;
  /** Place among the leaves of its chunk, and how many these are. */
  readonly index: number;
  readonly count: number;
  /** Hashes beside the way to the root, the lowest first. */
  readonly path: readonly string[];
  /** Link before that of its chunk. */
  readonly before: string;
  /** Of the chunks behind it, up to the anchor's position. */
  readonly links: readonly { readonly count: number; readonly root: string }[];
}

export interface EventVerdict {
  /** Null where the record is the one that the anchor speaks of. */
  readonly wrong: string | null;
  /** Null for a record that is no event. */
  readonly event: PrepareRecord | null;
}

/** Throws `proof_invalid` for what is no proof of an event. */
export function parseEventProof(text: string, where: string): EventProof {
  let found: Partial<EventProof> | null = null;
  try {
    found = JSON.parse(text) as Partial<EventProof> | null;
  } catch {
    // Reported below.
  }
  const isProof =
    found !== null &&
    typeof found === 'object' &&
    found.format === EVENT_FORMAT &&
    typeof found.chain === 'string' &&
    isCount(found.chunkSizeBytes) &&
    found.chunkSizeBytes > 0 &&
    isCount(found.anchorPosition) &&
    isCount(found.position) &&
    isCount(found.index) &&
    isCount(found.count) &&
    typeof found.record === 'string' &&
    decodeBase64(found.record) !== null &&
    isHex(found.before, HASH_BYTES) &&
    Array.isArray(found.path) &&
    found.path.every((hash) => isHex(hash, HASH_BYTES)) &&
    Array.isArray(found.links) &&
    found.links.every(
      (link: unknown) =>
        link !== null &&
        typeof link === 'object' &&
        'count' in link &&
        isCount(link.count) &&
        'root' in link &&
        isHex(link.root, HASH_BYTES),
    );
  if (!isProof)
    throw new SkuaError(
      'proof_invalid',
      `${where} is not a proof of an event ("${EVENT_FORMAT}"). Give the output of \`skua proof export --event\`.`,
      { where },
    );
  return found as EventProof;
}

/** Computes the anchor's hash from the record. Nothing else is needed, neither a node nor a file of one. */
export function verifyEvent(proof: EventProof, anchor: Anchor, digests: Digests): EventVerdict {
  const sha256 = sha256By(digests);
  const record = decodeBase64(proof.record)!;
  const event = decoded(record);
  const wrong = (what: string): EventVerdict => ({ wrong: what, event });
  const { chunkSizeBytes, position, anchorPosition } = proof;
  if (proof.chain !== anchor.chain || chunkSizeBytes !== anchor.chunkSizeBytes)
    return wrong(`The proof is of chain ${proof.chain}, the anchor of ${anchor.chain}.`);
  if (anchorPosition !== anchor.position)
    return wrong(
      `The proof leads to an anchor at position ${anchorPosition}, but this one is at ${anchor.position}: export the proof with --anchor and this anchor.`,
    );
  if (record.length < 14 || i32(record, 0) !== record.length - 4 || i64(record, 6) !== position)
    return wrong(`The record is not the one at position ${position}.`);
  const number = Math.floor(position / chunkSizeBytes);
  const root = rootBy(
    sha256,
    sha256(record),
    proof.index,
    proof.count,
    proof.path.map((hash) => fromHex(hash)!),
  );
  if (root === null || position >= anchorPosition)
    return wrong('The hash path from the record to the root of its chunk has the wrong length.');
  const endOf = (chunk: number) => Math.min((chunk + 1) * chunkSizeBytes, anchorPosition);
  let link = chainLink(sha256, fromHex(proof.before)!, number * chunkSizeBytes, endOf(number), proof.count, root);
  let next = number + 1;
  for (const { count, root: other } of proof.links) {
    link = chainLink(sha256, link, next * chunkSizeBytes, endOf(next), count, fromHex(other)!);
    next++;
  }
  if (next !== Math.ceil(anchorPosition / chunkSizeBytes))
    return wrong('The proof does not lead to the position of the anchor.');
  return toHex(link) === anchor.link
    ? { wrong: null, event }
    : wrong('The hash computed from the record is not that of the anchor: the record is not the one in the log.');
}

/**
 * The root of a tree with so many leaves, of which one is known and the hashes beside its way; null where there are too
 * many or too few of these.
 */
function rootBy(
  sha256: Sha256,
  leaf: Uint8Array,
  index: number,
  count: number,
  path: readonly Uint8Array[],
): Uint8Array | null {
  if (index >= count) return null;
  if (count === 1) return path.length === 0 ? leaf : null;
  const beside = path.at(-1);
  if (beside === undefined) return null;
  let left = 1;
  while (left * 2 < count) left *= 2;
  const rest = path.slice(0, -1);
  const inner =
    index < left ? rootBy(sha256, leaf, index, left, rest) : rootBy(sha256, leaf, index - left, count - left, rest);
  if (inner === null) return null;
  return index < left ? nodeHash(sha256, inner, beside) : nodeHash(sha256, beside, inner);
}

function decoded(record: Uint8Array): PrepareRecord | null {
  const frame = new RecordFrame();
  frame.bytes = record;
  frame.at = 4;
  frame.length = record.length - 4;
  if (record.length < 14) return null;
  frame.position = i64(record, 6);
  try {
    return frame.type === PREPARE ? decodePrepare(frame) : null;
  } catch {
    return null;
  }
}
