import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import type { Scratch } from '../../core/object-log/overlay/overlay.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';

/** A fresh folder among the temporary files of this machine. */
export async function newScratch(): Promise<Scratch> {
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-tick-'));
  const storage = new FilesystemStorage({ root: folder });
  return { storage, states: new SqliteScavengeStates({ indexRoot: storage.indexRoot }), remove: () => rm(folder, { recursive: true, force: true }) };
}
