import { join } from 'node:path';
import { NODE_FLAGS, startHelper } from '../child.ts';
import { indexedLog } from '../encoded-log.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import type { ScavengeMemoryResult } from '../processes/scavenge-memory-child.ts';

const LIMIT_MIB = 512;
const CHUNK_BYTES = 268_435_456;
const CHUNK_BYTES_SMOKE = 1_048_576;

export const scavengeMemory: Figure = {
  name: 'scavenge-memory',
  isLong: true,
  how: 'A directory in which five million streams have metadata and nothing else (chunks of 256 MiB, encoded by the bench; the index built by the store). A process opens it and scavenges it; measured is its largest resident size (VmHWM), start and worker threads included.',
  async run(settings) {
    const folder = join(settings.folder, 'many-streams');
    await indexedLog(
      folder,
      {
        events: settings.scavengeStreams,
        chunkBytes: settings.isSmoke ? CHUNK_BYTES_SMOKE : CHUNK_BYTES,
        data: '{"$maxCount":5}',
        prefix: '$$customer-',
        eventsAStream: 1,
        type: '$metadata',
      },
      settings.say,
    );
    const child = startHelper([...NODE_FLAGS, 'test/bench/processes/scavenge-memory-child.ts', folder]);
    try {
      const result = await child.ask<ScavengeMemoryResult>('scavenge');
      return [
        row(
          'memory of a scavenge, 5 M streams with metadata',
          'MiB',
          { limit: [LIMIT_MIB], ours: [result.peakMiB] },
          { kind: 'below', value: 1 },
          [`the run took ${result.seconds.toFixed(0)} s; ${Math.round(result.startMiB)} MiB before it`],
        ),
      ];
    } finally {
      await child.stop();
    }
  },
};
