import { closeSync, openSync, readdirSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ANY } from '../../../core/streams/api.ts';
import type { DirectoryStore } from '../../../core/store/store.ts';
import { encodedStream, encodedStreams, indexedLog } from '../encoded-log.ts';
import { newEvent } from '../events.ts';
import { median, row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';
import { openFolder } from '../open-folder.ts';
import { chunkNames } from '../scavenge-data.ts';

const CHUNK_BYTES = 33_554_432;
const CHUNK_BYTES_SMOKE = 1_048_576;
/** As small as JSON can be, so that all three logs together stay below 10 GB. */
const DATA = '{}';
const EVENTS_A_STREAM = 20;
const WARM_UPS = 2_000;
/** Appends and reads of a window. */
const CALLS = 2_000;
const CALLS_SMOKE = 20;

interface Sized {
  readonly folder: string;
  readonly events: number;
  readonly open: DirectoryStore;
  readonly append: number[];
  readonly read: number[];
  /** Of runs with nothing to remove, each divided by the chunks there were. */
  readonly scavengeAChunk: number[];
  readonly scavenge: number[];
}

/** Numbers from 0 to 2^32, the same in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
}

async function p50Ms(calls: number, call: () => Promise<unknown>): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i < calls; i++) {
    const begin = performance.now();
    await call();
    all.push(performance.now() - begin);
  }
  return median(all);
}

/**
 * Reads all chunks and index tables once: what is compared is the store's own work, not which of three logs the system
 * happens to keep in memory.
 */
function intoPageCache(folder: string): void {
  const block = Buffer.allocUnsafe(1_048_576);
  for (const file of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!file.isFile()) continue;
    const fd = openSync(join(file.parentPath, file.name), 'r');
    while (readSync(fd, block) > 0);
    closeSync(fd);
  }
}

async function scavengeMs(open: DirectoryStore): Promise<number> {
  const begin = performance.now();
  await open.scavenger.start();
  await open.scavenger.idle();
  const last = open.scavenger.last();
  if (last?.result !== 'Success') throw new Error(`The scavenge ended with ${last?.result}: ${last?.error}`);
  return performance.now() - begin;
}

function compared(
  sized: readonly Sized[],
  title: string,
  unit: string,
  of: (one: Sized) => number[],
  most: number,
): Row[] {
  const [least, ...larger] = sized as [Sized, ...Sized[]];
  return larger.map((one) =>
    row(
      `${title}, ${one.events / 1e6} M events beside ${least.events / 1e6} M`,
      unit,
      { limit: of(least), ours: of(one) },
      { kind: 'at most', value: most },
    ),
  );
}

export const scaleGrowth: Figure = {
  name: 'scale-growth',
  isLong: true,
  how: `Three stores in one process, with 1, 10 and 50 M events of 112 bytes in streams of ${EVENTS_A_STREAM} (chunks of 32 MiB, encoded by the bench; the index built by the store). In turns, windows of ${CALLS} single appends, one after the other, each to a stream chosen at random; windows of ${CALLS} reads of one event chosen at random; and one scavenge that finds nothing to remove, after one that has gone through all. All files are read through before, so that they are in the system's page cache. Values are medians of a window; that of the scavenge is divided by the number of chunks. The limit is always the smallest log.`,
  async run(settings) {
    const sized: Sized[] = [];
    try {
      for (const events of settings.growthEvents) {
        const folder = join(settings.folder, `scale-growth-${events}`);
        await indexedLog(
          folder,
          { events, chunkBytes: settings.isSmoke ? CHUNK_BYTES_SMOKE : CHUNK_BYTES, data: DATA },
          settings.say,
        );
        sized.push({
          folder,
          events,
          open: await openFolder(folder, { verifyChunks: false }),
          append: [],
          read: [],
          scavengeAChunk: [],
          scavenge: [],
        });
      }
      const calls = settings.isSmoke ? CALLS_SMOKE : CALLS;
      const next = seeded(20_261_123);
      const append = ({ open, events }: Sized): Promise<unknown> =>
        open.store.append(encodedStream(next() % encodedStreams(events)), ANY, [newEvent(0)]);
      const read = ({ open, events }: Sized): Promise<unknown> =>
        open.store.readEvent(encodedStream(next() % encodedStreams(events)), next() % EVENTS_A_STREAM);
      for (const one of sized) {
        await p50Ms(settings.isSmoke ? CALLS_SMOKE : WARM_UPS, () => append(one));
        await p50Ms(settings.isSmoke ? CALLS_SMOKE : WARM_UPS, () => read(one));
        await scavengeMs(one.open);
      }
      for (let i = 0; i < settings.windows; i++) {
        for (const { folder } of sized) intoPageCache(folder);
        for (const one of sized) one.append.push(await p50Ms(calls, () => append(one)));
        for (const one of sized) one.read.push(await p50Ms(calls, () => read(one)));
        for (const one of sized) {
          const ms = await scavengeMs(one.open);
          one.scavenge.push(ms);
          one.scavengeAChunk.push(ms / chunkNames(one.folder).length);
        }
      }
      return [
        ...compared(sized, 'single append p50', 'ms', ({ append: ms }) => ms, 1.3),
        ...compared(sized, 'random single read p50', 'ms', ({ read: ms }) => ms, 1.3),
        ...compared(sized, 'no-op scavenge, a chunk', 'ms', ({ scavengeAChunk: ms }) => ms, 1.3).map((one, i) => ({
          ...one,
          notes: [
            `the whole run ${median(sized[i + 1]!.scavenge).toFixed(0)} ms, of the smallest log ${median(sized[0]!.scavenge).toFixed(0)} ms`,
          ],
        })),
      ];
    } finally {
      for (const { open, folder } of sized) {
        await open.close();
        rmSync(folder, { recursive: true });
        rmSync(`${folder}.complete`, { force: true });
      }
    }
  },
};
