import { lastProven } from '../../core/backup/drill-proven.ts';
import type { ManifestSummary } from '../../core/backup/manifest.ts';
import { placeOf, withRepository } from '../backup/world.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import type { Column } from '../cli/table.ts';
import { tableLines } from '../cli/table.ts';
import { bytesText } from '../progress.ts';
import type { listOptions } from './backup.ts';

const COLUMNS: readonly Column[] = [
  { title: 'backup', align: 'left' }, { title: 'made', align: 'left' }, { title: 'by', align: 'left' }, { title: 'log end', align: 'right' },
  { title: 'shipped to', align: 'right' }, { title: 'last shipped', align: 'left' }, { title: 'size', align: 'right' }, { title: 'node', align: 'left' },
];

/** Shows what a repository holds. Damaged manifests are told and end the command with exit code 1. */
export async function runBackupList({ options }: Input<typeof listOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  return withRepository(place, options, {}, async (repository) => {
    const damaged: { readonly key: string; readonly message: string }[] = [];
    const backups = await repository.backups((key, error) => { damaged.push({ key, message: error.message }); });
    const proven = await lastProven(repository);
    if (options.json) {
      line(io.stdout, JSON.stringify({ repository: repository.place, isEncrypted: repository.info.isEncrypted, backups: backups.map(documentOf), proven: proven === null ? null : { backupId: proven.backupId, provenAt: timeText(proven.provenMs) }, damaged }, null, 2));
    } else show(repository.place, backups, proven?.backupId ?? null, io);
    if (!options.json) for (const { key, message } of damaged) line(io.stdout, `${coloursFor(io.stdout, io.env).red('damaged')} ${key}: ${message}`);
    return damaged.length === 0 ? EXIT.ok : EXIT.failed;
  });
}

function documentOf({ id, nodeId, createdMs, cause, logEnd, shippedEnd, shippedMs, sizeBytes }: ManifestSummary) {
  return { id, nodeId, createdAt: timeText(createdMs), cause, logEnd, shippedEnd, shippedAt: timeText(shippedMs), sizeBytes };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function show(place: string, backups: readonly ManifestSummary[], proven: string | null, io: Io): void {
  if (backups.length === 0) {
    line(io.stdout, `${place} holds no backups.`);
    return;
  }
  const rows = backups.map(({ id, nodeId, createdMs, cause, logEnd, shippedEnd, shippedMs, sizeBytes }) => [
    id, timeText(createdMs), cause, String(logEnd),
    shippedEnd > logEnd ? String(shippedEnd) : '-', shippedEnd > logEnd ? timeText(shippedMs) : '-', bytesText(sizeBytes), nodeId,
  ]);
  for (const each of tableLines(COLUMNS, rows)) line(io.stdout, each);
  line(io.stdout, proven === null ? 'None was proven yet: `skua backup drill` does that.' : `Last proven by a drill: ${proven}.`);
}
