import { statfsSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';

const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: 'ext4',
  0x01021994: 'tmpfs',
  0x58465342: 'xfs',
  0x9123683e: 'btrfs',
  0x794c7630: 'overlay',
  0x2fc12fc1: 'zfs',
  0x6969: 'nfs',
  0xf2f52010: 'f2fs',
};

/** The machine in one line: absolute numbers mean nothing without it. */
export function machineLine(folder: string): string {
  const type = statfsSync(folder).type;
  const fileSystem = FILE_SYSTEMS[type] ?? `file system 0x${type.toString(16)}`;
  const model = cpus()[0]?.model.trim();
  return `${availableParallelism()} cores${model !== undefined && model !== '' && model !== 'unknown' ? ` (${model})` : ''}, ${Math.round(totalmem() / 2 ** 30)} GiB memory, Node.js ${process.version}, ${fileSystem}`;
}

/** A sync to memory costs nothing: figures of durable appends taken there are worthless. */
export function isMemoryFileSystem(folder: string): boolean {
  return FILE_SYSTEMS[statfsSync(folder).type] === 'tmpfs';
}
