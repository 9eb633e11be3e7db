import type {
  ScavengeCheckpoint,
  ScavengePoint,
  ScavengeStage,
  StreamHandle,
} from '../../core/ports/scavenge-state.ts';
import { parseTimestamp, timestampText } from '../../core/base/time.ts';

/** Text of the checkpoint row (core/scavenge/FORMAT.md, "Checkpoint"). */

const STAGES: readonly ScavengeStage[] = [
  'Accumulating',
  'Calculating',
  'ExecutingChunks',
  'MergingChunks',
  'ExecutingIndex',
  'Cleaning',
  'Done',
];
const STAGES_BY_CHUNK: readonly ScavengeStage[] = ['Accumulating', 'ExecutingChunks'];
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,7}))?(?:Z|\+00:00)?$/;
/** JSON.parse would round it. */
const STREAM_HASH = /"streamHash"\s*:\s*(\d{1,20})\s*[,}]/;
const HALF = 0x1_0000_0000n;

export function checkpointText(checkpoint: ScavengeCheckpoint): string {
  const { point, stage, doneChunk, doneStream } = checkpoint;
  let text = `{"scavengePoint":${pointText(point)},"schemaVersion":"V0","checkpointStage":"${stage}"`;
  if (STAGES_BY_CHUNK.includes(stage) && doneChunk !== undefined) text += `,"doneLogicalChunkNumber":${doneChunk}`;
  if (stage === 'Calculating' && doneStream !== undefined) text += `,"doneStreamHandle":${handleText(doneStream)}`;
  // The reference ignores members that it doesn't know, and leaves them out of what it writes.
  if (point.emptiesDeleted === true) text += ',"emptiesDeleted":true';
  return `${text}}`;
}

/** Zeros are left out. */
function pointText({ position, eventNumber, effectiveNowMs, effectiveNowTicks, threshold }: ScavengePoint): string {
  // Without the Z, since the reference takes the time of the record without saying that it is UTC.
  const members = [`"effectiveNow":"${timestampText(effectiveNowMs, effectiveNowTicks ?? 0).slice(0, -1)}"`];
  if (eventNumber !== 0) members.unshift(`"eventNumber":${eventNumber}`);
  if (position !== 0) members.unshift(`"position":${position}`);
  if (threshold !== 0) members.push(`"threshold":${threshold}`);
  return `{${members.join(',')}}`;
}

function handleText(handle: StreamHandle): string {
  if (handle.kind === 'id') return `{"kind":"Id","streamId":${JSON.stringify(handle.name)}}`;
  const hash = BigInt(handle.hi >>> 0) * HALF + BigInt(handle.lo >>> 0);
  return hash === 0n ? '{"kind":"Hash"}' : `{"kind":"Hash","streamHash":${hash}}`;
}

/** Null for a text that is no checkpoint: the run then begins anew. */
export function parseCheckpoint(text: string): ScavengeCheckpoint | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value.schemaVersion !== 'V0') return null;
  const stage = STAGES.find((known) => known === value.checkpointStage);
  const point = pointOf(value.scavengePoint);
  if (stage === undefined || point === null) return null;
  const doneChunk = STAGES_BY_CHUNK.includes(stage) ? (value.doneLogicalChunkNumber ?? undefined) : undefined;
  if (doneChunk !== undefined && !isCount(doneChunk)) return null;
  const doneStream = stage === 'Calculating' ? handleOf(value.doneStreamHandle, text) : undefined;
  if (doneStream === null) return null;
  return {
    point: value.emptiesDeleted === true ? { ...point, emptiesDeleted: true } : point,
    stage,
    ...(doneChunk !== undefined && { doneChunk }),
    ...(doneStream !== undefined && { doneStream }),
  };
}

function pointOf(value: unknown): ScavengePoint | null {
  if (!isObject(value)) return null;
  const { position = 0, eventNumber = 0, effectiveNow, threshold = 0 } = value;
  if (!isCount(position) || !isCount(eventNumber) || !Number.isInteger(threshold) || typeof effectiveNow !== 'string')
    return null;
  const time = TIME.exec(effectiveNow);
  const seconds = time === null ? NaN : parseTimestamp(`${time[1]}Z`);
  if (Number.isNaN(seconds)) return null;
  const fraction = Number((time![2] ?? '').padEnd(7, '0'));
  const ticks = fraction % 10_000;
  return {
    position,
    eventNumber,
    threshold: threshold as number,
    effectiveNowMs: seconds + (fraction - ticks) / 10_000,
    ...(ticks !== 0 && { effectiveNowTicks: ticks }),
  };
}

/** Undefined for none, null for one that can't be understood. */
function handleOf(value: unknown, text: string): StreamHandle | undefined | null {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) return null;
  if (value.kind === 'Id') return typeof value.streamId === 'string' ? { kind: 'id', name: value.streamId } : null;
  if (value.kind !== 'Hash') return null;
  if (value.streamHash === undefined) return { kind: 'hash', hi: 0, lo: 0 };
  const digits = STREAM_HASH.exec(text);
  if (digits === null) return null;
  const hash = BigInt(digits[1]!);
  return hash >= HALF * HALF ? null : { kind: 'hash', hi: Number(hash / HALF), lo: Number(hash % HALF) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
