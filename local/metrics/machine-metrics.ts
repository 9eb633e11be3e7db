import { readFile, statfs } from 'node:fs/promises';
import * as os from 'node:os';

/** What the process and its machine are doing, read from the system. */

interface DiskSpace {
  /** Folder that was asked about. */
  readonly disk: string;
  readonly usedBytes: number;
  readonly totalBytes: number;
  readonly availableBytes: number;
}

/** Space of the disk that holds a folder; null where the system does not say. */
export async function diskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { bsize, blocks, bfree, bavail } = await statfs(folder);
    return {
      disk: folder,
      usedBytes: (blocks - bfree) * bsize,
      totalBytes: blocks * bsize,
      availableBytes: bavail * bsize,
    };
  } catch {
    return null;
  }
}

interface DiskIo {
  readonly readBytes: number;
  readonly writtenBytes: number;
  readonly readOps: number;
  readonly writeOps: number;
}

/** What the process has read and written since its start; null where the system does not say (it does on Linux). */
export async function diskIo(): Promise<DiskIo | null> {
  try {
    const fields = new Map(
      (await readFile('/proc/self/io', 'utf8')).split('\n').map((line) => line.split(': ') as [string, string]),
    );
    const field = (name: string) => Number(fields.get(name) ?? 0);
    return {
      readBytes: field('read_bytes'),
      writtenBytes: field('write_bytes'),
      readOps: field('syscr'),
      writeOps: field('syscw'),
    };
  } catch {
    return null;
  }
}

interface ProcessMemory {
  readonly workingSetBytes: number;
  /** Null where the system does not say. */
  readonly virtualBytes: number | null;
  readonly threads: number | null;
}

export async function processMemory(): Promise<ProcessMemory> {
  const workingSetBytes = process.memoryUsage.rss();
  try {
    const status = await readFile('/proc/self/status', 'utf8');
    const kib = /^VmSize:\s+(\d+) kB$/m.exec(status)?.[1];
    const threads = /^Threads:\s+(\d+)$/m.exec(status)?.[1];
    return {
      workingSetBytes,
      virtualBytes: kib === undefined ? null : Number(kib) * 1_024,
      threads: threads === undefined ? null : Number(threads),
    };
  } catch {
    return { workingSetBytes, virtualBytes: null, threads: null };
  }
}

/** Load averages of 1, 5 and 15 minutes, by their label; zeros on systems without them. */
export function loadAverages(): Readonly<Record<'1m' | '5m' | '15m', number>> {
  const [one = 0, five = 0, fifteen = 0] = os.loadavg();
  return { '1m': one, '5m': five, '15m': fifteen };
}

export function machineMemory(): { readonly freeBytes: number; readonly totalBytes: number } {
  return { freeBytes: os.freemem(), totalBytes: os.totalmem() };
}
