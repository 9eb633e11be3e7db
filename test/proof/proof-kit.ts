import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { i32, i64 } from '../../core/base/bytes.ts';
import {
  decodeFooter,
  decodeHeader,
  encodeFooter,
  FOOTER_BYTES,
  HEADER_BYTES,
  parseChunkFileNames,
  takeInventory,
} from '../../core/log/format/chunk-format.ts';
import type { Anchor } from '../../core/integrity/format/chain-layout.ts';
import { type ProofSummary, verifyProof } from '../../core/integrity/verify-chain/verify-chain.ts';
import type { ProofFinding, ProofNote } from '../../core/integrity/verify-chain/verify-report.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { encodeText } from '../../core/base/text.ts';
import type { Random } from '../support/random.ts';
import { openTestStore, type TestStoreOptions } from '../support/test-store.ts';
import { contentOf, copyTo } from '../log/kit.ts';

export const CHUNK_BYTES = 65_536;

/** A store with a chain of hashes. */
export function openProven(storage: Storage, options: Partial<TestStoreOptions> = {}): Promise<DirectoryStore> {
  return openTestStore({
    storage,
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: 500,
    beginsProofs: true,
    ...options,
  });
}

let nextId = 0;

export async function append(open: DirectoryStore, stream: string, data: Uint8Array, type = 'thing'): Promise<void> {
  const id = `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`;
  await open.store.append(stream, ANY, [{ id, type, isJson: false, data, metadata: new Uint8Array(0) }]);
}

/** Events of several streams: some that a scavenge removes, some that are deleted for good, most that stay. */
export async function fill(
  open: DirectoryStore,
  random: Random,
  events: number,
  streams: readonly string[] = ['kept', 'short', 'short', 'gone', 'other'],
): Promise<void> {
  await open.store.append('$$short', ANY, [
    {
      id: `10000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`,
      type: '$metadata',
      isJson: true,
      data: encodeText('{"$maxCount":2}'),
      metadata: new Uint8Array(0),
    },
  ]);
  for (let i = 0; i < events; i++) await append(open, random.pick(streams), random.bytes(random.int(1, 160)));
}

export async function scavenge(open: DirectoryStore): Promise<void> {
  await open.scavenger.start({});
  await open.scavenger.idle();
  const last = open.scavenger.last();
  if (last?.result !== 'Success') throw new Error(`The scavenge ended as ${last?.result}: ${last?.error}`);
}

export async function copyOf(storage: Storage): Promise<MemoryStorage> {
  const copy = new MemoryStorage();
  await copyTo(storage, copy, ['', 'proofs', 'index', 'index/stream-existence', 'index/scavenging']);
  return copy;
}

interface Verdict extends ProofSummary {
  readonly told: readonly ProofFinding[];
  readonly notes: readonly ProofNote[];
}

export async function verify(storage: Storage, anchors: readonly Anchor[], isStrict = false): Promise<Verdict> {
  const told: ProofFinding[] = [];
  const notes: ProofNote[] = [];
  const run = verifyProof({ storage, digests: nodeDigests, anchors, isStrict });
  for (;;) {
    const next = await run.next();
    if (next.done === true) return { ...next.value, told, notes };
    if (next.value.kind === 'finding') told.push(next.value);
    else if (next.value.kind === 'note') notes.push(next.value);
  }
}

/** A record in its frame. */
export interface Framed {
  readonly file: string;
  readonly offset: number;
  readonly size: number;
  readonly position: number;
  readonly isScavenged: boolean;
  readonly isCompleted: boolean;
}

/** Every record of the files in force, below a position of the log. */
export async function recordsIn(storage: Storage, below: number): Promise<Framed[]> {
  const out: Framed[] = [];
  const files = parseChunkFileNames(await storage.list(''));
  const { latest } = await takeInventory(
    files,
    0,
    async ({ name }) => decodeHeader(name, (await contentOf(storage, name)).subarray(0, HEADER_BYTES)).endNumber,
  );
  for (const {
    file: { name },
  } of latest) {
    const bytes = await contentOf(storage, name);
    const header = decodeHeader(name, bytes.subarray(0, HEADER_BYTES));
    const footer = footerOf(name, bytes);
    for (
      let at = HEADER_BYTES;
      at < HEADER_BYTES + (footer?.physicalBytes ?? header.chunkSize) && i32(bytes, at) > 0;
    ) {
      const size = i32(bytes, at) + 8;
      const position = i64(bytes, at + 6);
      if (position < below)
        out.push({
          file: name,
          offset: at,
          size,
          position,
          isScavenged: header.isScavenged,
          isCompleted: footer !== null,
        });
      at += size;
    }
  }
  return out;
}

function footerOf(name: string, bytes: Uint8Array) {
  try {
    return decodeFooter(name, bytes.subarray(bytes.length - FOOTER_BYTES), bytes.length);
  } catch {
    return null;
  }
}

/**
 * Gives a file other data, with a footer that fits, and none of what was behind them. Its map and its checksum are
 * `skua verify`'s to judge.
 */
export function withData(bytes: Uint8Array, name: string, data: Uint8Array): Uint8Array {
  const footer = footerOf(name, bytes);
  if (footer === null) {
    const out = bytes.slice();
    out.fill(0, HEADER_BYTES);
    out.set(data, HEADER_BYTES);
    return out;
  }
  const out = new Uint8Array(Math.ceil((HEADER_BYTES + data.length + FOOTER_BYTES) / 4_096) * 4_096);
  out.set(bytes.subarray(0, HEADER_BYTES), 0);
  out.set(data, HEADER_BYTES);
  out.set(encodeFooter(data.length, Math.max(data.length, footer.logicalBytes), 0), out.length - FOOTER_BYTES);
  return out;
}

export function dataOf(bytes: Uint8Array, name: string): Uint8Array {
  const footer = footerOf(name, bytes);
  return bytes.slice(HEADER_BYTES, footer === null ? bytes.length : HEADER_BYTES + footer.physicalBytes);
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
