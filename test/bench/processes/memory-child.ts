import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { ANY } from '../../../core/streams/api.ts';
import { newEvent } from '../events.ts';
import { openFolder } from '../open-folder.ts';

const CLIENTS = 64;

export interface MemoryRequest {
  readonly from: number;
  readonly to: number;
}
export interface MemoryResult {
  readonly peakMiB: number;
  readonly nowMiB: number;
  readonly seconds: number;
}

/** A line of /proc/self/status in MiB: VmHWM is the largest resident size so far, of all threads together. */
function statusMiB(name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line?.[1]) / 1024;
}

/** Appends one event to each of many new streams and says how large the process became. */
const open = await openFolder(process.argv[2]!);
for await (const line of createInterface({ input: process.stdin })) {
  const { from, to } = JSON.parse(line) as MemoryRequest;
  const begin = performance.now();
  let next = from;
  const client = async (): Promise<void> => {
    while (next < to) {
      const index = next++;
      await open.store.append(`customer-${String(index).padStart(8, '0')}`, ANY, [newEvent(index)]);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const result: MemoryResult = {
    peakMiB: statusMiB('VmHWM'),
    nowMiB: statusMiB('VmRSS'),
    seconds: (performance.now() - begin) / 1000,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
await open.close();
