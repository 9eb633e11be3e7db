import { rmSync } from 'node:fs';
import { access, mkdir, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RUN_FOLDER } from './s3/s3-for-tests.ts';

const LOOK_MS = 100;

/**
 * A folder that the first file of a run that wants it makes, and all others find, whatever process they are in; it goes
 * with the run. What is in it belongs to all: a test that writes copies it. Where `make` fails, it fails for all.
 * Without a run each call makes its own, which goes with the process.
 */
export async function onceARun(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const run = process.env[RUN_FOLDER];
  if (run === undefined) {
    const own = await mkdtemp(join(tmpdir(), `skua-${name}-`));
    process.once('exit', () => rmSync(own, { recursive: true, force: true }));
    await make(own);
    return own;
  }
  const [folder, making, failed] = [join(run, name), join(run, `${name}.making`), join(run, `${name}.failed`)];
  // Of all that try to take the name one succeeds.
  const isMine = await mkdir(`${folder}.taken`).then(
    () => true,
    () => false,
  );
  if (isMine) {
    try {
      await mkdir(making);
      await make(making);
      await rename(making, folder);
      return folder;
    } catch (error) {
      await writeFile(failed, String((error as Error).stack ?? error));
      throw error;
    }
  }
  for (;;) {
    if (await isThere(folder)) return folder;
    if (await isThere(failed)) throw new Error(`${name} could not be made: ${await readFile(failed, 'utf8')}`);
    await sleep(LOOK_MS);
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
