export type { MemTableColumns } from './mem-table/mem-table.ts';
export type { EntryBatch } from './format/table-scan.ts';
export type { TableReport } from './tables/table-scavenge.ts';
export type { TableReader } from './tables/tables.ts';
export type { TableExecuted, TableExecution } from './tables/table-store.ts';
export type { IndexHome, IndexSettings } from './index-settings.ts';
