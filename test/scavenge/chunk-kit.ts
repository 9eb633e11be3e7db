import { BlockCache } from '../../core/cache/cache.ts';
import { Hash64, streamHasher, type StreamHasher } from '../../core/base/stream-hash.ts';
import {
  align4096,
  encodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  MD5_BYTES,
} from '../../core/log/format/chunk-format.ts';
import { openCompleted, scanChunk } from '../../core/log/chunk/chunk.ts';
import { encodePrepare, prepareFrameBytes, RecordFrame } from '../../core/log/format/records.ts';
import type { JobContext } from '../../core/ports/jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import {
  STATUS_ACTIVE,
  type MetastreamData,
  type OriginalStreamData,
  type ScavengeState,
} from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { RunSettings } from '../../core/scavenge/sources/run-settings.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';

/** 2022-01-05, EffectiveNow of these tests. */
export const NOW_MS = Date.UTC(2022, 0, 5);
export const ID = Uint8Array.from({ length: 16 }, (_, i) => i + 1);
const STATE_OPTIONS = { pageSizeBytes: 16_384, cacheBytes: 1_048_576, hashUsersCacheEntries: 100 };
const POINT = { position: Number.MAX_SAFE_INTEGER, eventNumber: 0, effectiveNowMs: NOW_MS, threshold: 0 };

export function runSettings(
  more: Partial<RunSettings['point']> & { unsafe?: boolean; keepsDeletedData?: boolean } = {},
): RunSettings {
  const { unsafe = false, keepsDeletedData = false, ...point } = more;
  return {
    point: { ...POINT, ...point },
    unsafeIgnoreHardDelete: unsafe,
    keepsDeletedData,
    state: STATE_OPTIONS,
    throttle: { percent: 100, elapsedMs: 0, restedMs: 0 },
  };
}

export interface EventInput {
  readonly stream: string;
  readonly number?: number;
  readonly position?: number;
  readonly flags?: number;
  readonly timestampMs?: number;
  readonly timestampTicks?: number;
  readonly dataBytes?: number;
  readonly data?: string;
  readonly eventId?: Uint8Array;
}

/** A framed prepare. */
export function event(input: EventInput): Uint8Array {
  const { stream, number = 0, position = 0, flags = 0x27, timestampMs = NOW_MS, timestampTicks = 0 } = input;
  const name = new TextEncoder().encode(stream);
  const type = new TextEncoder().encode('t');
  const data =
    input.data !== undefined
      ? new TextEncoder().encode(input.data)
      : new Uint8Array(input.dataBytes ?? 0).fill(number & 255);
  const out = new Uint8Array(prepareFrameBytes(name.length, type.length, data.length, 0));
  encodePrepare(out, 0, {
    position,
    flags,
    transactionPosition: position,
    transactionOffset: 0,
    expectedVersion: number - 1,
    stream: name,
    eventId: input.eventId ?? ID,
    correlationId: ID,
    timestampMs,
    timestampTicks,
    eventType: type,
    data,
    metadata: new Uint8Array(0),
  });
  return out;
}

/** Writes a completed, unscavenged chunk file of these events, one behind the other; a chunk size must hold them. */
export async function writeChunkFile(
  storage: Storage,
  name: string,
  number: number,
  chunkSize: number,
  events: readonly EventInput[],
  version = 3,
): Promise<void> {
  const records: Uint8Array[] = [];
  let local = 0;
  for (const input of events) {
    const bytes = event({ ...input, position: number * chunkSize + local });
    records.push(bytes);
    local += bytes.length;
  }
  const end = HEADER_BYTES + local;
  const bytes = new Uint8Array(version === 2 ? end + FOOTER_BYTES : align4096(end + FOOTER_BYTES));
  bytes.set(
    encodeHeader({ version, chunkSize, startNumber: number, endNumber: number, isScavenged: false, chunkId: ID }),
    0,
  );
  let at = HEADER_BYTES;
  for (const record of records) {
    bytes.set(record, at);
    at += record.length;
  }
  bytes.set(encodeFooter(local, local, 0), bytes.length - FOOTER_BYTES);
  const md5 = nodeDigests.md5();
  md5.update(bytes.subarray(0, bytes.length - MD5_BYTES));
  bytes.set(md5.finish(), bytes.length - MD5_BYTES);
  const file = await storage.create(name);
  await file.writeAt(0, bytes);
  await file.sync();
  await file.close();
}

/** Position and bytes of each record of a complete chunk file, in order. */
export async function recordsOf(storage: Storage, name: string): Promise<{ position: number; text: string }[]> {
  const chunk = await openCompleted(storage, new BlockCache(0), name);
  const out: { position: number; text: string }[] = [];
  await scanChunk(chunk, chunk.startPosition, (frame: RecordFrame) => {
    out.push({
      position: frame.position,
      text: Buffer.from(frame.bytes.subarray(frame.at, frame.at + frame.length)).toString('latin1'),
    });
  });
  await chunk.file.retire();
  return out;
}

/** A state in which these streams have rows; a name that starts with `$$` is a metastream's. */
export function statesWith(
  rows: Readonly<Record<string, Partial<OriginalStreamData & MetastreamData>>>,
  hasher: StreamHasher = streamHasher,
): MemoryScavengeStates {
  const states = new MemoryScavengeStates();
  const state = states.open();
  state.begin();
  for (const [name, row] of Object.entries(rows)) put(state, name, row, hasher);
  state.commit({ point: POINT, stage: 'ExecutingChunks' });
  state.close();
  return states;
}

function put(state: ScavengeState, name: string, row: Partial<OriginalStreamData>, hasher: StreamHasher): void {
  const hash = new Hash64();
  hasher.hash(name, hash);
  state.register(name, hash.hi, hash.lo);
  const discardPoint = row.discardPoint ?? 0;
  if (name.startsWith('$$'))
    state.setMetastream(name, hash.hi, hash.lo, { isTombstoned: row.isTombstoned ?? false, discardPoint });
  else {
    state.setOriginal(name, hash.hi, hash.lo, {
      isTombstoned: false,
      maxAge: null,
      maxCount: null,
      truncateBefore: null,
      discardPoint,
      maybeDiscardPoint: discardPoint,
      status: STATUS_ACTIVE,
      ...row,
    });
  }
}

export interface ContextOptions {
  readonly states?: MemoryScavengeStates;
  readonly hasher?: StreamHasher;
  readonly onCheckpoint?: () => void | Promise<void>;
}

export function jobContext(storage: Storage, options: ContextOptions = {}): JobContext {
  const clock = new ManualClock();
  return {
    storage,
    digests: nodeDigests,
    ids: new SeededIds(3),
    hasher: options.hasher ?? streamHasher,
    scavengeStates: options.states ?? new MemoryScavengeStates(),
    progress: () => {},
    monotonicMs: () => clock.monotonicMs(),
    sleep: async () => {},
    checkpoint: async () => options.onCheckpoint?.(),
  };
}

/** What `skua verify` has against a directory. */
export async function errorsIn(storage: Storage): Promise<string[]> {
  const errors: string[] = [];
  for await (const item of verifyDirectory({ storage, digests: nodeDigests, clock: new ManualClock() })) {
    if (item.kind === 'finding' && item.severity === 'error')
      errors.push(`${item.code} ${item.file} ${item.offset}: ${item.message}`);
  }
  return errors;
}
