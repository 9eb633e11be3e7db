import { backupOption, jsonOption, moment, parallelOption, placeOptions, position } from '../backup/options.ts';
import { defineCommand } from '../cli/command.ts';
import { flag, text } from '../cli/options.ts';
import { indexOption } from '../scavenge/options.ts';

const { repository: _, ...reach } = placeOptions;

export const restoreOptions = {
  from: text('R', null, 'Repository (a directory, or s3://bucket/prefix), or a directory with a copy of files'),
  db: text('DIR', null, 'Data directory to restore to'),
  index: indexOption,
  backup: backupOption,
  'to-position': position('Restore the log up to this position'),
  'to-time': moment('Restore what had been written at this time'),
  force: flag('Remove the data that the directory holds first'),
  'allow-damaged': flag('Restore what can be restored of a damaged backup, and say what is lost'),
  parallel: parallelOption,
  ...reach,
  json: jsonOption,
};

export const restoreCommand = defineCommand({
  name: 'restore',
  summary: 'Restore a backup into the directory of a stopped node',
  details: 'Checks every byte on its way, then opens the result once to prove that a node will. Until it has come to its end no node starts on the directory, and the same command with --force completes it. Without --backup, --to-position and --to-time the newest state is restored. The directory gets a new node id, so the next copy of its files has to be a full one.',
  options: restoreOptions,
  examples: [
    { line: 'skua restore --from ./backups --db ./data', does: 'The newest state of a repository' },
    { line: 'skua restore --from s3://backups/a --db ./data --to-time 2026-07-01T12:00:00Z', does: 'As it was at noon' },
    { line: 'skua restore --from ./monday --db ./data --force', does: 'A copy of files, over old data' },
  ],
  run: async (input, io) => (await import('./run-restore.ts')).runRestore(input, io),
});
