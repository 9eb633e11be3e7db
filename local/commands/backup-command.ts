import { defineCommand } from '../cli/command.ts';
import {
  backupCopyOptions,
  backupCreateOptions,
  backupDrillOptions,
  backupKeyOptions,
  backupListOptions,
  backupPruneOptions,
  backupVerifyOptions,
  restoreOptions,
  verifyOptions,
} from './options-command.ts';

/**
 * `skua backup ...`: copies of files in a directory, and a repository that keeps many backups at the price of what
 * changed.
 */

const R = './backups';

export const backupCopyCommand = defineCommand({
  name: 'backup copy',
  summary: 'Copy the files of a node into a directory',
  details:
    'Copies a running node, which keeps working, or a stopped directory. A running node requires a user in $backup or $admins. An interrupted copy is marked by the file copy-unfinished, and the same command completes it. Chunks can only be copied while no scavenge runs: the copy is refused (exit code 4), or with --pause-scavenge the scavenge is stopped meanwhile; afterwards it resumes with one thread and without a throttle. Files of different nodes are never mixed, and a restored node needs a full copy.',
  options: backupCopyOptions,
  examples: [
    { line: 'skua backup copy --full --to ./monday', does: 'Copy the running node' },
    { line: 'skua backup copy --differential --to ./monday', does: 'Bring that copy up to date' },
    { line: 'skua backup copy --full --db ./data --to ./monday', does: 'Copy the directory of a stopped node' },
    { line: 'skua backup copy --snapshot --db /var/lib/skua', does: 'Show in which order to snapshot the disks' },
  ],
  run: async (input, io) => (await import('./run-backup-copy.ts')).runBackupCopy(input, io),
});

export const backupCreateCommand = defineCommand({
  name: 'backup create',
  summary: 'Make a backup in a repository',
  details:
    'Stores what the repository does not have yet: chunks and index tables once, under the hash of their content, and the end of the log. A backup is either complete or absent; an interrupted one resumes where it stopped. A running node requires a user in $backup or $admins. The first backup creates the repository, encrypted if it names a --key-file.',
  options: backupCreateOptions,
  examples: [
    { line: `skua backup create --repository ${R}`, does: 'Back up the running node into a directory' },
    {
      line: 'skua backup create --repository s3://backups/a --key-file ./repository.key',
      does: 'Into a bucket, encrypted',
    },
    { line: `skua backup create --repository ${R} --db ./data --throttle 50MiB`, does: 'A stopped directory, slowly' },
  ],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupCreate(input, io),
});

export const backupListCommand = defineCommand({
  name: 'backup list',
  summary: 'Show the backups of a repository',
  details:
    'Newest first, with the log position each restores to. Exit code 1: a manifest is damaged, and the output names it.',
  options: backupListOptions,
  examples: [{ line: `skua backup list --repository ${R}`, does: 'List the backups' }],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupList(input, io),
});

export const backupVerifyCommand = defineCommand({
  name: 'backup verify',
  summary: 'Check a repository',
  details:
    'Checks that everything the backups need is there and matches its checksums. Damage is noted, so that the next backup stores it again if the node still has it; nothing else changes. Exit code 1: something is missing or damaged, and the output names the object.',
  options: backupVerifyOptions,
  examples: [
    { line: `skua backup verify --repository ${R}`, does: 'Read and check everything' },
    {
      line: 'skua backup verify --repository s3://backups/a --read-data-subset 10%',
      does: 'A different tenth every night',
    },
  ],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupVerify(input, io),
});

export const backupDrillCommand = defineCommand({
  name: 'backup drill',
  summary: 'Test that a backup can be restored',
  details:
    'Restores it to a scratch folder, opens it there, checks every record and index entry, and removes it. A backup that passes is marked as tested in the repository, and nodes report its age as a metric. Exit code 1: it does not pass.',
  options: backupDrillOptions,
  examples: [
    { line: `skua backup drill --repository ${R}`, does: 'Test the newest backup' },
    {
      line: `skua backup drill --repository ${R} --scratch /mnt/large --json`,
      does: 'On a disk of its own; for a program',
    },
  ],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupDrill(input, io),
});

export const backupPruneCommand = defineCommand({
  name: 'backup prune',
  summary: 'Remove old backups from a repository',
  details:
    'Keeps a backup if any --keep option selects it, and removes the others; without a --keep option it only removes content that no backup needs. The newest backup of each node always stays, unless --forget-node names a node that no longer exists. Backups that stay are never touched. Unused content is removed a day after it was first found unused, so that later backups need not store it again; with --erased it is removed at once, whichever prune dropped it. While a backup is being made no content is removed: with --erased that is exit code 4, and the command must be repeated.',
  options: backupPruneOptions,
  examples: [
    { line: `skua backup prune --repository ${R} --keep-daily 7`, does: 'Keep a week' },
    {
      line: `skua backup prune --repository ${R} --keep-last 3 --keep-weekly 8`,
      does: 'Keep the last three and two months of weekly backups',
    },
    { line: `skua backup prune --repository ${R} --erased --dry-run`, does: 'Which backups hold erased events?' },
  ],
  run: async (input, io) =>
    (await import('../audit/command-audit.ts')).withAudit(
      {
        file: input.options['dry-run'] ? null : input.options['audit-log'],
        action: 'repository.prune',
        target: input.options.repository,
      },
      io,
      async () => (await import('./run-backup.ts')).runBackupPrune(input, io),
    ),
});

export const backupKeyCommand = defineCommand({
  name: 'backup key',
  summary: 'Create the key of an encrypted repository',
  details:
    'Writes a random key that only you can read. Keep a copy elsewhere: without it nothing can be restored. An existing file is not replaced.',
  positionals: [{ name: 'FILE', help: 'file to write the key to' }],
  options: backupKeyOptions,
  examples: [{ line: 'skua backup key ./repository.key', does: 'Create a key' }],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupKey(input, io),
});

export const restoreCommand = defineCommand({
  name: 'restore',
  summary: 'Restore a backup into the directory of a stopped node',
  details:
    'Verifies every byte, then opens the result once to make sure that a node will start on it. Until the restore is complete no node starts on the directory; repeat the command with --force to complete it. Without --backup, --to-position and --to-time the newest state is restored. A point in log that was scavenged since can only be restored from a backup made before the scavenge; otherwise the command names the nearest restore points, and --at-or-before takes the one before. Events that were redacted in any newer backup of the repository are restored as redacted; --redactions names others, which a file copy needs for all that is newer than itself. The directory gets a new node id, so the next copy of its files has to be a full one.',
  options: restoreOptions,
  examples: [
    { line: 'skua restore --from ./backups --db ./data', does: 'The newest state of a repository' },
    {
      line: 'skua restore --from s3://backups/a --db ./data --to-time 2026-07-01T12:00:00Z',
      does: 'As it was at noon',
    },
    {
      line: 'skua restore --from ./backups --db ./data --to-time 2026-07-01 --at-or-before',
      does: 'Or the nearest restore point before',
    },
    { line: 'skua restore --from ./monday --db ./data --force', does: 'A copy of files, over old data' },
  ],
  run: async (input, io) =>
    (await import('../audit/command-audit.ts')).withAudit(
      { file: input.options['audit-log'], action: 'directory.restore', target: input.options.db },
      io,
      async () => (await import('./run-restore.ts')).runRestore(input, io),
    ),
});

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'Check a stopped data directory, or a store on object storage',
  details:
    'Reads every chunk, checksum and record, the index against the log, and the scavenge database. Changes nothing. A store on object storage (s3://bucket/prefix, or a directory of objects) may be in use meanwhile; its manifests and commits are checked too, and that every object exists. Notes name data without a checksum, where a changed byte may go unnoticed. Exit code 0: nothing wrong found; 1: errors found, and the output says where; 3: no data there, or a node is using the directory.',
  positionals: [{ name: 'DIR', help: 'the data directory, or s3://bucket/prefix', isOptional: true }],
  options: verifyOptions,
  examples: [
    { line: 'skua verify ./data', does: 'Check the directory of a stopped node' },
    { line: 'skua verify ./data --json', does: 'The same for a program' },
    { line: 'skua verify --storage s3://bucket/prefix', does: 'Check a store in a bucket that is in use' },
  ],
  run: async (input, io) => (await import('./run-verify.ts')).runVerify(input, io),
});
