import { defineCommand } from '../cli/command.ts';
import { readOptions, streamsOptions } from './read-options.ts';

/** `skua read` and `skua streams`: events, and the streams that have them, by what they are. */

export const readCommand = defineCommand({
  name: 'read',
  summary: 'Show events of a stream, or of all streams by category, type, tags or correlation',
  details:
    'Of a running node. STREAM is read as it is; $all is the whole store. Without STREAM, events of all streams are shown that match every condition given, in the order in which they were written: each needs the right to read its own stream, not one to $all, and what retention hides is not shown. Each line has position (of $all), time, number@stream, type, and the beginning of the data. Exit code 0 even if nothing matches; 1: the stream does not exist.',
  positionals: [{ name: 'STREAM', help: 'the stream, or $all', isOptional: true }],
  options: readOptions,
  examples: [
    { line: 'skua read orders-7 --backward --limit 10', does: 'The newest ten events of a stream' },
    {
      line: 'skua read --category orders --type placed --follow',
      does: 'Events of one type in all streams of a category, old and new',
    },
    { line: 'skua read --correlation 8f1c --json', does: 'All that belongs together, for a program' },
    { line: 'skua read --tag customer-7 --tag vip --backward --limit 5', does: 'The newest five that have both tags' },
  ],
  run: async (input, io) => (await import('./run-read.ts')).runRead(input, io),
});

export const streamsCommand = defineCommand({
  name: 'streams',
  summary: 'List the streams that have events of a category, type, tag or correlation',
  details:
    'Of a running node. Reads matching events from the newest back, and shows each stream once, with its newest match; ends after as many streams or events as the options say, and tells if there may be more. Data of events is not read.',
  options: streamsOptions,
  examples: [
    { line: 'skua streams --category orders', does: 'Streams of a category, the last written first' },
    { line: 'skua streams --category orders --type cancelled', does: 'Those with an event of this type' },
    { line: 'skua streams --tag customer-7 --limit 20 --json', does: 'For a program' },
  ],
  run: async (input, io) => (await import('./run-streams.ts')).runStreams(input, io),
});
