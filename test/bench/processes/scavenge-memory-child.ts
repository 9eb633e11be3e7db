import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { openFolder } from '../open-folder.ts';

export interface ScavengeMemoryResult {
  readonly peakMiB: number;
  readonly startMiB: number;
  readonly seconds: number;
}

function statusMiB(name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line?.[1]) / 1024;
}

/** Scavenges a directory when it is asked, and says how large the process became. */
for await (const _ of createInterface({ input: process.stdin })) {
  const open = await openFolder(process.argv[2]!);
  const begin = performance.now();
  const startMiB = statusMiB('VmRSS');
  await open.scavenger.start();
  await open.scavenger.idle();
  const last = open.scavenger.last();
  if (last?.result !== 'Success') throw new Error(`The scavenge ended with ${last?.result}: ${last?.error}`);
  const result: ScavengeMemoryResult = {
    peakMiB: statusMiB('VmHWM'),
    startMiB,
    seconds: (performance.now() - begin) / 1000,
  };
  await open.close();
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
