import type { ScavengePhase } from '../scavenge/api.ts';

/**
 * What makes files on object storage real: the newest manifest names all of them, and the commit number at which the tail
 * of the log begins. Created with `If-None-Match` under a number of its own and never changed; whoever loses discards
 * its work. Design: ARCHITECTURE.md, "The log on object storage". Sizes and positions in bytes, times in milliseconds since 1970.
 */
export interface ObjectManifest {
  readonly format: 1;
  /** 1 is written when the prefix is created. */
  readonly number: number;
  /** Text of a UUID, drawn with manifest 1: which store this is. */
  readonly storeId: string;
  readonly writtenMs: number;
  readonly chunkSizeBytes: number;
  /** Commits below this number are in the files named here; the tail begins with it. Commit numbers begin with 1. */
  readonly boundary: number;
  /** Position after the last record of the commits below the boundary. */
  readonly logEnd: number;
  /** The last commit below the boundary ended its chunk: the next one starts at the next chunk. */
  readonly endsChunk: boolean;
  /** Completed chunk files in force, ascending. */
  readonly chunks: readonly ObjectChunk[];
  /** The chunk in which `logEnd` lies, as far as it is in segments; null when it has no data below the boundary. */
  readonly ongoing: ObjectOngoing | null;
  /** Every other file, by the name that it has in a data directory. */
  readonly files: readonly ObjectFile[];
  /** Objects that this manifest or one before it dropped, and that may still be there. */
  readonly dropped: readonly DroppedObject[];
  /** State of the tick itself that must change together with the files; null before the first one. */
  readonly scavenge: ObjectScavenge | null;
}

export interface ObjectFile {
  /** `index/indexmap`, `index/<guid>`, `index/<guid>.bloomfilter`, `index/scavenging/scavenging.db`, ... */
  readonly name: string;
  /** Key of the object; null where the content is `inline`. */
  readonly key: string | null;
  readonly sizeBytes: number;
  /** Content of a small file (INLINE_BYTES_MAX) in Base64. */
  readonly inline?: string;
}

export interface ObjectChunk {
  /** `chunk-NNNNNN.VVVVVV` */
  readonly name: string;
  readonly key: string;
  readonly sizeBytes: number;
  readonly startNumber: number;
  readonly endNumber: number;
  readonly isScavenged: boolean;
  /** As in the footer, so that opening a chunk costs no request. */
  readonly physicalBytes: number;
  readonly logicalBytes: number;
  readonly mapBytes: number;
  readonly mapEntryBytes: number;
}

export interface ObjectOngoing {
  readonly name: string;
  readonly number: number;
  /** The 128 bytes of its header, in hex. */
  readonly header: string;
  /** Contiguous, from the chunk's start to `logEnd`. */
  readonly segments: readonly ObjectSegment[];
}

/** Bytes [from, to) of the log, by position. */
export interface ObjectSegment {
  readonly key: string;
  readonly from: number;
  readonly to: number;
}

export interface DroppedObject {
  readonly key: string;
  readonly droppedMs: number;
}

/** A scavenge that goes on from tick to tick. */
export interface ObjectScavenge {
  readonly scavengeId: string;
  readonly startedMs: number;
  /** What it was started with, for ticks that go on with it. */
  readonly threshold: number;
  readonly syncOnly: boolean;
  readonly state: 'running' | 'ended';
  /** How far it had come when its last part ended; absent before. */
  readonly progress?: ObjectScavengeProgress;
  /** Null while it is running. */
  readonly endedMs: number | null;
  /** Its end stands in the history streams. */
  readonly isTold: boolean;
  /** Result and error text of one that has ended. */
  readonly result: string | null;
  readonly error: string | null;
}

export interface ObjectScavengeProgress {
  readonly phase: ScavengePhase;
  /** Of the phase, as the part that ended last counted them. */
  readonly chunksDone: number;
  readonly chunksTotal: number;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Of all parts so far. */
  readonly bytesReclaimed: number;
}

/** A file up to this size stands in the manifest itself. */
export const INLINE_BYTES_MAX = 8_192;

/** Keys of all objects that a manifest names as in force. */
export function keysOf({ chunks, ongoing, files }: Pick<ObjectManifest, 'chunks' | 'ongoing' | 'files'>): Set<string> {
  const keys = new Set(chunks.map(({ key }) => key));
  for (const { key } of ongoing?.segments ?? []) keys.add(key);
  for (const { key } of files) if (key !== null) keys.add(key);
  return keys;
}
