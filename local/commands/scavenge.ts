import { defineCommand } from '../cli/command.ts';
import {
  autoScavengeOptions, explainOptions, proveErasedOptions, scavengeOfflineOptions, scavengeStartOptions, scavengeStatusOptions, scavengeStopOptions,
  scavengeWatchOptions,
} from './options.ts';

/** `skua scavenge ...`: events that streams no longer show are really removed from disk. */

export const scavengeStartCommand = defineCommand({
  name: 'scavenge start',
  summary: 'Start a scavenge of a running node',
  details: 'Removes events that were deleted or have expired from the chunk files and the index, for ever: only a backup brings them back. A scavenge that did not end is gone on with, up to its own scavenge point: what was deleted or has expired since needs another. --until-clean runs that one behind it; --fresh abandons the unfinished one instead, keeps what it has rewritten, and begins at a new point. --dry-run shows beforehand what would go. Ctrl+C ends the watching, not the scavenge; a dry run it stops.',
  options: scavengeStartOptions,
  examples: [
    { line: 'skua scavenge start --dry-run', does: 'See what would be removed; changes nothing' },
    { line: 'skua scavenge start --watch', does: 'Start, and follow it to its end' },
    { line: 'skua scavenge start --wait --until-clean', does: 'Go on with one that did not end, and then do the rest' },
    { line: 'skua scavenge start --fresh', does: 'Abandon one that did not end, and begin at a new point' },
    { line: 'skua scavenge start --throttle-percent 50', does: 'Take twice as long, with half the load' },
    { line: 'skua scavenge start --threads 2 --wait --json', does: 'Use two threads; report the result for a program' },
  ],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStart(input, io),
});

export const scavengeStopCommand = defineCommand({
  name: 'scavenge stop',
  summary: 'Stop the scavenge of a running node',
  details: 'Returns when it has stopped. The next start goes on where it stopped, also with other threads or another throttle.',
  positionals: [{ name: 'ID', help: 'the scavenge to stop; without it the one that is running', isOptional: true }],
  options: scavengeStopOptions,
  examples: [{ line: 'skua scavenge stop', does: 'Stop what is running' }],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStop(input, io),
});

export const scavengeStatusCommand = defineCommand({
  name: 'scavenge status',
  summary: 'Show whether a node scavenges, how far it is, and how the last run ended',
  details: 'Where a scavenge did not end, as after a kill of the node, it says that one waits to go on, since when, up to what, and how to go on.',
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
  details: 'Shows a bar on a terminal and lines elsewhere. Exit code 0: it has succeeded; 1: it was stopped or has failed. Where none runs the result of the last one counts. Ctrl+C ends the watching, not the scavenge.',
  options: scavengeWatchOptions,
  examples: [{ line: 'skua scavenge watch', does: 'Follow what is running' }],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeWatch(input, io),
});

export const scavengeOfflineCommand = defineCommand({
  name: 'scavenge offline',
  summary: 'Scavenge the directory of a stopped node',
  details: 'Locks the directory, does what a scavenge of a running node does, and shows what it has brought. Ctrl+C stops it cleanly: the next scavenge, offline or not, goes on from there, up to the same scavenge point (--until-clean then does the rest, --fresh begins at a new point).',
  positionals: [{ name: 'DIR', help: 'the data directory' }],
  options: scavengeOfflineOptions,
  examples: [
    { line: 'skua scavenge offline ./data --dry-run', does: 'See what would be removed' },
    { line: 'skua scavenge offline ./data --until-clean', does: 'Go on with one that did not end, and then do the rest' },
    { line: 'skua scavenge offline ./data --threads 4', does: 'Do it with four threads' },
  ],
  run: async (input, io) => (await import('../audit/command-audit.ts')).withAudit({ file: input.options['dry-run'] ? null : input.options['audit-log'], action: 'directory.scavenge', target: input.positionals[0]! }, io, async () => (await import('./run-scavenge-offline.ts')).runScavengeOffline(input, io)),
});

/** `skua auto-scavenge ...`: a scavenge of every node, on a schedule. */

export const autoScavengeStatusCommand = defineCommand({
  name: 'auto-scavenge status',
  summary: 'Show the schedule, how far the cycle under way is, and how the last one ended',
  options: autoScavengeOptions,
  examples: [{ line: 'skua auto-scavenge status', does: 'When the next cycle starts, or how far this one is' }],
  run: async (input, io) => (await import('./run-auto-scavenge.ts')).runAutoScavengeStatus(input, io),
});

export const autoScavengeConfigureCommand = defineCommand({
  name: 'auto-scavenge configure',
  summary: 'Set the schedule of scavenges',
  details: 'CRON has five fields: minute, hour, day of month, month, day of week (0 or 7 is Sunday). They count in UTC, or in the time zone of the node\'s option AutoScavenge:TimeZone. Quote them, or the shell puts file names in place of each asterisk. A cycle under way is not touched.',
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
  details: 'Returns when it has stopped, or after about a second while it is still stopping; the status shows then when it has. A pause outlives restarts.',
  options: autoScavengeOptions,
  examples: [{ line: 'skua auto-scavenge pause', does: 'Keep the cluster quiet until resumed' }],
  run: async (input, io) => (await import('./run-auto-scavenge.ts')).runAutoScavengePause(input, io),
});

export const autoScavengeResumeCommand = defineCommand({
  name: 'auto-scavenge resume',
  summary: 'Go on after a pause',
  details: 'A cycle goes on with the nodes that are not done. Cycles that would have started meanwhile are not made up for.',
  options: autoScavengeOptions,
  examples: [{ line: 'skua auto-scavenge resume', does: 'End a pause' }],
  run: async (input, io) => (await import('./run-auto-scavenge.ts')).runAutoScavengeResume(input, io),
});

export const explainCommand = defineCommand({
  name: 'explain',
  summary: 'Show what a scavenge would remove from a stream, by which rule, and what stays',
  details: 'Changes nothing. The last event of a stream always stays, so that its number is not used twice, unless the stream is hard-deleted; that of a soft-deleted one stays without its data. What of the metadata has no effect is named, with the reason. Where a scavenge waits to go on, it is said what that one leaves.',
  positionals: [{ name: 'STREAM', help: 'the name of the stream' }],
  options: explainOptions,
  examples: [
    { line: 'skua explain parcels', does: 'Ask the node on this machine' },
    { line: 'skua explain parcels --db ./data --json', does: 'Look into the directory of a stopped node; for a program' },
    { line: 'skua explain parcels --storage s3://bucket/prefix', does: 'Look into a bucket, beside whoever uses it' },
  ],
  run: async (input, io) => (await import('./run-explain.ts')).runExplain(input, io),
});

export const proveErasedCommand = defineCommand({
  name: 'prove-erased',
  summary: 'Search a data directory, object storage or backups for what remains of erased events',
  details: 'Searches every byte of every file: chunks, index and scavenge database. Changes nothing, and a node may run meanwhile. Exit code 0: no trace of an event; 1: a trace was found, and the output says where. Residue is what shows that there was a stream but nothing of its events: its name in a tombstone, in metadata or in the scavenge database, and bare index entries; it does not count as a trace. Of a stream that leaves not even residue the output says that no sign of it is here, which proves no erasure (--json: streamKnown false). The last event of a stream stays unless the stream is deleted; of a soft-deleted one a scavenge leaves number, id and type, which are residue. In a repository every backup is searched, and what was shipped after it; `skua backup prune --erased` removes those that hold erased events. In object storage every object is searched, also those that wait for their removal after a scavenge, and the output says until when these go.',
  positionals: [{ name: 'ID', help: 'further ids of events', isOptional: true, isRepeated: true }],
  options: proveErasedOptions,
  examples: [
    { line: 'skua prove-erased --stream parcels --db ./data', does: 'Is anything left of the stream?' },
    { line: 'skua prove-erased --stream parcels --storage s3://bucket/prefix', does: 'Is anything left of it in the bucket?' },
    { line: 'skua prove-erased --stream parcels --repository ./backups', does: 'Is anything left of it in the backups?' },
    { line: 'skua prove-erased --event 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4 --json', does: 'Is anything left of the event? For a program' },
  ],
  run: async (input, io) => (await import('./run-prove-erased.ts')).runProveErased(input, io),
});
