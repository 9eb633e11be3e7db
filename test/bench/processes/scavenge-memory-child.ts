import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { ANY } from '../../../core/streams/api.ts';
import { openFolder } from '../open-folder.ts';

const CLIENTS = 256;
const METADATA = new TextEncoder().encode('{"$maxCount":5}');

export type ScavengeMemoryRequest = { readonly build: number } | { readonly scavenge: true };
export interface ScavengeMemoryResult { readonly peakMiB: number; readonly startMiB: number; readonly seconds: number }

function statusMiB(name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line?.[1]) / 1024;
}

/** Writes metadata of many streams, or scavenges a directory that has them; says how large the process became. */
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as ScavengeMemoryRequest;
  const open = await openFolder(process.argv[2]!);
  const begin = performance.now();
  const startMiB = statusMiB('VmRSS');
  if ('build' in request) {
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < request.build) {
        const index = next++;
        await open.store.append(`$$customer-${String(index).padStart(8, '0')}`, ANY, [{ id: crypto.randomUUID(), type: '$metadata', isJson: true, data: METADATA, metadata: new Uint8Array(0) }]);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  } else {
    await open.scavenger.start();
    await open.scavenger.idle();
    const last = open.scavenger.last();
    if (last?.result !== 'Success') throw new Error(`The scavenge ended with ${last?.result}: ${last?.error}`);
  }
  const result: ScavengeMemoryResult = { peakMiB: statusMiB('VmHWM'), startMiB, seconds: (performance.now() - begin) / 1000 };
  await open.close();
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
