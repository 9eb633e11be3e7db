import { join } from 'node:path';
import { NODE_FLAGS, startHelper } from '../child.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import type { ScavengeMemoryRequest, ScavengeMemoryResult } from '../processes/scavenge-memory-child.ts';

const LIMIT_MIB = 512;

export const scavengeMemory: Figure = {
  name: 'scavenge-memory',
  how: 'One process gives metadata to five million streams. Another opens the directory and scavenges it; measured is its largest resident size (VmHWM), start and worker threads included.',
  async run(settings) {
    const folder = join(settings.folder, 'many-streams');
    const ask = async (request: ScavengeMemoryRequest): Promise<ScavengeMemoryResult> => {
      const child = startHelper([...NODE_FLAGS, 'test/bench/processes/scavenge-memory-child.ts', folder]);
      try {
        return await child.ask<ScavengeMemoryResult>(request);
      } finally {
        await child.stop();
      }
    };
    settings.say(`  giving metadata to ${settings.scavengeStreams} streams ...`);
    await ask({ build: settings.scavengeStreams });
    const result = await ask({ scavenge: true });
    return [row('memory of a scavenge, 5 M streams with metadata', 'MiB', { limit: [LIMIT_MIB], ours: [result.peakMiB] }, { kind: 'below', value: 1 }, [
      `the run took ${result.seconds.toFixed(0)} s; ${Math.round(result.startMiB)} MiB before it`,
    ])];
  },
};
