import { defineCommand } from '../cli/command.ts';
import { nodeOption } from '../cli/node-option.ts';
import { flag, text } from '../cli/options.ts';

export const demoOptions = {
  node: nodeOption,
  db: text('DIR', './data', 'Data directory of that node, to search it for erased events; skipped where it is not there'),
  json: flag('Report as JSON'),
};

export const demoCommand = defineCommand({
  name: 'demo',
  summary: 'Feed real webhooks into a running node, delete some, and scavenge',
  details: 'Creates the connector demo-github and posts the recorded webhooks of GitHub (npm package @octokit/webhooks-examples) to it, signed with a secret made for this run where the node keeps secrets. Its script routes them to one stream a repository; they are read back and compared. Then the demo limits one stream to its newest events, deletes two (one soft, one hard), scavenges, shows the size of the chunk files before and after, and searches them for the deleted events. The connector stays, stopped: deliveries of a second run within 30 days are recognised as repeats.',
  options: demoOptions,
  examples: [
    { line: 'skua demo', does: 'Use the node on this machine' },
    { line: 'skua demo --node http://127.0.0.1:2114 --json', does: 'Another node; report for a program' },
  ],
  run: async (input, io) => (await import('./run-demo.ts')).runDemoCommand(input, io),
});
