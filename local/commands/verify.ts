import { defineCommand } from '../cli/command.ts';
import { flag, text } from '../cli/options.ts';

export const verifyOptions = {
  index: text('DIR', null, 'Folder of the index', 'index in the data directory'),
  json: flag('One JSON object a line: findings, then the summary'),
};

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'Check a stopped data directory',
  details: 'Reads every chunk, checksum and record, and the index against the log. Changes nothing. Exit code 0: nothing wrong; 1: something is, and the output says where; 3: no data directory, or a node is using it.',
  positionals: [{ name: 'DIR', help: 'the data directory' }],
  options: verifyOptions,
  examples: [
    { line: 'skua verify ./data', does: 'Check the directory of a stopped node' },
    { line: 'skua verify ./data --json', does: 'The same for a program' },
  ],
  run: async (input, io) => (await import('./run-verify.ts')).runVerify(input, io),
});
