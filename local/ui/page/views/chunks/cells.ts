import type { DryRunChunk } from '../../../../../core/scavenge/api.ts';
import type { DryRunDocument } from '../../../../../handlers/documents/scavenging.ts';
import type { ChunkView } from '../../../../../core/log/api.ts';
import type { ChunkList } from './chunk-list.ts';

/** Where the complete files of a node lie that shares its log with others. */
export const COLD = 'in object storage';

/** What the map shows of one chunk file. */
export interface Cell {
  readonly index: number;
  readonly chunk: ChunkView;
  /** How many numbers it spans: more than one where a scavenge has merged files. */
  readonly span: number;
  /** Bytes that it takes on the disk, in shares of what chunks of so many numbers may take. */
  readonly fill: number;
  /** What the last dry run said of this very file; null where it was not counted. */
  readonly counted: DryRunChunk | null;
  /** Share of the file's bytes that rewriting it would bring, from 0 to 1; null where it was not counted. */
  readonly removable: number | null;
}

/**
 * The cells of the map, in log order. A file that was written anew since the dry run is a file that it has not counted.
 */
export function cellsOf({ chunks, chunkSize }: ChunkList, report: DryRunDocument | null): readonly Cell[] {
  const countedBy = new Map(report?.chunks.map((counted) => [counted.file, counted]));
  return chunks.map((chunk, index) => {
    const span = chunk.end - chunk.start + 1;
    const counted = countedBy.get(chunk.file) ?? null;
    return {
      index,
      chunk,
      span,
      counted,
      fill: Math.min(1, chunk.bytes / (chunkSize * span)),
      removable:
        counted === null || counted.bytes === 0
          ? null
          : Math.min(1, Math.max(0, counted.bytesReclaimable / counted.bytes)),
    };
  });
}

/** `12`, or `12–15` of a merged file. */
export function numbersOf({ start, end }: Pick<ChunkView, 'start' | 'end'>): string {
  return start === end ? String(start) : `${start}–${end}`;
}
