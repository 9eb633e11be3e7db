import { defineCommand } from '../cli/command.ts';
import { subscriptionsListOptions, subscriptionsOptions, subscriptionsReplayOptions, subscriptionsResetOptions } from './options.ts';

/** `skua subscriptions ...`: groups of consumers that share out the events of a stream, of a running node. */

const GROUP = [{ name: 'STREAM', help: 'the stream that the group reads; $all (in quotes) for the whole log' }, { name: 'GROUP', help: 'the name of the group' }] as const;

export const subscriptionsListCommand = defineCommand({
  name: 'subscriptions list',
  summary: 'Show the persistent subscriptions, how far each is, and what it has parked',
  details: 'Of a running node; in a cluster the leader answers, whichever member is asked. Exit code 1 with --stream: the stream has no group.',
  options: subscriptionsListOptions,
  examples: [{ line: 'skua subscriptions list', does: 'All groups' }, { line: 'skua subscriptions list --stream orders --json', does: 'Those of one stream; for a program' }],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsList(input, io),
});

export const subscriptionsInfoCommand = defineCommand({
  name: 'subscriptions info',
  summary: 'Show one persistent subscription with its settings and its consumers',
  positionals: GROUP,
  options: subscriptionsOptions,
  examples: [{ line: 'skua subscriptions info orders workers', does: 'The group workers of the stream orders' }, { line: "skua subscriptions info '$all' audit", does: 'A group of the whole log' }],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsInfo(input, io),
});

export const subscriptionsReplayCommand = defineCommand({
  name: 'subscriptions replay-parked',
  summary: 'Send parked messages again',
  details: 'They come to the consumers as new ones, and are parked again if they fail again. Takes a user in $ops or $admins.',
  positionals: GROUP,
  options: subscriptionsReplayOptions,
  examples: [{ line: 'skua subscriptions replay-parked orders workers', does: 'All of them' }, { line: 'skua subscriptions replay-parked orders workers --stop-at 10', does: 'Those with numbers below 10' }],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsReplay(input, io),
});

export const subscriptionsResetCommand = defineCommand({
  name: 'subscriptions reset',
  summary: 'Let a persistent subscription begin anew',
  details: 'Its checkpoint is forgotten, so that events which were done come again; what it has parked stays. Consumers are dropped, and come back by themselves. Takes a user in $ops or $admins.',
  positionals: GROUP,
  options: subscriptionsResetOptions,
  examples: [
    { line: 'skua subscriptions reset orders workers --from start', does: 'From the first event' }, { line: 'skua subscriptions reset orders workers --from 1250', does: 'From event 1250' },
    { line: 'skua subscriptions reset orders workers --from end', does: 'Leave out what is there' },
  ],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsReset(input, io),
});

export const subscriptionsRestartCommand = defineCommand({
  name: 'subscriptions restart',
  summary: 'Restart all persistent subscriptions of a node',
  details: 'From their checkpoints: for groups that hang. Consumers are dropped, and come back by themselves. Takes a user in $ops or $admins.',
  options: subscriptionsOptions,
  examples: [{ line: 'skua subscriptions restart', does: 'All groups, from what is stored' }],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsRestart(input, io),
});

export const subscriptionsDeleteCommand = defineCommand({
  name: 'subscriptions delete',
  summary: 'Delete a persistent subscription, with its checkpoint and what it has parked',
  details: 'The events of the stream stay. Takes a user in $ops or $admins.',
  positionals: GROUP,
  options: subscriptionsOptions,
  examples: [{ line: 'skua subscriptions delete orders workers', does: 'The group, not the stream' }],
  run: async (input, io) => (await import('./run-subscriptions.ts')).runSubscriptionsDelete(input, io),
});
