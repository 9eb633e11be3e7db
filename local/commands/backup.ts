import { defineCommand } from '../cli/command.ts';
import {
  backupCopyOptions, backupCreateOptions, backupDrillOptions, backupKeyOptions, backupListOptions, backupPruneOptions, backupVerifyOptions,
  restoreOptions, verifyOptions,
} from './options.ts';

/** `skua backup ...`: copies of files in a directory, and a repository that keeps many backups at the price of what changed. */

const R = './backups';

export const backupCopyCommand = defineCommand({
  name: 'backup copy',
  summary: 'Copy the files of a node into a directory',
  details: 'Copies a running node, which goes on working, or a stopped directory. At a running node it takes a user in $backup or $admins. A copy that was ended half way says so by its file copy-unfinished, and the same command completes it. Chunks are copied while no scavenge runs: it is refused (exit code 4), or stopped for the time with --pause-scavenge; afterwards it goes on with one thread and without a throttle. Files of different nodes never mix, and a node that was restored needs a full copy.',
  options: backupCopyOptions,
  examples: [
    { line: 'skua backup copy --full --to ./monday', does: 'Copy the running node' },
    { line: 'skua backup copy --differential --to ./monday', does: 'Bring that copy up to date' },
    { line: 'skua backup copy --full --db ./data --to ./monday', does: 'Copy the directory of a stopped node' },
    { line: 'skua backup copy --snapshot --db /var/lib/skua', does: 'In which order to snapshot the disks' },
  ],
  run: async (input, io) => (await import('./run-backup-copy.ts')).runBackupCopy(input, io),
});

export const backupCreateCommand = defineCommand({
  name: 'backup create',
  summary: 'Make a backup in a repository',
  details: 'Stores what the repository lacks: chunks and index tables once under the hash of their content, and the end of the log. A backup is there whole or not at all, and one that was ended goes on where it stopped. At a running node it takes a user in $backup or $admins. The repository is made by the first backup; it is encrypted if that names a --key-file.',
  options: backupCreateOptions,
  examples: [
    { line: `skua backup create --repository ${R}`, does: 'Back up the running node into a directory' },
    { line: 'skua backup create --repository s3://backups/a --key-file ./repository.key', does: 'Into a bucket, encrypted' },
    { line: `skua backup create --repository ${R} --db ./data --throttle 50MiB`, does: 'A stopped directory, slowly' },
  ],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupCreate(input, io),
});

export const backupListCommand = defineCommand({
  name: 'backup list',
  summary: 'Show the backups of a repository',
  details: 'Newest first, with the end of what each restores. Exit code 1: a manifest is damaged, and the output names it.',
  options: backupListOptions,
  examples: [{ line: `skua backup list --repository ${R}`, does: 'What is there' }],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupList(input, io),
});

export const backupVerifyCommand = defineCommand({
  name: 'backup verify',
  summary: 'Check a repository',
  details: 'Looks for everything that the backups need and reads it against its checksums. What is damaged is noted, so that the next backup stores it anew where the node still has it; nothing else changes. Exit code 1: something is missing or damaged, and the output names the object.',
  options: backupVerifyOptions,
  examples: [
    { line: `skua backup verify --repository ${R}`, does: 'Read and check everything' },
    { line: 'skua backup verify --repository s3://backups/a --read-data-subset 10%', does: 'Every night another tenth' },
  ],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupVerify(input, io),
});

export const backupDrillCommand = defineCommand({
  name: 'backup drill',
  summary: 'Prove that a backup can be restored',
  details: 'Restores it to a scratch folder, opens it there, checks every record and index entry, and removes it. A backup that passes is noted in the repository as proven, and nodes tell its age as a metric. Exit code 1: it does not pass.',
  options: backupDrillOptions,
  examples: [
    { line: `skua backup drill --repository ${R}`, does: 'Prove the newest backup' },
    { line: `skua backup drill --repository ${R} --scratch /mnt/large --json`, does: 'With a disk of its own; for a program' },
  ],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupDrill(input, io),
});

export const backupPruneCommand = defineCommand({
  name: 'backup prune',
  summary: 'Remove old backups from a repository',
  details: 'Keeps a backup when any of the --keep options names it, and removes the others; without one it only clears what no backup needs. The newest backup of each node always stays, unless --forget-node names a node that is no more. What is left is never touched. Content goes a day after it was first seen to be of no use, so that backups which follow need not store it again; with --erased at once, whichever prune it was that dropped it. While a backup is being made no content is removed: with --erased that is exit code 4, and the command is to be repeated.',
  options: backupPruneOptions,
  examples: [
    { line: `skua backup prune --repository ${R} --keep-daily 7`, does: 'Keep a week' },
    { line: `skua backup prune --repository ${R} --keep-last 3 --keep-weekly 8`, does: 'Keep the last three, and two months of weeks' },
    { line: `skua backup prune --repository ${R} --erased --dry-run`, does: 'Which backups hold erased events?' },
  ],
  run: async (input, io) => (await import('../audit/command-audit.ts')).withAudit({ file: input.options['dry-run'] ? null : input.options['audit-log'], action: 'repository.prune', target: input.options.repository }, io, async () => (await import('./run-backup.ts')).runBackupPrune(input, io)),
});

export const backupKeyCommand = defineCommand({
  name: 'backup key',
  summary: 'Make the key of an encrypted repository',
  details: 'Writes a random key that only you may read. Keep a copy somewhere else: without it nobody can ever restore. A file that is there is left as it is.',
  positionals: [{ name: 'FILE', help: 'file for the key' }],
  options: backupKeyOptions,
  examples: [{ line: 'skua backup key ./repository.key', does: 'Make a key' }],
  run: async (input, io) => (await import('./run-backup.ts')).runBackupKey(input, io),
});

export const restoreCommand = defineCommand({
  name: 'restore',
  summary: 'Restore a backup into the directory of a stopped node',
  details: 'Checks every byte on its way, then opens the result once to prove that a node will. Until it has come to its end no node starts on the directory, and the same command with --force completes it. Without --backup, --to-position and --to-time the newest state is restored. A moment in log that was scavenged since can not be had unless a backup from before the scavenge holds it: the refusal names the nearest that can, and --at-or-before takes the one before. The directory gets a new node id, so the next copy of its files has to be a full one.',
  options: restoreOptions,
  examples: [
    { line: 'skua restore --from ./backups --db ./data', does: 'The newest state of a repository' },
    { line: 'skua restore --from s3://backups/a --db ./data --to-time 2026-07-01T12:00:00Z', does: 'As it was at noon' },
    { line: 'skua restore --from ./backups --db ./data --to-time 2026-07-01 --at-or-before', does: 'Or the nearest before' },
    { line: 'skua restore --from ./monday --db ./data --force', does: 'A copy of files, over old data' },
  ],
  run: async (input, io) => (await import('../audit/command-audit.ts')).withAudit({ file: input.options['audit-log'], action: 'directory.restore', target: input.options.db }, io, async () => (await import('./run-restore.ts')).runRestore(input, io)),
});

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'Check a stopped data directory, or a store on object storage',
  details: 'Reads every chunk, checksum and record, the index against the log, and the scavenge database. Changes nothing. A store on object storage (s3://bucket/prefix, or a directory of objects) may be in use meanwhile; its manifests and commits are checked too, and that every object is there. Notes name what has no checksum, so that a changed byte may go unnoticed there. Exit code 0: nothing wrong found; 1: something is, and the output says where; 3: no data there, or a node is using the directory.',
  positionals: [{ name: 'DIR', help: 'the data directory, or s3://bucket/prefix', isOptional: true }],
  options: verifyOptions,
  examples: [
    { line: 'skua verify ./data', does: 'Check the directory of a stopped node' },
    { line: 'skua verify ./data --json', does: 'The same for a program' },
    { line: 'skua verify --storage s3://bucket/prefix', does: 'Check a store in a bucket, beside whoever uses it' },
  ],
  run: async (input, io) => (await import('./run-verify.ts')).runVerify(input, io),
});
