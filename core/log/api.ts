export type { ChunkMap, ChunkMapView, ChunkView } from './chunk-table/chunk-table.ts';
export type { ChunkTable } from './chunk-table/chunk-table.ts';
export type { Chunk } from './chunk/chunk.ts';
export type { LogReader, ReadFor } from './log-reader.ts';
export type { Scrubbed } from './format/scrubbed-file.ts';
export type { TransactionLog } from './transaction-log.ts';
