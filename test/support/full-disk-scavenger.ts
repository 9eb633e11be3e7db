import { closeSync, cpSync, fstatSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { openTestStore } from './test-store.ts';

/**
 * A process that scavenges on a disk that is all but full: `node full-disk-scavenger.ts TEMPLATE DISK BYTES…`. For each
 * number it makes the node anew from the template, leaves so many bytes free once the node is open, scavenges, makes
 * room and scavenges again. It says `begin BYTES` and `end BYTES` with what came of both as JSON, so that whoever reads
 * sees where it died.
 */
const [, , template, disk, ...levels] = process.argv;
const data = join(disk!, 'data');
const filler = join(disk!, 'filler');
const FILL_BYTES = 1_048_576;

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

/**
 * Takes all there is and gives `free` bytes of it back: how much a file of a given size takes is up to the file system.
 */
function fill(free: number): void {
  const fd = openSync(filler, 'w');
  for (let bytes = new Uint8Array(FILL_BYTES); bytes.length > 0;) {
    try {
      writeSync(fd, bytes);
    } catch {
      bytes = bytes.subarray(0, bytes.length >> 1);
    }
  }
  ftruncateSync(fd, Math.max(0, fstatSync(fd).size - free));
  fsyncSync(fd);
  closeSync(fd);
}

for (const level of levels.map(Number)) {
  rmSync(data, { recursive: true, force: true });
  rmSync(filler, { force: true });
  cpSync(template!, data, { recursive: true });
  const storage = new FilesystemStorage({ root: data });
  const scavengeStates = new SqliteScavengeStates({ indexRoot: storage.indexRoot });
  const jobs = new InlineJobs({
    jobs: JOBS,
    storage,
    digests: nodeDigests,
    ids: systemIds,
    clock: systemClock,
    scavengeStates,
  });
  const open = await openTestStore({
    storage,
    jobs,
    clock: systemClock,
    ids: systemIds,
    memTableEntriesMax: 400,
    scavengeStates,
  });
  fill(level);
  say(`begin ${level}`);
  const run = async () => {
    await open.scavenger.start({ threads: 2 });
    await open.scavenger.idle();
    return open.scavenger.last();
  };
  const full = await run();
  rmSync(filler);
  const roomy = await run();
  say(`end ${level} ${JSON.stringify([full, roomy])}`);
  await open.close();
}
