import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ACCUMULATE_JOB } from '../../../core/scavenge/accumulation.ts';
import { CALCULATE_JOB } from '../../../core/scavenge/calculation.ts';
import { EXECUTE_CHUNK_JOB } from '../../../core/scavenge/chunk-execution.ts';
import type { ExecuteChunkResult } from '../../../core/scavenge/chunk-execution.ts';
import { MERGE_CHUNKS_JOB } from '../../../core/scavenge/chunk-merging.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { copyWithDigest } from '../raw-copy.ts';
import { halfDeletedLog } from '../scavenge-data.ts';
import { jobBench } from '../scavenge-jobs.ts';

/** Neighbours that are merged: together one chunk. */
const MERGED = 4;

export const scavengeChunk: Figure = {
  name: 'scavenge-chunk',
  how: 'Events of 2 kB, every second of a deleted stream. The job that rewrites one chunk of 256 MiB, in a worker thread as in a run, after accumulation and calculation; and the job that merges four chunks of 64 MiB. The limit reads the same files in blocks of 1 MiB, takes the MD5 of every byte, writes it all and calls fdatasync. Files are in the page cache; ratios are of time.',
  async run(settings) {
    const bytes = settings.scavengeChunkBytes;
    const folder = join(settings.folder, 'one-chunk');
    await halfDeletedLog(folder, 2, bytes, settings.say);
    const one = await jobBench(folder, bytes);
    const limitTarget = join(settings.folder, 'limit.tmp');
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const begin = performance.now();
      await work();
      return (performance.now() - begin) / 1000;
    };
    try {
      await one.jobs.run(ACCUMULATE_JOB, { files: one.files, settings: one.settings, fromChunk: 0 });
      await one.jobs.run(CALCULATE_JOB, { files: one.files, settings: one.settings, after: null });
      const source = one.files.chunks[0]!.name;
      let result: ExecuteChunkResult | null = null;
      const rewrite = async (): Promise<number> => {
        const target = one.newTarget('scavenge');
        const seconds = await timed(async () => {
          result = (await one.jobs.run(EXECUTE_CHUNK_JOB, {
            settings: one.settings,
            chunkSize: bytes,
            source,
            ...target,
          })) as ExecuteChunkResult;
        });
        rmSync(join(folder, target.target));
        return seconds;
      };
      const limit = (): number => copyWithDigest([join(folder, source)], limitTarget);
      limit();
      await rewrite();
      const rewriting = await alternate(settings.windows, limit, rewrite);
      const { recordsKept, recordsDiscarded } = result!;
      const small = join(settings.folder, 'quarter-chunks');
      await halfDeletedLog(small, MERGED + 1, bytes / MERGED, settings.say);
      const many = await jobBench(small, bytes / MERGED);
      const sources = many.files.chunks.slice(0, MERGED).map((chunk) => chunk.name);
      const merge = async (): Promise<number> => {
        const target = many.newTarget('merge.scavenge');
        const seconds = await timed(() =>
          many.jobs.run(MERGE_CHUNKS_JOB, { chunkSize: bytes / MERGED, sources, ...target }),
        );
        rmSync(join(small, target.target));
        return seconds;
      };
      const mergeLimit = (): number =>
        copyWithDigest(
          sources.map((name) => join(small, name)),
          limitTarget,
        );
      try {
        mergeLimit();
        await merge();
        return [
          row('rewriting one chunk, half removed', 's', rewriting, { kind: 'at most', value: 1 }, [
            `${recordsKept} records kept, ${recordsDiscarded} discarded`,
          ]),
          row('merging four quarter chunks', 's', await alternate(settings.windows, mergeLimit, merge), {
            kind: 'at most',
            value: 1.5,
          }),
        ];
      } finally {
        await many.jobs.close();
      }
    } finally {
      await one.jobs.close();
    }
  },
};
