import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import { comeToRest, openFolder } from '../open-folder.ts';
import { copyHalf, copyWithDigest } from '../raw-copy.ts';
import { chunkNames, halfDeletedLog, linkedCopy } from '../scavenge-data.ts';

const CHUNKS = 4;
const SMALL_CHUNKS = 100;
/** Seconds a chunk that a run with nothing to remove may take. */
const IDLE_SECONDS_A_CHUNK = 0.02;
/** What the first scavenge with merging may take of the time of its limit. */
const MERGED_RATIO_MAX = 1.3;
/** Logs of a gibibyte that are scavenged with merging. */
const MERGED = [
  { name: 'four', chunks: 4 },
  { name: '32', chunks: 32 },
] as const;
/** Windows of a whole run, which takes its time. */
const WINDOWS_MAX = 3;

/** Seconds from the start of a run to its end. */
async function scavenge(open: Awaited<ReturnType<typeof openFolder>>): Promise<number> {
  const begin = performance.now();
  await open.scavenger.start();
  await open.scavenger.idle();
  const seconds = (performance.now() - begin) / 1000;
  const last = open.scavenger.last();
  if (last?.result !== 'Success') throw new Error(`The scavenge ended with ${last?.result}: ${last?.error}`);
  return seconds;
}

/** First scavenges of copies of a log, merging on, beside reading it once, with an MD5, and writing half of it once. */
async function mergedRun(
  { name, chunks }: (typeof MERGED)[number],
  { folder, windows, scavengeChunkBytes, say }: Settings,
): Promise<Row> {
  const bytes = (scavengeChunkBytes * CHUNKS) / chunks;
  const template = join(folder, `${name}-chunks`);
  await halfDeletedLog(template, chunks, bytes, say);
  const files = chunkNames(template).map((file) => join(template, file));
  const target = join(folder, 'limit.tmp');
  const measured = { limit: [] as number[], ours: [] as number[] };
  const left: number[] = [];
  copyHalf(files, target, bytes);
  for (let i = 0; i < Math.min(windows, WINDOWS_MAX); i++) {
    const work = join(folder, `${name}-merged-${i}`);
    linkedCopy(template, work);
    const open = await openFolder(work);
    await comeToRest(open);
    measured.limit.push(copyHalf(files, target, bytes));
    measured.ours.push(await scavenge(open));
    left.push(chunkNames(work).length);
    await open.close();
    rmSync(work, { recursive: true });
  }
  return row(
    `first scavenge of ${name} chunks, merging on`,
    's',
    measured,
    { kind: 'at most', value: MERGED_RATIO_MAX },
    [`${files.length} files before, ${left.join(', ')} after`],
  );
}

export const scavengeRun: Figure = {
  name: 'scavenge-run',
  how: `The first scavenge of a directory with ${CHUNKS} chunks of 256 MiB (events of 2 kB, every second of a deleted stream), all phases, merging off, from the start of the run, in a store that has come to rest, to its end. The limit is the loop of scavenge-chunk over the same chunks; a plain copy with fsync stands in the notes. Then a second run on ${SMALL_CHUNKS} chunks of 1 MiB from which nothing can be removed any more; its limit is ${IDLE_SECONDS_A_CHUNK} s a chunk. Then the first scavenge with merging on, of the same bytes in ${MERGED.map(({ chunks }) => chunks).join(' and in ')} chunks; the limit reads the files once in blocks of 1 MiB, takes the MD5 of every byte, writes every second block once, into files of a chunk size, and calls fdatasync. Ratios are of time.`,
  async run(settings) {
    const bytes = settings.scavengeChunkBytes;
    const template = join(settings.folder, 'four-chunks');
    await halfDeletedLog(template, CHUNKS, bytes, settings.say);
    const files = chunkNames(template).map((name) => join(template, name));
    const target = join(settings.folder, 'limit.tmp');
    const measured = { limit: [] as number[], ours: [] as number[] };
    const plain: number[] = [];
    copyWithDigest(files, target);
    for (let i = 0; i < Math.min(settings.windows, WINDOWS_MAX); i++) {
      const work = join(settings.folder, `four-chunks-${i}`);
      linkedCopy(template, work);
      const open = await openFolder(work, { scavenge: { disableMerging: true } });
      await comeToRest(open);
      measured.limit.push(copyWithDigest(files, target));
      plain.push(copyWithDigest(files, target, false));
      measured.ours.push(await scavenge(open));
      await open.close();
      rmSync(work, { recursive: true });
    }
    const small = join(settings.folder, 'small-chunks');
    const smallBytes = Math.min(1_048_576, bytes);
    await halfDeletedLog(
      small,
      settings.isSmoke ? CHUNKS : SMALL_CHUNKS * settings.dataShare,
      smallBytes,
      settings.say,
    );
    const open = await openFolder(small, { scavenge: { disableMerging: true } });
    await scavenge(open);
    const idle: number[] = [];
    for (let i = 0; i < settings.windows; i++) {
      const chunks = chunkNames(small).length;
      idle.push((await scavenge(open)) / chunks);
    }
    await open.close();
    const perPlain = measured.ours
      .map((seconds, i) => seconds / plain[i]!)
      .map((ratio) => ratio.toFixed(2))
      .join(', ');
    const merged: Row[] = [];
    for (const log of MERGED) merged.push(await mergedRun(log, settings));
    return [
      ...merged,
      row('first scavenge of four chunks', 's', measured, { kind: 'at most', value: 1.5 }, [
        `beside a plain copy with fsync: ${perPlain} times as long`,
      ]),
      row(
        'run with nothing to remove, a chunk',
        's',
        { limit: [IDLE_SECONDS_A_CHUNK], ours: idle },
        { kind: 'below', value: 1 },
      ),
    ];
  },
};
