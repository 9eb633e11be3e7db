import { decodeBase64 } from '../base/base64.ts';
import { i32, i64, u32 } from '../base/bytes.ts';
import { SkuaError } from '../base/errors.ts';
import { guidToText } from '../base/guid.ts';
import { recordPart } from '../log/format.ts';
import { FRAME_BYTES, isRecordLength, RecordFrame } from '../log/format/records.ts';
import type { Digest } from '../ports/digests.ts';
import {
  damageOf,
  documentParts,
  type Fields,
  type FileFormat,
  type FormatWorld,
  jsonOf,
  lineParts,
  type Inspected,
  type Part,
  section,
  wholeOf,
} from '../ports/file-format.ts';
import { decodeText } from '../base/text.ts';
import {
  ANCHOR_FORMAT,
  CHAIN_FORMAT,
  CHAIN_PATH,
  type ChainFile,
  CUT,
  decodeLeavesHeader,
  decodeReceiptHeader,
  EVENT_FORMAT,
  HASH_BYTES,
  isSame,
  LEAVES_ENTRY_BYTES,
  LEAVES_HEADER_BYTES,
  NO_LEAF,
  parseAnchor,
  RECEIPT_ENTRY_BYTES,
  RECEIPT_HEADER_BYTES,
  REWRITTEN,
  VOID,
} from './format/chain-layout.ts';
import { sha256By } from './format/sha256.ts';
import { parseEventProof } from './format/event-proof.ts';

/** The files of the hash chain, and what is exported of it, for programs that look into them. */

/** Bytes read at once: whole entries. */
const ENTRIES_AT_ONCE = 16_384;

const CHAIN: FileFormat = {
  kind: 'proof-chain',
  title: 'start of a hash chain',
  names: [/(?<=^|\/)(?:proofs\/)?chain$/],
  begins: (head) => decodeText(head).includes(`"${CHAIN_FORMAT}"`),
  async *parts({ file }) {
    const bytes = await wholeOf(file);
    const chain = jsonOf(bytes);
    if (chain !== undefined) yield* documentParts(chain, 'chain');
    else
      yield* undecoded(
        bytes,
        new SkuaError('proof_damaged', `${file.path} is not JSON. Restore the file from a backup.`, {
          path: file.path,
        }),
      );
  },
};

function* undecoded(bytes: Uint8Array, error: SkuaError): Generator<Part> {
  yield { kind: 'damage', offset: 0, error };
  yield* lineParts(bytes);
}

const LEAVES: FileFormat = {
  kind: 'proof-leaves',
  title: 'hashes of the records of a chunk',
  names: [/(?<=^|\/)(?:proofs\/)?leaves-\d{6}$/],
  begins: (head) => decodeText(head.subarray(0, 8)) === 'SkuaLeaf',
  async *parts({ file, world }) {
    const sha256 = sha256By(world.digests);
    const { chunkNumber, count, before, root, link, entries } = decodeLeavesHeader(
      sha256,
      file.path,
      (await file.read(0, LEAVES_HEADER_BYTES)).slice(),
    );
    const chunkSize = await chunkSizeOf(world);
    yield section('leaves', { chunkNumber, leaves: count, before, root, link, entries });
    yield* entryParts({
      file,
      from: LEAVES_HEADER_BYTES,
      entryBytes: LEAVES_ENTRY_BYTES,
      count,
      expected: entries,
      digest: world.digests.sha256(),
      entry: (bytes, at, offset) => {
        const local = u32(bytes, at);
        const leaf = bytes.slice(at + 4, at + LEAVES_ENTRY_BYTES);
        const place = chunkSize === null ? {} : { position: chunkNumber * chunkSize + local };
        return {
          kind: 'record',
          group: 'leaves',
          offset,
          ...place,
          describe: () => ({ fields: { offsetInChunk: local, leaf } }),
        };
      },
    });
  },
};

const KINDS: Readonly<Record<number, string>> = {
  [REWRITTEN]: 'chunk files were replaced',
  [VOID]: 'a rewrite did not take effect',
  [CUT]: 'the log was truncated',
};

const RECEIPT: FileFormat = {
  kind: 'proof-receipt',
  title: 'receipt for what a scavenge removed',
  names: [/(?<=^|\/)(?:proofs\/)?receipt-\d{10}$/],
  begins: (head) => decodeText(head.subarray(0, 8)) === 'SkuaGone',
  async *parts({ file, world }) {
    const { kind, number, first, last, target, count, timeMs, entries, before, head } = decodeReceiptHeader(
      sha256By(world.digests),
      file.path,
      (await file.read(0, RECEIPT_HEADER_BYTES)).slice(),
    );
    const place: Fields =
      kind === REWRITTEN
        ? { firstChunk: first, lastChunk: last, newChunkId: guidToText(target, 0) }
        : kind === CUT
          ? { cutPosition: first }
          : { voidReceipt: first };
    yield section('receipt', {
      number,
      what: KINDS[kind] ?? `kind ${kind}`,
      ...place,
      timeMs,
      entries: count,
      before,
      head,
    });
    yield* entryParts({
      file,
      from: RECEIPT_HEADER_BYTES,
      entryBytes: RECEIPT_ENTRY_BYTES,
      count,
      expected: entries,
      digest: world.digests.sha256(),
      entry: (bytes, at, offset) => {
        const [leafBefore, leafNow] = [
          bytes.slice(at + 8, at + 8 + HASH_BYTES),
          bytes.slice(at + 8 + HASH_BYTES, at + RECEIPT_ENTRY_BYTES),
        ];
        return {
          kind: 'record',
          group: 'records that are gone, or changed',
          offset,
          position: i64(bytes, at),
          describe: () => ({ fields: { leafBefore, leafNow: isSame(leafNow, NO_LEAF) ? 'removed' : leafNow } }),
        };
      },
    });
  },
};

interface Entries {
  readonly file: Inspected['file'];
  readonly from: number;
  readonly entryBytes: number;
  /** As the header has it. */
  readonly count: number;
  /** SHA-256 of all entries, as the header has it. */
  readonly expected: Uint8Array;
  readonly digest: Digest;
  readonly entry: (bytes: Uint8Array, at: number, offset: number) => Part;
}

async function* entryParts({
  file,
  from,
  entryBytes,
  count,
  expected,
  digest,
  entry,
}: Entries): AsyncGenerator<Part, void, undefined> {
  const end = from + count * entryBytes;
  for (let at = from; at < end;) {
    const bytes = await file.read(at, Math.min(ENTRIES_AT_ONCE * entryBytes, end - at));
    digest.update(bytes);
    for (let inside = 0; inside + entryBytes <= bytes.length; inside += entryBytes)
      yield entry(bytes, inside, at + inside);
    at += bytes.length - (bytes.length % entryBytes);
    if (bytes.length < entryBytes)
      throw proofDamaged(file.path, `ends before the ${count} entries that its header counts`, at);
  }
  if (file.size > end) throw proofDamaged(file.path, `has ${file.size - end} bytes after its entries`, end);
  if (isSame(digest.finish(), expected)) yield section('checksum', { fits: true });
  else
    yield {
      kind: 'damage',
      offset: from,
      error: proofDamaged(file.path, 'has entries that were changed or damaged', from),
    };
}

function proofDamaged(path: string, what: string, offset: number): SkuaError {
  return new SkuaError('proof_damaged', `${path} ${what}. Restore the file from a backup.`, { path, offset });
}

/** Positions of leaves follow from the size of chunks, which the chain beside them has; null where it has none. */
async function chunkSizeOf({ open }: FormatWorld): Promise<number | null> {
  const file = await open(CHAIN_PATH);
  if (file === null) return null;
  try {
    const size = (jsonOf(await wholeOf(file)) as Partial<ChainFile> | null | undefined)?.chunkSizeBytes;
    return Number.isSafeInteger(size) && size! > 0 ? size! : null;
  } finally {
    await file.close();
  }
}

const ANCHORS: FileFormat = {
  kind: 'proof-anchors',
  title: 'anchors of a hash chain',
  names: [],
  begins: (head) => decodeText(head).includes(`"${ANCHOR_FORMAT}"`),
  async *parts({ file }) {
    const bytes = await wholeOf(file);
    const one = jsonOf(bytes);
    let at = 0;
    for (const line of one === undefined ? decodeText(bytes).split('\n') : [decodeText(bytes)]) {
      const offset = at;
      at += line.length + 1;
      if (line.trim() === '') continue;
      try {
        const { chain, chunkSizeBytes, position, link, receipts, receiptsHead, madeAt } = parseAnchor(line, file.path);
        yield {
          kind: 'record',
          group: 'anchors',
          offset,
          position,
          describe: () => ({ fields: { madeAt, chain, link, receipts }, more: { receiptsHead, chunkSizeBytes } }),
        };
      } catch (error) {
        yield damageOf(error, offset);
      }
    }
  },
};

const EVENT: FileFormat = {
  kind: 'event-proof',
  title: 'proof of one event',
  names: [],
  begins: (head) => decodeText(head).includes(`"${EVENT_FORMAT}"`),
  async *parts({ file }) {
    const proof = parseEventProof(decodeText(await wholeOf(file)), file.path);
    const { chain, chunkSizeBytes, anchorPosition, position, index, count, path, before, links } = proof;
    yield section('proof', {
      chain,
      chunkSizeBytes,
      anchorPosition,
      position,
      leaf: index,
      leaves: count,
      before,
      path: [...path],
      chunksBehind: links.length,
    });
    const bytes = decodeBase64(proof.record)!;
    const frame = new RecordFrame();
    const length = bytes.length < RECORD_BYTES_MIN ? -1 : i32(bytes, 0);
    if (!isRecordLength(length) || length + 4 !== bytes.length)
      throw new SkuaError('proof_invalid', `${file.path} does not hold a record.`, { where: file.path });
    const framed = new Uint8Array(length + FRAME_BYTES);
    framed.set(bytes);
    Object.assign(frame, { bytes: framed, at: 4, length, position: i64(framed, 6), next: 0 });
    yield recordPart(frame, 0);
  },
};

/** As many as the length and the position of a record take, and its type and version. */
const RECORD_BYTES_MIN = 14;

export const PROOF_FORMATS: readonly FileFormat[] = [CHAIN, LEAVES, RECEIPT, ANCHORS, EVENT];
