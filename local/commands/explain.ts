import { defineCommand } from '../cli/command.ts';
import { nodeOption } from '../cli/node-option.ts';
import { flag, text } from '../cli/options.ts';
import { indexOption } from '../scavenge/options.ts';

export const explainOptions = {
  node: nodeOption,
  db: text('DIR', null, 'Directory of a stopped node to look into, instead of asking a running one'),
  index: indexOption,
  json: flag('Report as JSON, sizes in bytes'),
};

export const explainCommand = defineCommand({
  name: 'explain',
  summary: 'Show what a scavenge would remove from a stream, by which rule, and what stays',
  details: 'Changes nothing. The last event of a stream always stays, so that its number is not used twice, unless the stream is hard-deleted.',
  positionals: [{ name: 'STREAM', help: 'the name of the stream' }],
  options: explainOptions,
  examples: [
    { line: 'skua explain parcels', does: 'Ask the node on this machine' },
    { line: 'skua explain parcels --db ./data --json', does: 'Look into the directory of a stopped node; for a program' },
  ],
  run: async (input, io) => (await import('./run-explain.ts')).runExplain(input, io),
});
