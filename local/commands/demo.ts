import { defineCommand } from '../cli/command.ts';
import { nodeOption } from '../cli/node-option.ts';
import { flag, text } from '../cli/options.ts';

export const demoOptions = {
  node: nodeOption,
  db: text('DIR', './data', 'Data directory of that node, to search it for an erased event; skipped where it is not there'),
  json: flag('Report as JSON'),
};

export const demoCommand = defineCommand({
  name: 'demo',
  summary: 'Feed real webhook payloads into a running node, delete some, and scavenge',
  details: 'Sends the recorded webhooks of GitHub (npm package @octokit/webhooks-examples), one stream a repository, reads them back and compares. Then it limits one stream to its newest events, deletes two (one soft, one hard), scavenges, shows the size of the chunk files before and after, and searches them for a deleted event. A second run is recognised as a repeat.',
  options: demoOptions,
  examples: [
    { line: 'skua demo', does: 'Use the node on this machine' },
    { line: 'skua demo --node http://127.0.0.1:2114 --json', does: 'Another node; report for a program' },
  ],
  run: async (input, io) => (await import('./run-demo.ts')).runDemoCommand(input, io),
});
