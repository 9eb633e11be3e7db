export type { HoldView, Holds, StoreHold } from './hold/hold.ts';
export type { ShippableLog } from './shippable-log/shippable-log.ts';
export type { BackupSource, Snapshot, SnapshotCheckpoints, SnapshotFile, SnapshotKind } from './source/source.ts';
