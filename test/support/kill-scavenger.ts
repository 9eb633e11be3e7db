import { writeSync } from 'node:fs';
import type { Log } from '../../core/ports/log.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { openTestStore } from './test-store.ts';

/**
 * A process that scavenges a folder with worker threads and the real database: `node kill-scavenger.ts FOLDER`. It says
 * a line for each line of the run's log, so that it can be killed at any of them, and `done RESULT` at the end.
 */

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

const line = (message: string): void => {
  if (message.startsWith('SCAVENGING')) say(`l ${message}`);
};
const log: Log = { debug: line, info: line, warn: line, error: line };

const storage = new FilesystemStorage({ root: process.argv[2]! });
const jobs = new WorkerJobs({ root: storage.root, indexRoot: storage.indexRoot });
const open = await openTestStore({
  storage,
  jobs,
  log,
  clock: systemClock,
  ids: systemIds,
  memTableEntriesMax: 400,
  scavengeStates: new SqliteScavengeStates({ indexRoot: storage.indexRoot }),
});
await open.scavenger.start({ threads: 2 });
await open.scavenger.idle();
say(`done ${open.scavenger.last()!.result} ${open.scavenger.last()!.error ?? ''}`);
await open.close();
await jobs.close();
