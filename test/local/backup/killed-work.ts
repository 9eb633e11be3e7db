import { copyFiles } from '../../../core/backup/copy/copy.ts';
import { restoreCopy } from '../../../core/backup/restore-copy/restore-copy.ts';
import { snapshotOfDirectory } from '../../../core/store/snapshot/snapshot.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { withRestoreWorld } from '../../../local/backup/backup-world.ts';
import { FakeIo } from '../support.ts';

/**
 * A process that copies or restores and kills itself at the n-th change of a name: `node killed-work.ts WHAT FROM TO
 * N`.
 */

class KillingStorage extends FilesystemStorage {
  left = Infinity;

  #count(): void {
    if (--this.left === 0) process.kill(process.pid, 'SIGKILL');
  }

  override create(name: string): ReturnType<FilesystemStorage['create']> {
    this.#count();
    return super.create(name);
  }

  override async rename(from: string, to: string): Promise<void> {
    this.#count();
    await super.rename(from, to);
  }

  override async remove(name: string): Promise<void> {
    this.#count();
    await super.remove(name);
  }
}

async function main(what: string, from: string, to: string, changes: number): Promise<void> {
  const target = new KillingStorage({ root: to });
  const source = new FilesystemStorage({ root: from });
  if (what === 'restore') {
    await withRestoreWorld(target, new FakeIo(), (world) => {
      target.left = changes;
      return restoreCopy({ ...world, source, place: from, force: true, parallel: 1 });
    });
    return;
  }
  const snapshot = await snapshotOfDirectory({
    storage: source,
    clock: systemClock,
    ids: systemIds,
    digests: nodeDigests,
    log: silentLog,
  });
  target.left = changes;
  await copyFiles({
    source: snapshot,
    target,
    mode: what === 'full' ? 'full' : 'differential',
    clock: systemClock,
    digests: nodeDigests,
  });
  await snapshot.release();
}

const [what, from, to, changes] = process.argv.slice(2);
await main(what!, from!, to!, Number(changes));
process.stdout.write('done\n');
