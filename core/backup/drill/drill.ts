import { isSkuaError } from '../../base/errors.ts';
import type { Storage } from '../../ports/storage.ts';
import type { VerifyFinding, VerifySummary } from '../../integrity/api.ts';
import { verifyDirectory } from '../../integrity/integrity.ts';
import type { Repository } from '../repository/api.ts';
import { noteProven } from '../notes/notes.ts';
import type { ChooseOptions, RestoreChoice } from '../restore/choose.ts';
import { endRestoreWhenAborted } from '../restore/restore-files.ts';
import type { RestoreWorld } from '../restore/restore-files.ts';
import { restoreBackup } from '../restore/restore.ts';
import type { RestoreOptions } from '../restore/restore.ts';

/** A place for a drill: empty, and removed with all that is in it. */
export interface DrillStorage {
  readonly storage: Storage;
  remove(): Promise<void>;
}

export interface DrillOptions
  extends
    Omit<RestoreWorld, 'target' | 'force' | 'onProgress'>,
    Pick<ChooseOptions, 'nodeId'>,
    Pick<RestoreOptions, 'lanes'> {
  readonly repository: Repository;
  /** Default: the latest. */
  readonly choice?: RestoreChoice;
  readonly scratch: () => Promise<DrillStorage>;
  readonly onProgress?: (progress: DrillProgress) => void;
}

interface DrillProgress {
  readonly phase: 'copying' | 'opening' | 'verifying';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

export interface DrillReport {
  readonly backupId: string;
  readonly position: number;
  /** Of the restored directory. */
  readonly chunks: number;
  readonly records: number;
  readonly events: number;
  readonly indexEntries: number;
  readonly bytes: number;
  /** What verification found; a backup with an error among them is not proven. */
  readonly findings: readonly VerifyFinding[];
  readonly warnings: readonly string[];
  readonly isProven: boolean;
  readonly restoreMs: number;
  readonly verifyMs: number;
}

/** Findings that a report lists. */
const FINDINGS_MAX = 100;

/**
 * Proves that a backup can be restored: restores it to a scratch place, opens it there, verifies every chunk, record
 * and index entry against each other, and removes the place again, whatever happened. A backup without errors is noted
 * as proven. Rejects as `restoreBackup` does.
 */
export async function drillBackup(options: DrillOptions): Promise<DrillReport> {
  const { repository, clock, scratch, choice = { kind: 'latest' } } = options;
  const location = await scratch();
  try {
    const begin = clock.monotonicMs();
    const restored = await restoreBackup({ ...options, choice, target: location.storage, checkMd5: true });
    const verifyBegin = clock.monotonicMs();
    const { summary, findings } = await verified(options, location.storage);
    const backupId = restored.backupId!;
    const isProven = summary.errors === 0;
    const unnoted = isProven
      ? await note(repository, { backupId, provenMs: clock.nowMs(), position: restored.position })
      : [];
    return {
      backupId,
      position: restored.position,
      chunks: summary.chunks,
      records: summary.records,
      events: summary.events,
      indexEntries: summary.indexEntries,
      bytes: restored.bytes,
      findings,
      warnings: [...restored.warnings, ...unnoted],
      isProven,
      restoreMs: verifyBegin - begin,
      verifyMs: clock.monotonicMs() - verifyBegin,
    };
  } finally {
    await location.remove();
  }
}

/**
 * A caller that may only read the repository can prove its backups all the same; that it could not be noted is a
 * warning.
 */
async function note(repository: Repository, proven: Parameters<typeof noteProven>[1]): Promise<string[]> {
  try {
    await noteProven(repository, proven);
    return [];
  } catch (error) {
    if (!isSkuaError(error, 'storage_denied')) throw error;
    return [
      `The backup passed, but this could not be noted in ${repository.place}, which can't be written to: \`skua backup list\` does not show it. ${error.message}`,
    ];
  }
}

async function verified(
  { digests, clock, signal, onProgress, start }: DrillOptions,
  storage: Storage,
): Promise<{ summary: VerifySummary; findings: VerifyFinding[] }> {
  const findings: VerifyFinding[] = [];
  const run = verifyDirectory({
    storage,
    digests,
    clock,
    findingsMax: FINDINGS_MAX,
    ...(start.hasher && { hasher: start.hasher }),
  });
  for (;;) {
    endRestoreWhenAborted(signal);
    const next = await run.next();
    if (next.done === true) return { summary: next.value, findings };
    if (next.value.kind === 'finding') findings.push(next.value);
    else if (next.value.kind === 'progress')
      onProgress?.({ phase: 'verifying', bytesDone: next.value.bytesDone, bytesTotal: next.value.bytesTotal });
  }
}
