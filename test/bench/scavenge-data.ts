import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ANY } from '../../core/streams/api.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { openFolder } from './open-folder.ts';

/** Data bytes of the events whose chunks are rewritten. */
const LARGE_BYTES = 2_048;
const BATCH = 64;
const EMPTY = new Uint8Array(0);
const LARGE = new Uint8Array(LARGE_BYTES).fill(0x61);

/** Streams that take turns in the log; each can be given up by itself. */
const DOOMED = 'doomed';
export const KEPT = 'kept';

function largeEvents(count: number): NewEvent[] {
  return Array.from({ length: count }, () => ({
    id: randomUUID(),
    type: 'LargeNote',
    isJson: false,
    data: LARGE,
    metadata: EMPTY,
  }));
}

/**
 * A stopped directory whose log fills `chunks` chunks of `chunkBytes` but for a rest, with events of 2 kB of which
 * every second one, or those of `isDoomed`, belong to a stream that has been deleted. Built once a run.
 */
export async function halfDeletedLog(
  folder: string,
  chunks: number,
  chunkBytes: number,
  say: (line: string) => void,
  isDoomed = (i: number): boolean => i % 2 === 1,
): Promise<void> {
  if (existsSync(`${folder}.complete`)) return;
  say(`  building ${chunks} chunks of ${Math.round(chunkBytes / 1_048_576)} MiB ...`);
  await rm(folder, { recursive: true, force: true });
  const open = await openFolder(folder, { chunkSizeBytes: chunkBytes });
  // The last chunk gets no more than fits beside what a run itself writes.
  const end = chunks * chunkBytes - 262_144;
  while (open.store.end < end) {
    // Events of two streams, in turns of one record each: appended together they lie behind one another in that order.
    const appends: Promise<unknown>[] = [];
    for (let i = 0; i < BATCH; i++) appends.push(open.store.append(isDoomed(i) ? DOOMED : KEPT, ANY, largeEvents(1)));
    await Promise.all(appends);
  }
  await open.store.deleteStream(DOOMED, ANY, 'hard');
  await open.close();
  await writeFile(`${folder}.complete`, '');
}

/** A copy that shares the files which nobody writes to: completed chunks and index tables. */
export function linkedCopy(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkedCopy(source, target);
    else if (entry.name.startsWith('skua.lock')) continue;
    // A completed chunk is sealed; the others, and everything small, are copied.
    else if (entry.name.startsWith('chunk-') && (statSync(source).mode & 0o200) === 0) linkSync(source, target);
    else copyFileSync(source, target);
  }
}

export function chunkNames(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /^chunk-\d{6}\.\d{6}$/.test(name))
    .toSorted();
}
