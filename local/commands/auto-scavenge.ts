import { defineCommand } from '../cli/command.ts';
import { nodeOption } from '../cli/node-option.ts';
import { flag } from '../cli/options.ts';

/** `skua auto-scavenge ...`: a scavenge of every node, on a schedule. */

const json = flag('Report as JSON');
export const autoScavengeOptions = { node: nodeOption, json };

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
