import { SkuaError } from '../errors.ts';
import { HEADER_BYTES } from '../log/chunk-format.ts';
import type { ChunkTable } from '../log/chunk-table.ts';
import type { Storage } from '../ports/storage.ts';
import type { ShippableLog } from './shipper-log.ts';

/** The log of a running node, as it is shipped. Of a chunk that a scavenge has rewritten nothing is left that could be. */
export function shippableLog(table: ChunkTable, storage: Storage): ShippableLog {
  return {
    chunkSizeBytes: table.chunkSize,
    get end() { return table.end; },
    dataEnd: (chunkNumber) => {
      const start = chunkNumber * table.chunkSize;
      const chunk = table.chunkAt(start);
      if (chunk === undefined) return start;
      return Math.min(table.end, chunk.isCompleted ? chunk.startPosition + chunk.logicalBytes : chunk.endPosition);
    },
    isRewritten: (chunkNumber) => table.chunkAt(chunkNumber * table.chunkSize)?.isScavenged === true,
    chunkNames: () => [...table.all()].filter((chunk) => chunk.isCompleted).map(({ name }) => name),
    read: (from, to) => readLog(table, storage, from, to),
  };
}

async function readLog(table: ChunkTable, storage: Storage, from: number, to: number): Promise<Uint8Array> {
  const chunk = table.chunkAt(from);
  if (chunk === undefined || chunk.isScavenged || to > chunk.endPosition || to > table.end) throw unreadable(from, to);
  const file = await storage.open(chunk.name, 'read');
  try {
    const bytes = await file.read(HEADER_BYTES + from - chunk.startPosition, to - from);
    if (bytes.length === to - from) return bytes;
  } finally {
    await file.close();
  }
  throw unreadable(from, to);
}

function unreadable(from: number, to: number): SkuaError {
  return new SkuaError('invalid_position', `The log from ${from} to ${to} can't be read as it was written: a scavenge has rewritten it.`, { from, to });
}
