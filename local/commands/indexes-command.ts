import { defineCommand } from '../cli/command.ts';
import { indexesSetOptions, indexesStatusOptions } from './options-command.ts';

/** `skua indexes ...`: the attribute indexes of a running node, by which events are found by what they are. */

export const indexesStatusCommand = defineCommand({
  name: 'indexes status',
  summary: 'Show the indexes of categories, event types, correlations and tags',
  details:
    'Of a running node, as one of its administrators. What an index does not cover yet is scanned by reads. With --watch, progress is shown until all indexes are built.',
  options: indexesStatusOptions,
  examples: [
    { line: 'skua indexes status', does: 'All indexes' },
    { line: 'skua indexes status --watch', does: 'Wait until they are built' },
    { line: 'skua indexes status --json', does: 'For a program' },
  ],
  run: async (input, io) => (await import('./run-indexes.ts')).runIndexesStatus(input, io),
});

export const indexesSetCommand = defineCommand({
  name: 'indexes set',
  summary: 'Switch the indexes of names, correlations and tags on or off',
  details:
    'Of a running node, as one of its administrators; in a cluster any member. The setting is stored in the log and applies to all members. An index that is switched on is built in the background; one that is switched off is removed from the disk. --names is the index of categories and event types.',
  options: indexesSetOptions,
  examples: [
    { line: 'skua indexes set --correlations on --tags on', does: 'Index $correlationId and $tags too' },
    { line: 'skua indexes set --names off', does: 'Remove the index of categories and event types' },
  ],
  run: async (input, io) => (await import('./run-indexes.ts')).runIndexesSet(input, io),
});
