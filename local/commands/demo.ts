import { defineCommand } from '../cli/command.ts';
import { address, flag } from '../cli/options.ts';

/** Where a node is looked for unless one is named. */
export const DEFAULT_NODE = 'http://127.0.0.1:2113';

export const demoOptions = {
  node: address('URL', `SKUA_NODE or ${DEFAULT_NODE}`, 'Node to talk to; may carry user and password, else SKUA_USER and SKUA_PASSWORD count'),
  json: flag('Report as JSON'),
};

export const demoCommand = defineCommand({
  name: 'demo',
  summary: 'Feed real webhook payloads into a running node',
  details: 'Sends the recorded webhooks of GitHub (npm package @octokit/webhooks-examples), one stream a repository, reads them back and compares, deletes two streams (one soft, one hard), and shows the counts. A second run is recognised as a repeat.',
  options: demoOptions,
  examples: [
    { line: 'skua demo', does: 'Use the node on this machine' },
    { line: 'skua demo --node http://127.0.0.1:2114 --json', does: 'Another node; report for a program' },
  ],
  run: async (input, io) => (await import('./run-demo.ts')).runDemoCommand(input, io),
});
