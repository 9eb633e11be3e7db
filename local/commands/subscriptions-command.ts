import { defineCommand } from '../cli/command.ts';
import {
  subscriptionsListOptions,
  subscriptionsOptions,
  subscriptionsReplayOptions,
  subscriptionsResetOptions,
} from './options-command.ts';

/** `skua subscriptions ...`: groups of consumers that share out the events of a stream, of a running node. */

const GROUP = [
  { name: 'STREAM', help: 'the stream that the group reads; $all (in quotes) for the whole log' },
  { name: 'GROUP', help: 'the name of the group' },
] as const;

export const subscriptionsListCommand = defineCommand({
  name: 'subscriptions list',
  summary: 'Show the persistent subscriptions, their progress and their parked messages',
  details:
    'Of a running node; in a cluster the leader answers, whichever member you ask. Exit code 1 with --stream: the stream has no group.',
  options: subscriptionsListOptions,
  examples: [
    { line: 'skua subscriptions list', does: 'All groups' },
    { line: 'skua subscriptions list --stream orders --json', does: 'Those of one stream; for a program' },
  ],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsList(input, io),
});

export const subscriptionsInfoCommand = defineCommand({
  name: 'subscriptions info',
  summary: 'Show one persistent subscription with its settings and its consumers',
  positionals: GROUP,
  options: subscriptionsOptions,
  examples: [
    { line: 'skua subscriptions info orders workers', does: 'The group workers of the stream orders' },
    { line: "skua subscriptions info '$all' audit", does: 'A group of the whole log' },
  ],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsInfo(input, io),
});

export const subscriptionsReplayCommand = defineCommand({
  name: 'subscriptions replay-parked',
  summary: 'Replay parked messages',
  details:
    'Consumers receive them as new messages; those that fail again are parked again. Requires a user in $ops or $admins.',
  positionals: GROUP,
  options: subscriptionsReplayOptions,
  examples: [
    { line: 'skua subscriptions replay-parked orders workers', does: 'All of them' },
    { line: 'skua subscriptions replay-parked orders workers --stop-at 10', does: 'Those with numbers below 10' },
  ],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsReplay(input, io),
});

export const subscriptionsResetCommand = defineCommand({
  name: 'subscriptions reset',
  summary: 'Reset a persistent subscription to a position',
  details:
    'Its checkpoint is discarded, so that events already processed are sent again; parked messages stay parked. Consumers are dropped and reconnect on their own. Requires a user in $ops or $admins.',
  positionals: GROUP,
  options: subscriptionsResetOptions,
  examples: [
    { line: 'skua subscriptions reset orders workers --from start', does: 'From the first event' },
    { line: 'skua subscriptions reset orders workers --from 1250', does: 'From event 1250' },
    { line: 'skua subscriptions reset orders workers --from end', does: 'Skip existing events' },
  ],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsReset(input, io),
});

export const subscriptionsRestartCommand = defineCommand({
  name: 'subscriptions restart',
  summary: 'Restart all persistent subscriptions of a node',
  details:
    'From their checkpoints, for groups that are stuck. Consumers are dropped and reconnect on their own. Requires a user in $ops or $admins.',
  options: subscriptionsOptions,
  examples: [{ line: 'skua subscriptions restart', does: 'All groups, from their checkpoints' }],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsRestart(input, io),
});

export const subscriptionsDeleteCommand = defineCommand({
  name: 'subscriptions delete',
  summary: 'Delete a persistent subscription with its checkpoint and parked messages',
  details: 'The events of the stream stay. Requires a user in $ops or $admins.',
  positionals: GROUP,
  options: subscriptionsOptions,
  examples: [{ line: 'skua subscriptions delete orders workers', does: 'The group, not the stream' }],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsDelete(input, io),
});
