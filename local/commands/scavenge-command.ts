import { defineCommand } from '../cli/command.ts';
import {
  autoScavengeOptions,
  explainOptions,
  proveErasedOptions,
  redactOptions,
  scavengeOfflineOptions,
  scavengeStartOptions,
  scavengeStatusOptions,
  scavengeStopOptions,
  scavengeWatchOptions,
} from './options-command.ts';

/** `skua scavenge ...`: events that streams no longer show are really removed from disk. */

export const scavengeStartCommand = defineCommand({
  name: 'scavenge start',
  summary: 'Start a scavenge of a running node',
  details:
    'Permanently removes deleted and expired events from the chunk files and the index: only a backup brings them back. An unfinished scavenge is resumed, up to its own scavenge point; what was deleted or has expired since needs another run. --until-clean starts that one afterwards; --fresh abandons the unfinished one instead, keeps the chunks it has rewritten, and starts at a new point. --dry-run shows beforehand what would be removed. Ctrl+C stops watching, not the scavenge; it does stop a dry run.',
  options: scavengeStartOptions,
  examples: [
    { line: 'skua scavenge start --dry-run', does: 'See what would be removed; changes nothing' },
    { line: 'skua scavenge start --watch', does: 'Start, and follow it to the end' },
    { line: 'skua scavenge start --wait --until-clean', does: 'Resume an unfinished one, then do the rest' },
    { line: 'skua scavenge start --fresh', does: 'Abandon an unfinished one, and start at a new point' },
    { line: 'skua scavenge start --throttle-percent 50', does: 'Take twice as long, with half the load' },
    { line: 'skua scavenge start --threads 2 --wait --json', does: 'Use two threads; report the result for a program' },
  ],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStart(input, io),
});

export const scavengeStopCommand = defineCommand({
  name: 'scavenge stop',
  summary: 'Stop the scavenge of a running node',
  details:
    'Returns when it has stopped. The next start resumes where it stopped, even with other threads or another throttle.',
  positionals: [{ name: 'ID', help: 'the scavenge to stop; without it the one that is running', isOptional: true }],
  options: scavengeStopOptions,
  examples: [{ line: 'skua scavenge stop', does: 'Stop what is running' }],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStop(input, io),
});

export const scavengeStatusCommand = defineCommand({
  name: 'scavenge status',
  summary: 'Show whether a scavenge is running, its progress, and the result of the last run',
  details:
    'If a scavenge is unfinished, for example after the node was killed, shows since when, up to which point, and how to resume it.',
  options: scavengeStatusOptions,
  examples: [
    { line: 'skua scavenge status', does: 'Look once' },
    { line: 'skua scavenge status --node http://127.0.0.1:2114 --json', does: 'Another node; for a program' },
  ],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStatus(input, io),
});

export const scavengeWatchCommand = defineCommand({
  name: 'scavenge watch',
  summary: 'Follow the scavenge of a running node to its end',
  details:
    'Shows a progress bar on a terminal and lines elsewhere. Exit code 0: it succeeded; 1: it was stopped or failed. If none is running, the result of the last one counts. Ctrl+C stops watching, not the scavenge.',
  options: scavengeWatchOptions,
  examples: [{ line: 'skua scavenge watch', does: 'Follow what is running' }],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeWatch(input, io),
});

export const scavengeOfflineCommand = defineCommand({
  name: 'scavenge offline',
  summary: 'Scavenge the directory of a stopped node',
  details:
    'Locks the directory, scavenges as a running node would, and shows the result. Ctrl+C stops it cleanly: the next scavenge, offline or not, resumes from there, up to the same scavenge point (--until-clean then does the rest, --fresh starts at a new point).',
  positionals: [{ name: 'DIR', help: 'the data directory' }],
  options: scavengeOfflineOptions,
  examples: [
    { line: 'skua scavenge offline ./data --dry-run', does: 'See what would be removed' },
    { line: 'skua scavenge offline ./data --until-clean', does: 'Resume an unfinished one, then do the rest' },
    { line: 'skua scavenge offline ./data --threads 4', does: 'Do it with four threads' },
  ],
  run: async (input, io) =>
    (await import('../audit/command-audit.ts')).withAudit(
      {
        file: input.options['dry-run'] ? null : input.options['audit-log'],
        action: 'directory.scavenge',
        target: input.positionals[0]!,
      },
      io,
      async () => (await import('./run-scavenge-offline.ts')).runScavengeOffline(input, io),
    ),
});

/** `skua auto-scavenge ...`: a scavenge of every node, on a schedule. */

export const autoScavengeStatusCommand = defineCommand({
  name: 'auto-scavenge status',
  summary: 'Show the schedule, the progress of the current cycle, and the result of the last one',
  options: autoScavengeOptions,
  examples: [{ line: 'skua auto-scavenge status', does: 'When the next cycle starts, or the progress of this one' }],
  run: async (input, io) => (await import('./run-auto-scavenge.ts')).runAutoScavengeStatus(input, io),
});

export const autoScavengeConfigureCommand = defineCommand({
  name: 'auto-scavenge configure',
  summary: 'Set the schedule of scavenges',
  details:
    "CRON has five fields: minute, hour, day of month, month, day of week (0 or 7 is Sunday). Times are in UTC, or in the time zone of the node's option AutoScavenge:TimeZone. Quote them, or the shell expands the asterisks. A cycle in progress is not affected.",
  positionals: [{ name: 'CRON', help: 'the schedule, quoted' }],
  options: autoScavengeOptions,
  examples: [
    { line: 'skua auto-scavenge configure "30 2 * * sun"', does: 'Every Sunday at half past two' },
    { line: 'skua auto-scavenge configure "0 */6 * * *"', does: 'Every six hours' },
  ],
  run: async (input, io) => (await import('./run-auto-scavenge.ts')).runAutoScavengeConfigure(input, io),
});

export const autoScavengePauseCommand = defineCommand({
  name: 'auto-scavenge pause',
  summary: 'Start no more scavenges, and stop the one that is running',
  details:
    'Returns when it has stopped, or after about a second; if it is still stopping then, the status shows when it has stopped. A pause survives restarts.',
  options: autoScavengeOptions,
  examples: [{ line: 'skua auto-scavenge pause', does: 'Keep the cluster quiet until resumed' }],
  run: async (input, io) => (await import('./run-auto-scavenge.ts')).runAutoScavengePause(input, io),
});

export const autoScavengeResumeCommand = defineCommand({
  name: 'auto-scavenge resume',
  summary: 'Resume after a pause',
  details: 'A cycle continues with the remaining nodes. Cycles missed during the pause are not made up for.',
  options: autoScavengeOptions,
  examples: [{ line: 'skua auto-scavenge resume', does: 'End a pause' }],
  run: async (input, io) => (await import('./run-auto-scavenge.ts')).runAutoScavengeResume(input, io),
});

export const explainCommand = defineCommand({
  name: 'explain',
  summary: 'Show what a scavenge would remove from a stream, by which rule, and what stays',
  details:
    'Changes nothing. The last event of a stream always stays, so that its number is not used twice, unless the stream is hard-deleted; that of a soft-deleted one stays without its data. Metadata without effect is listed with the reason. If a scavenge is unfinished, shows what that one would leave.',
  positionals: [{ name: 'STREAM', help: 'the name of the stream' }],
  options: explainOptions,
  examples: [
    { line: 'skua explain parcels', does: 'Ask the node on this machine' },
    { line: 'skua explain parcels --db ./data --json', does: 'Read the directory of a stopped node; for a program' },
    { line: 'skua explain parcels --storage s3://bucket/prefix', does: 'Read a bucket that is in use' },
  ],
  run: async (input, io) => (await import('./run-explain.ts')).runExplain(input, io),
});

export const redactCommand = defineCommand({
  name: 'redact',
  summary: 'Remove the content of single events and keep their number, id and type',
  details:
    'Of a running node, as one of its administrators; in a cluster any member. The events read as empty at once, everywhere. The next scavenge removes their content from the files; backups made before that keep it until they are pruned. Event metadata whose names begin with $ stays unless --metadata names it. This cannot be undone. Shows what it would take, and asks on a terminal; elsewhere it needs --yes. The stream $redactions records who redacted which event, and why. Refused for tombstones, for parts of explicit transactions, and for streams whose names begin with $.',
  positionals: [{ name: 'STREAM', help: 'the stream of the events' }],
  options: redactOptions,
  examples: [
    {
      line: 'skua redact orders-7 --event 0 --reason "wrong address" --preview',
      does: 'Show what it would take; changes nothing',
    },
    {
      line: 'skua redact orders-8 --event 0 --event 1 --reason "wrong address" --yes',
      does: 'Two events, without asking',
    },
    {
      line: "skua redact orders-8 --event 1 --reason lost --metadata '$correlationId' --yes --json",
      does: 'With a piece of its metadata; for a program',
    },
  ],
  run: async (input, io) => (await import('./run-redact.ts')).runRedact(input, io),
});

export const proveErasedCommand = defineCommand({
  name: 'prove-erased',
  summary: 'Search a data directory, object storage or backups for what remains of erased events',
  details:
    'Searches every byte of every file: chunks, index and scavenge database. Changes nothing, and a node may run meanwhile. Exit code 0: no trace of an event; 1: a trace was found, and the output says where, or nothing shows that there ever was such a stream or event, so that nothing is proved (--allow-unknown: 0). Residue shows that a stream existed, but none of its events: its name in a tombstone, in metadata or in the scavenge database, and bare index entries; it does not count as a trace. An event that a scavenge has removed leaves no residue, unless it was redacted. What was not found at all is streamKnown false and unknownEvents with --json. The last event of a stream stays unless the stream is deleted; of a soft-deleted one a scavenge leaves number, id and type, which are residue. In a repository every backup is searched, and what was shipped after it; `skua backup prune --erased` removes those that hold erased events. In object storage every object is searched, also those that wait for their removal after a scavenge, and the output says until when these go. Says, too, when each redaction or delete was asked and by whom, as far as the log knows, and the anchor of the hash chain.',
  positionals: [{ name: 'ID', help: 'more event ids', isOptional: true, isRepeated: true }],
  options: proveErasedOptions,
  examples: [
    { line: 'skua prove-erased --stream parcels --db ./data', does: 'Is anything left of the stream?' },
    {
      line: 'skua prove-erased --stream parcels --storage s3://bucket/prefix',
      does: 'Is anything left of it in the bucket?',
    },
    {
      line: 'skua prove-erased --stream parcels --repository ./backups',
      does: 'Is anything left of it in the backups?',
    },
    {
      line: 'skua prove-erased --event 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4 --json',
      does: 'Is anything left of the event? For a program',
    },
  ],
  run: async (input, io) => (await import('./run-prove-erased.ts')).runProveErased(input, io),
});
