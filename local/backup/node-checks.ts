import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import type {
  BackupCommands,
  CheckReport,
  CheckSubject,
  DrillArgs,
  VerifiedRepository,
  VerifyRepositoryArgs,
  DrillReport,
} from '../../core/backup/api.ts';
import type { ManifestSummary } from '../../core/backup/format/snapshot-manifest.ts';
import { DRILL_JOB, VERIFY_REPOSITORY_JOB } from '../../core/backup/jobs/jobs.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { TaskWork } from '../../core/tasks/tasks.ts';
import { TemporaryFolder } from '../../infra/fs/file-removal.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { shellWord } from '../../infra/runtime/io.ts';
import { bundledWorker } from '../../infra/runtime/version.ts';
import type { BackupSettings } from '../config/backup-settings.ts';

const DAY_MS = 86_400_000;
/** A restored backup takes its own size, and its index may be written once more. */
const ROOM_FACTOR = 1.2;

interface ChecksWorld {
  readonly settings: BackupSettings;
  readonly jobs: Pick<Jobs, 'run'>;
  readonly clock: Clock;
  readonly list: () => Promise<readonly ManifestSummary[]>;
}

/** How the repository of a node is checked: by jobs in threads of the lowest priority. Null where there is none. */
export function checksOf(world: ChecksWorld): ((subject: CheckSubject) => TaskWork<CheckReport>) | null {
  const { place } = world.settings;
  if (place === null) return null;
  return (subject) => (subject.kind === 'verify' ? verify(world, subject.subset) : drill(world, subject.backupId));
}

function verify(
  { settings: { place, key, compression }, jobs, clock }: ChecksWorld,
  subset: number,
): TaskWork<CheckReport> {
  return async (signal, onProgress) => {
    // Checks of following days read parts that follow one another.
    const args: VerifyRepositoryArgs = {
      place: place!,
      key,
      compression,
      subset,
      seed: Math.floor(clock.nowMs() / DAY_MS),
      nowMs: clock.nowMs(),
    };
    const verified = (await jobs.run(VERIFY_REPOSITORY_JOB, args, {
      signal,
      onProgress: ({ done, total }) => onProgress({ phase: 'checking', bytesDone: done, bytesTotal: total }),
    })) as VerifiedRepository;
    return { kind: 'verify', verified };
  };
}

/** Restores to a folder of the system for what is temporary, where there is room for it. */
function drill(world: ChecksWorld, backupId: string | null): TaskWork<CheckReport> {
  return async (signal, onProgress) => {
    const {
      settings: { place, key, compression },
      clock,
    } = world;
    await requireRoom(await sizeOf(world, backupId));
    const folder = await TemporaryFolder.make('skua-drill-');
    const root = folder.path;
    const jobs = new WorkerJobs({ root, indexRoot: path.join(root, 'index'), ...bundledWorker() });
    try {
      const args: DrillArgs = { place: place!, key, compression, backupId, nowMs: clock.nowMs() };
      const report = (await jobs.run(DRILL_JOB, args, {
        signal,
        onProgress: ({ done, total }) => onProgress({ phase: 'proving', bytesDone: done, bytesTotal: total }),
      })) as DrillReport;
      return { kind: 'drill', drill: report };
    } finally {
      await jobs.close();
      await folder.remove();
    }
  };
}

async function sizeOf({ list }: ChecksWorld, backupId: string | null): Promise<number> {
  const backups = await list();
  const chosen = backupId === null ? backups[0] : backups.find(({ id }) => id === backupId);
  if (chosen === undefined)
    throw new SkuaError(
      'backup_not_found',
      backupId === null
        ? 'The repository has no backup yet: make one first.'
        : `There is no backup ${backupId} in the repository.`,
    );
  return chosen.sizeBytes;
}

/** A disk that runs full may be that of the node. */
async function requireRoom(sizeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(tmpdir());
  const needed = Math.ceil(sizeBytes * ROOM_FACTOR);
  if (bavail * bsize < needed)
    throw new SkuaError(
      'disk_full',
      `A drill restores the backup to the temporary folder, which has ${bavail * bsize} bytes free; ${needed} are needed. Set TMPDIR to a larger disk and restart the node, or run \`skua backup drill --scratch\` elsewhere.`,
      { neededBytes: needed },
    );
}

/** Commands to be typed as they stand, in a shell that has the credentials of the bucket. */
export function commandsOf({ placeText, words }: BackupSettings): BackupCommands | null {
  if (placeText === null) return null;
  const command = (name: string, option: string, ...rest: readonly string[]) =>
    ['skua', name, option, ...[placeText, ...words, ...rest].map(shellWord)].join(' ');
  return {
    restore: command('restore', '--from', '--db', './restored'),
    restoreToTime: command('restore', '--from', '--db', './restored', '--to-time', '2031-04-02T12:00:00Z'),
    list: command('backup list', '--repository'),
    verify: command('backup verify', '--repository'),
    drill: command('backup drill', '--repository'),
  };
}
