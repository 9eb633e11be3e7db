import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Random } from '../../support/random.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { comeToRest, openFolder } from '../open-folder.ts';
import { copyWithDigest } from '../raw-copy.ts';
import { chunkNames, halfDeletedLog, linkedCopy } from '../scavenge-data.ts';

/** Chunks that are filled; two of them leave about as much as fits one. */
const CHUNKS = 7.5;
/** Chunks of this figure in one of the other scavenging figures. */
const PARTS = 8;
const IDLE_RUNS = 10;
const RUN_RATIO_MAX = 3.2;
const IDLE_RATIO_MAX = 1.5;
const MIB = 1_048_576;

/** Complete chunk files by name and place on the disk, and their bytes. */
function completeFiles(folder: string): Map<string, number> {
  const files = new Map<string, number>();
  for (const name of chunkNames(folder).slice(0, -1)) {
    const { ino, size } = statSync(join(folder, name));
    files.set(`${name} ${ino}`, size);
  }
  return files;
}

export const scavengeSmall: Figure = {
  name: 'scavenge-small',
  how: `The first scavenge, merging on, of 240 MiB in chunks of 32 MiB (events of 2 kB, each by chance of a deleted stream), from the start of the run, in a store that has come to rest, to its end; the limit is a copy of the files with fsync. Then ${IDLE_RUNS} runs with nothing to remove: the bytes of all complete chunk files that are new behind a run, beside those of the last file that the first run left.`,
  async run({ folder, windows, scavengeChunkBytes, say }) {
    const bytes = scavengeChunkBytes / PARTS;
    const template = join(folder, 'small-scavenge');
    const random = new Random(1);
    await halfDeletedLog(template, CHUNKS, bytes, say, () => random.chance(0.5));
    const files = chunkNames(template).map((name) => join(template, name));
    const target = join(folder, 'limit.tmp');
    const measured = { limit: [] as number[], ours: [] as number[] };
    const idle = { limit: [] as number[], ours: [] as number[] };
    copyWithDigest(files, target, false);
    for (let window = 0; window < windows; window++) {
      const work = join(folder, `small-scavenge-${window}`);
      linkedCopy(template, work);
      const open = await openFolder(work);
      await comeToRest(open);
      const scavenge = async (): Promise<void> => {
        await open.scavenger.start();
        await open.scavenger.idle();
        const last = open.scavenger.last();
        if (last?.result !== 'Success') throw new Error(`The scavenge ended with ${last?.result}: ${last?.error}`);
      };
      measured.limit.push(copyWithDigest(files, target, false));
      const begin = performance.now();
      await scavenge();
      measured.ours.push((performance.now() - begin) / 1000);
      let before = completeFiles(work);
      idle.limit.push([...before.values()].at(-1)! / MIB);
      let written = 0;
      for (let run = 0; run < IDLE_RUNS; run++) {
        await scavenge();
        const after = completeFiles(work);
        for (const [file, size] of after) if (!before.has(file)) written += size;
        before = after;
      }
      idle.ours.push(written / MIB);
      await open.close();
      rmSync(work, { recursive: true });
    }
    return [
      row('first scavenge of 7.5 chunks of 32 MiB beside a copy', 's', measured, {
        kind: 'at most',
        value: RUN_RATIO_MAX,
      }),
      row('ten runs with nothing to remove: bytes of chunk files beside the last one', 'MiB', idle, {
        kind: 'at most',
        value: IDLE_RATIO_MAX,
      }),
    ];
  },
};
