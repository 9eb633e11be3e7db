import { equalBytes, i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { encodeText } from '../../base/text.ts';

/**
 * Files and hashes of the proof that nothing was changed, as core/integrity/README.md, "Format", describes them.
 * Writers and the verifier share this and nothing else.
 */

/** In the data directory. */
export const PROOF_FOLDER = 'proofs';
const CHAIN_NAME = 'chain';
export const CHAIN_PATH = `${PROOF_FOLDER}/${CHAIN_NAME}`;
export const CHAIN_FORMAT = 'skua proof 1';
export const ANCHOR_FORMAT = 'skua anchor 1';
export const EVENT_FORMAT = 'skua event proof 1';
/** Of SHA-256. */
export const HASH_BYTES = 32;
export const CHAIN_ID_BYTES = 16;
const VERSION = 1;

/** SHA-256 of all bytes that are given, one behind the other. */
export type Sha256 = (...parts: readonly Uint8Array[]) => Uint8Array;

/** Removed: a receipt names no leaf then. */
export const NO_LEAF = new Uint8Array(HASH_BYTES);

/**
 * What a node is the hash of: the byte 1, and the two below it. Used again and again, since there are as many nodes as
 * records.
 */
const node = new Uint8Array(1 + 2 * HASH_BYTES).fill(1, 0, 1);

export function nodeHash(sha256: Sha256, left: Uint8Array, right: Uint8Array): Uint8Array {
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return sha256(node);
}

const START = encodeText('skua proof start');
const LINK = encodeText('skua proof link');

/** What stands before the first link: binds the chain to one directory. */
export function chainStart(sha256: Sha256, chainId: Uint8Array, chunkSizeBytes: number): Uint8Array {
  return sha256(START, chainId, numbers(chunkSizeBytes));
}

/** The link over the records in [start, end), of which there are `count` with this root. */
export function chainLink(
  sha256: Sha256,
  before: Uint8Array,
  start: number,
  end: number,
  count: number,
  root: Uint8Array,
): Uint8Array {
  return sha256(LINK, before, numbers(start, end, count), root);
}

function numbers(...values: readonly number[]): Uint8Array {
  const out = new Uint8Array(8 * values.length);
  values.forEach((value, i) => putI64(out, 8 * i, value));
  return out;
}

/** What the file `chain` holds. */
export interface ChainFile {
  readonly format: typeof CHAIN_FORMAT;
  /** 32 hex digits. */
  readonly chain: string;
  readonly chunkSizeBytes: number;
  /** ISO 8601. */
  readonly begunAt: string;
}

export function leavesPath(chunkNumber: number): string {
  return `${PROOF_FOLDER}/leaves-${String(chunkNumber).padStart(6, '0')}`;
}

export function receiptPath(number: number): string {
  return `${PROOF_FOLDER}/receipt-${String(number).padStart(10, '0')}`;
}

/** Number in the name of a leaves file or of a receipt; null for another file. */
export function numberedAs(kind: 'leaves' | 'receipt', name: string): number | null {
  const match = /^(leaves|receipt)-(\d{6}|\d{10})$/.exec(name);
  return match === null || match[1] !== kind || match[2]!.length !== (kind === 'leaves' ? 6 : 10)
    ? null
    : Number(match[2]);
}

/** Whether a file in the folder of proofs is one of its finished files. */
export function isProofName(name: string): boolean {
  return name === CHAIN_NAME || numberedAs('leaves', name) !== null || numberedAs('receipt', name) !== null;
}

/** Bytes from the beginning of a proof file that tell its content from any other. */
export const PROOF_HEAD_BYTES = 192;

export const LEAVES_HEADER_BYTES = 192;
/** Offset in the chunk, and leaf. */
export const LEAVES_ENTRY_BYTES = 4 + HASH_BYTES;
const LEAVES_MAGIC = encodeText('SkuaLeaf');
const LEAVES_SUM_AT = 152;

export interface LeavesHeader {
  readonly chunkNumber: number;
  readonly count: number;
  /** Link of the chunk before. */
  readonly before: Uint8Array;
  readonly root: Uint8Array;
  readonly link: Uint8Array;
  /** SHA-256 of all entries. */
  readonly entries: Uint8Array;
}

export function encodeLeavesHeader(
  sha256: Sha256,
  { chunkNumber, count, before, root, link, entries }: LeavesHeader,
): Uint8Array {
  const out = new Uint8Array(LEAVES_HEADER_BYTES);
  out.set(LEAVES_MAGIC, 0);
  putI32(out, 8, VERSION);
  putI32(out, 12, chunkNumber);
  putI64(out, 16, count);
  out.set(before, 24);
  out.set(root, 56);
  out.set(link, 88);
  out.set(entries, 120);
  out.set(sha256(out.subarray(0, LEAVES_SUM_AT)), LEAVES_SUM_AT);
  return out;
}

/** Throws `proof_damaged` for what is not as it was written. */
export function decodeLeavesHeader(sha256: Sha256, path: string, bytes: Uint8Array): LeavesHeader {
  if (bytes.length < LEAVES_HEADER_BYTES || !isSame(bytes.subarray(0, 8), LEAVES_MAGIC) || u32(bytes, 8) !== VERSION)
    throw damaged(path, 'does not start like a leaves file of version 1');
  if (!isSame(sha256(bytes.subarray(0, LEAVES_SUM_AT)), bytes.subarray(LEAVES_SUM_AT, LEAVES_SUM_AT + HASH_BYTES)))
    throw damaged(path, 'has a header that was changed or damaged');
  return {
    chunkNumber: u32(bytes, 12),
    count: i64(bytes, 16),
    before: bytes.slice(24, 56),
    root: bytes.slice(56, 88),
    link: bytes.slice(88, 120),
    entries: bytes.slice(120, 152),
  };
}

export const RECEIPT_HEADER_BYTES = 192;
/** Position, leaf before and leaf now. */
export const RECEIPT_ENTRY_BYTES = 8 + 2 * HASH_BYTES;
const RECEIPT_MAGIC = encodeText('SkuaGone');
const RECEIPT_HEAD_AT = 136;

/** Chunk files were replaced. */
export const REWRITTEN = 1;
/** A rewriting, whose number is `first`, did not take effect. */
export const VOID = 2;
/** The log was cut back to the position `first`. */
export const CUT = 3;

export interface ReceiptHeader {
  readonly kind: number;
  readonly number: number;
  /** First chunk that the new file covers; of the other kinds, number or position. */
  readonly first: number;
  /** Last chunk. */
  readonly last: number;
  /** Id in the header of the new chunk file. */
  readonly target: Uint8Array;
  readonly count: number;
  readonly timeMs: number;
  /** SHA-256 of all entries. */
  readonly entries: Uint8Array;
  /** Head of the receipts before it. */
  readonly before: Uint8Array;
}

export function encodeReceiptHeader(
  sha256: Sha256,
  { kind, number, first, last, target, count, timeMs, entries, before }: ReceiptHeader,
): { readonly bytes: Uint8Array; readonly head: Uint8Array } {
  const bytes = new Uint8Array(RECEIPT_HEADER_BYTES);
  bytes.set(RECEIPT_MAGIC, 0);
  putI32(bytes, 8, VERSION);
  putI32(bytes, 12, kind);
  putI64(bytes, 16, number);
  putI64(bytes, 24, first);
  putI64(bytes, 32, last);
  bytes.set(target, 40);
  putI64(bytes, 56, count);
  putI64(bytes, 64, timeMs);
  bytes.set(entries, 72);
  bytes.set(before, 104);
  const head = sha256(bytes.subarray(0, RECEIPT_HEAD_AT));
  bytes.set(head, RECEIPT_HEAD_AT);
  return { bytes, head };
}

/** Throws `proof_damaged` for what is not as it was written. */
export function decodeReceiptHeader(
  sha256: Sha256,
  path: string,
  bytes: Uint8Array,
): ReceiptHeader & { readonly head: Uint8Array } {
  if (bytes.length < RECEIPT_HEADER_BYTES || !isSame(bytes.subarray(0, 8), RECEIPT_MAGIC) || u32(bytes, 8) !== VERSION)
    throw damaged(path, 'does not start like a receipt of version 1');
  const head = sha256(bytes.subarray(0, RECEIPT_HEAD_AT));
  if (!isSame(head, bytes.subarray(RECEIPT_HEAD_AT, RECEIPT_HEAD_AT + HASH_BYTES)))
    throw damaged(path, 'has a header that was changed or damaged');
  return {
    kind: u32(bytes, 12),
    number: i64(bytes, 16),
    first: i64(bytes, 24),
    last: i64(bytes, 32),
    target: bytes.slice(40, 56),
    count: i64(bytes, 56),
    timeMs: i64(bytes, 64),
    entries: bytes.slice(72, 104),
    before: bytes.slice(104, 136),
    head,
  };
}

/** What is kept where an attacker does not reach: it speaks for every record below `position`. */
export interface Anchor {
  readonly format: typeof ANCHOR_FORMAT;
  /** 32 hex digits. */
  readonly chain: string;
  readonly chunkSizeBytes: number;
  readonly position: number;
  /** 64 hex digits. */
  readonly link: string;
  /** Receipts that `receiptsHead` covers. */
  readonly receipts: number;
  readonly receiptsHead: string;
  /** ISO 8601, by the clock of the process that made the anchor. */
  readonly madeAt: string;
}

/** Throws `proof_invalid` for what is no anchor. */
export function parseAnchor(text: string, where: string): Anchor {
  let found: Partial<Anchor> | null = null;
  try {
    found = JSON.parse(text) as Partial<Anchor> | null;
  } catch {
    // Reported below.
  }
  const isAnchor =
    found !== null &&
    typeof found === 'object' &&
    found.format === ANCHOR_FORMAT &&
    isHex(found.chain, CHAIN_ID_BYTES) &&
    isHex(found.link, HASH_BYTES) &&
    isHex(found.receiptsHead, HASH_BYTES) &&
    isCount(found.position) &&
    isCount(found.receipts) &&
    isCount(found.chunkSizeBytes) &&
    found.chunkSizeBytes > 0 &&
    typeof found.madeAt === 'string';
  if (!isAnchor)
    throw new SkuaError(
      'proof_invalid',
      `${where} is not an anchor ("${ANCHOR_FORMAT}"). Give one written by \`skua proof export\` or by a node with Proof:Anchor.`,
      { where },
    );
  return found as Anchor;
}

export function isHex(value: unknown, bytes: number): value is string {
  return typeof value === 'string' && value.length === 2 * bytes && /^[0-9a-f]*$/.test(value);
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && equalBytes(a, 0, b, 0, a.length);
}

function damaged(path: string, what: string): SkuaError {
  return new SkuaError(
    'proof_damaged',
    `${path} ${what}. Run \`skua proof verify\` with an anchor: if it finds all records unchanged, restore the file from a backup, or remove the folder ${PROOF_FOLDER} to start a new chain.`,
    { path },
  );
}
