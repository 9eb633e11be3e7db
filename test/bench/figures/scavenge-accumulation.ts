import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ACCUMULATE_JOB } from '../../../core/scavenge/accumulation.ts';
import type { AccumulateResult } from '../../../core/scavenge/accumulation.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { RawScan } from '../raw-scan.ts';
import { jobBench } from '../scavenge-jobs.ts';
import { sharedLog } from '../shared-log.ts';

export const scavengeAccumulation: Figure = {
  name: 'scavenge-accumulation',
  how: 'The accumulation job over the log of the reading figures (events of 256 bytes), in a worker thread, with a new scavenge database each time. The limit is the loop of the reading figures.',
  async run(settings) {
    const log = await sharedLog(settings);
    const scan = new RawScan(log.folder);
    const bench = await jobBench(log.folder, scan.chunkBytes);
    const limit = (): number => {
      const begin = performance.now();
      return (scan.range(0, scan.end) / (performance.now() - begin)) * 1000;
    };
    const ours = async (): Promise<number> => {
      rmSync(join(log.folder, 'index', 'scavenging'), { recursive: true, force: true });
      const begin = performance.now();
      const { records } = (await bench.jobs.run(ACCUMULATE_JOB, {
        files: bench.files,
        settings: bench.settings,
        fromChunk: 0,
      })) as AccumulateResult;
      return (records / (performance.now() - begin)) * 1000;
    };
    try {
      limit();
      await ours();
      return [
        row('accumulation', 'events/s', await alternate(settings.windows, limit, ours), {
          kind: 'at least',
          value: 0.4,
        }),
      ];
    } finally {
      rmSync(join(log.folder, 'index', 'scavenging'), { recursive: true, force: true });
      scan.close();
      await bench.jobs.close();
    }
  },
};
