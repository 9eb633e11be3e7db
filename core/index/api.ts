export type { MemTableColumns } from './mem-table.ts';
export type { EntryBatch } from './table-scan.ts';
export type { TableReport } from './table-scavenge.ts';
export type { TableReader } from './table-search.ts';
export type { TableExecuted, TableExecution } from './table-store.ts';
