import { Holds } from '../../../core/store/hold/hold.ts';
import type { StoreHold } from '../../../core/store/hold/hold.ts';
import type { ManifestSummary } from '../../../core/backup/format/snapshot-manifest.ts';
import { NodeBackupChecks } from '../../../core/backup/checks/checks.ts';
import type { BackupStatus, CheckReport, CheckSubject } from '../../../core/backup/checks/checks.ts';
import type {
  BackupOptions,
  BackupProgress,
  Backups,
  LastBackup,
  RestorableBackups,
} from '../../../core/backup/backups/backups.ts';
import type { Snapshot } from '../../../core/store/source/source.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { TaskWork } from '../../../core/tasks/tasks.ts';
import { SeededIds } from '../seeded-ids.ts';

/** The first hold that is begun has this id. */
export const HOLD_ID = '6f9d3c1a-58c6-4a0f-8a8e-2f0c7b1d9e64';
export const BACKUP_ID = '3a8b1f60-7c2d-4f4e-9a51-0c6d2e8f7b10';
const NODE_ID = 'c0ffee00-1d3e-4c55-8a5a-53e2c1b6a0f4';

const SUMMARY: ManifestSummary = {
  id: BACKUP_ID,
  nodeId: NODE_ID,
  createdMs: Date.UTC(2031, 3, 2, 9),
  cause: 'manual',
  logEnd: 1_000,
  shippedEnd: 1_500,
  shippedMs: Date.UTC(2031, 3, 2, 9, 10),
  sizeBytes: 4_096,
};
export const SNAPSHOT: Snapshot = {
  nodeId: NODE_ID,
  takenMs: Date.UTC(2031, 3, 2, 9, 15),
  chunkSizeBytes: 65_536,
  checkpoints: { writer: 300, chaser: 300, epoch: 0, proposal: 0 },
  files: [
    {
      path: 'index/stream-existence/streamExistenceFilter.chk',
      kind: 'existence-checkpoint',
      sizeBytes: 8,
      content: new Uint8Array(8).fill(7),
    },
    {
      path: 'chunk-000000.000000',
      kind: 'ongoing-chunk',
      sizeBytes: 428,
      content: Uint8Array.from({ length: 428 }, (_, i) => i % 251),
    },
  ],
};

/** Backups that do nothing, and real holds on files that are made up. */
export class FakeBackups implements Backups {
  place: string | null = 's3://backups/node';
  /** When set, everything that can fail rejects with it. */
  error: SkuaError | null = null;
  running: BackupProgress | null = null;
  lastNow: LastBackup | null = null;
  readonly started: BackupOptions[] = [];
  /** Holds that were taken and not released. */
  held = 0;

  async start(options: BackupOptions = {}): Promise<{ readonly backupId: string }> {
    this.#check();
    if (this.running !== null)
      throw new SkuaError('backup_running', 'One is being made.', { backupId: this.running.backupId });
    this.started.push(options);
    this.running = {
      backupId: BACKUP_ID,
      phase: 'Copying',
      bytesDone: 5,
      bytesTotal: 10,
      startedMs: Date.UTC(2031, 3, 2, 9),
      elapsedSeconds: 1.5,
      remainingSeconds: 1.5,
    };
    return { backupId: BACKUP_ID };
  }

  current(): BackupProgress | null {
    return this.running;
  }
  last(): LastBackup | null {
    return this.lastNow;
  }

  async abort(): Promise<string> {
    if (this.running === null) throw new SkuaError('backup_not_running', 'No backup is running.');
    this.running = null;
    return BACKUP_ID;
  }

  async list(): Promise<readonly ManifestSummary[]> {
    this.#check();
    return [SUMMARY];
  }

  async listRestorable(): Promise<RestorableBackups> {
    const backups = await this.list();
    return { backups, times: [{ fromMs: Date.UTC(2031, 3, 1, 8), toMs: Date.UTC(2031, 3, 1, 9, 30, 0, 250) }] };
  }

  take(): StoreHold {
    this.#check();
    this.held++;
    let isReleased = false;
    return {
      snapshot: SNAPSHOT,
      get isReleased() {
        return isReleased;
      },
      async *read(path: string, position: number, length: number) {
        yield SNAPSHOT.files.find((file) => file.path === path)!.content!.slice(position, position + length);
      },
      release: async () => {
        if (!isReleased) this.held--;
        isReleased = true;
      },
    };
  }

  #check(): void {
    if (this.error !== null) throw this.error;
  }
}

type Check = (subject: CheckSubject) => TaskWork<CheckReport>;

/** A check that goes on until somebody ends it. */
const untilAborted: Check = () => (signal, onProgress) => {
  onProgress({ phase: 'checking', bytesDone: 5, bytesTotal: 10 });
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(new SkuaError('aborted', 'It was ended.'))),
  );
};

export const STATUS: BackupStatus = {
  place: 's3://backups/node',
  schedule: '0 2 * * *',
  shipEverySeconds: 10,
  newest: { id: BACKUP_ID, createdMs: SUMMARY.createdMs, logEnd: 1_000 },
  restorable: { position: 1_500, atMs: SUMMARY.shippedMs },
  unshippedBytes: 7,
  shipLagMs: 1_500,
  provenMs: SUMMARY.createdMs,
  verified: { atMs: SUMMARY.createdMs, errors: 0 },
  commands: {
    restore: 'skua restore --from s3://backups/node --db ./restored',
    restoreToTime: 'skua restore ...',
    list: 'skua backup list ...',
    verify: 'skua backup verify ...',
    drill: 'skua backup drill ...',
  },
};

/** What the context of the handlers takes. */
export async function fakeBackups(
  clock: Clock,
  { isHeld = false, check = untilAborted as Check | null } = {},
): Promise<{
  readonly holds: Holds;
  readonly node: FakeBackups;
  readonly checks: NodeBackupChecks;
  status(): BackupStatus;
}> {
  const node = new FakeBackups();
  const ids = new SeededIds(41);
  let isFirst = true;
  const uuidBytes = (): Uint8Array => {
    if (!isFirst) return ids.uuidBytes();
    isFirst = false;
    return Uint8Array.from(Buffer.from(HOLD_ID.replaceAll('-', ''), 'hex'));
  };
  const holds = new Holds({ take: async () => node.take(), clock, ids: { uuidBytes }, log: silentLog });
  if (isHeld) await holds.begin();
  const checks = new NodeBackupChecks({ check, clock, ids: new SeededIds(42), log: silentLog });
  return { holds, node, checks, status: () => STATUS };
}
