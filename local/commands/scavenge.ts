import { defineCommand } from '../cli/command.ts';
import { nodeOption } from '../cli/node-option.ts';
import { flag } from '../cli/options.ts';
import { indexOption, runOptions } from '../scavenge/options.ts';

/** `skua scavenge ...`: events that streams no longer show are really removed from disk. */

const json = flag('Report as JSON, sizes in bytes');

export const startOptions = {
  ...runOptions,
  watch: flag('Show how far it is until it has ended'),
  wait: flag('Wait until it has ended'),
  node: nodeOption,
  json,
};

export const scavengeStartCommand = defineCommand({
  name: 'scavenge start',
  summary: 'Start a scavenge of a running node',
  details: 'Removes events that were deleted or have expired from the chunk files and the index, for ever: only a backup brings them back. A scavenge that was stopped goes on where it stopped. --dry-run shows beforehand what would go. Ctrl+C ends the watching, not the scavenge; a dry run it stops.',
  options: startOptions,
  examples: [
    { line: 'skua scavenge start --dry-run', does: 'See what would be removed; changes nothing' },
    { line: 'skua scavenge start --watch', does: 'Start, and follow it to its end' },
    { line: 'skua scavenge start --throttle-percent 50', does: 'Take twice as long, with half the load' },
    { line: 'skua scavenge start --threads 2 --wait --json', does: 'Use two threads; report the result for a program' },
  ],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStart(input, io),
});

export const stopOptions = { node: nodeOption, json };

export const scavengeStopCommand = defineCommand({
  name: 'scavenge stop',
  summary: 'Stop the scavenge of a running node',
  details: 'Returns when it has stopped. The next start goes on where it stopped, also with other threads or another throttle.',
  positionals: [{ name: 'ID', help: 'the scavenge to stop; without it the one that is running', isOptional: true }],
  options: stopOptions,
  examples: [{ line: 'skua scavenge stop', does: 'Stop what is running' }],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStop(input, io),
});

export const statusOptions = { node: nodeOption, json };

export const scavengeStatusCommand = defineCommand({
  name: 'scavenge status',
  summary: 'Show whether a node scavenges, how far it is, and how the last run ended',
  options: statusOptions,
  examples: [
    { line: 'skua scavenge status', does: 'Look once' },
    { line: 'skua scavenge status --node http://127.0.0.1:2114 --json', does: 'Another node; for a program' },
  ],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeStatus(input, io),
});

export const watchOptions = { node: nodeOption, json: flag('One JSON object a line: progress, then the result') };

export const scavengeWatchCommand = defineCommand({
  name: 'scavenge watch',
  summary: 'Follow the scavenge of a running node to its end',
  details: 'Shows a bar on a terminal and lines elsewhere. Exit code 0: it has succeeded; 1: it was stopped or has failed. Where none runs the result of the last one counts. Ctrl+C ends the watching, not the scavenge.',
  options: watchOptions,
  examples: [{ line: 'skua scavenge watch', does: 'Follow what is running' }],
  run: async (input, io) => (await import('./run-scavenge.ts')).runScavengeWatch(input, io),
});

export const offlineOptions = {
  ...runOptions,
  index: indexOption,
  'disable-scavenge-merging': flag('Leave small chunk files as they are'),
  json,
};

export const scavengeOfflineCommand = defineCommand({
  name: 'scavenge offline',
  summary: 'Scavenge the directory of a stopped node',
  details: 'Locks the directory, does what a scavenge of a running node does, and shows what it has brought. Ctrl+C stops it cleanly: the next scavenge, offline or not, goes on from there.',
  positionals: [{ name: 'DIR', help: 'the data directory' }],
  options: offlineOptions,
  examples: [
    { line: 'skua scavenge offline ./data --dry-run', does: 'See what would be removed' },
    { line: 'skua scavenge offline ./data --threads 4', does: 'Do it with four threads' },
  ],
  run: async (input, io) => (await import('./run-scavenge-offline.ts')).runScavengeOffline(input, io),
});
