export type { HoldView, Holds, StoreHold } from './hold.ts';
export type { ShippableLog } from './shippable-log.ts';
export type { BackupSource, Snapshot, SnapshotCheckpoints, SnapshotFile, SnapshotKind } from './source.ts';
