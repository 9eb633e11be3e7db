import { defineCommand } from '../cli/command.ts';
import {
  demoOptions,
  functionsServeOptions,
  inspectOptions,
  webhookSendOptions,
  webhookTestOptions,
} from './options-command.ts';

/** `skua webhook ...`: trying out a routing script, and a connector, without the real sender. */

export const webhookTestCommand = defineCommand({
  name: 'webhook test',
  summary: 'Run a routing script on a payload and show where the event would go',
  details:
    'Runs the script in the same sandbox as a node, under the same limits. Nothing is written. Exit code 0: routed, or skipped (the script returns null, or no stream); 1: the call would be refused, and the output says why.',
  positionals: [
    { name: 'SCRIPT', help: 'a file of JavaScript that defines route(request)' },
    { name: 'PAYLOAD', help: 'a file with the body of a call, JSON' },
  ],
  options: webhookTestOptions,
  examples: [
    { line: 'skua webhook test route.js order.json', does: 'See stream and type' },
    { line: 'skua webhook test route.js order.json --header x-event=push --json', does: 'The same for a program' },
  ],
  run: async (input, io) => (await import('./run-webhook-test.ts')).runWebhookTest(input, io),
});

export const webhookSendCommand = defineCommand({
  name: 'webhook send',
  summary: 'Sign a file as a webhook sender does, and post it',
  details:
    'Sends the bytes of the file once and explains the answer. Exit code 0: accepted (2xx); 1: the call was rejected; 3: no answer, or not available now; 4: signature refused.',
  positionals: [
    { name: 'URL', help: 'address of the connector, such as http://127.0.0.1:2113/webhook/orders' },
    { name: 'FILE', help: 'the body' },
  ],
  options: webhookSendOptions,
  examples: [
    { line: 'skua webhook send $URL order.json --scheme Stripe --secret-file key', does: 'Sign as Stripe does' },
    { line: 'skua webhook send http://127.0.0.1:2113/webhook/orders order.json', does: 'Send unsigned' },
  ],
  run: async (input, io) => (await import('./run-webhook-send.ts')).runWebhookSend(input, io),
});

export const functionsServeCommand = defineCommand({
  name: 'functions serve',
  summary: 'Run the functions on this machine, without an account',
  details:
    "Turns each request into the event that the platform would make of it, and passes it to the built function in its own process, over the platform's runtime interface. The paths are those of a node; POST /tick runs a tick, which otherwise runs every minute. Options of the functions come from the environment (SERVER_...), credentials and endpoint of S3 as its SDK reads them (AWS_...). Unless the environment names others, the users admin and ops have the default passwords.",
  options: functionsServeOptions,
  examples: [
    { line: 'skua functions serve', does: 'Data in a directory, on port 2113' },
    { line: 'skua functions serve --storage s3://my-bucket/dev --port 0', does: 'Data in a bucket, on any free port' },
    { line: 'curl -X POST http://127.0.0.1:2113/tick', does: 'Run a tick and see what it did' },
  ],
  run: async (input, io) => (await import('./run-functions-serve.ts')).runFunctionsServe(input, io),
});

export const demoCommand = defineCommand({
  name: 'demo',
  summary: 'Feed real webhooks into a running node, delete some, and scavenge',
  details:
    'Creates the connector demo-github and posts recorded GitHub webhooks (npm package @octokit/webhooks-examples) to it, signed with a secret made for this run if the node stores secrets. Its script routes them to one stream per repository; they are read back and compared. Then the demo limits one stream to its newest events, deletes two (one soft, one hard), scavenges, shows the size of the chunk files before and after, and searches them for the deleted events. At its end it deletes one more stream, for you to scavenge. The connector is kept, stopped: deliveries of a second run within 30 days are recognised as repeats.',
  options: demoOptions,
  examples: [
    { line: 'skua demo', does: 'Use the node on this machine' },
    { line: 'skua demo --node http://127.0.0.1:2114 --json', does: 'Another node; report for a program' },
  ],
  run: async (input, io) => (await import('./run-demo.ts')).runDemoCommand(input, io),
});

export const inspectCommand = defineCommand({
  name: 'inspect',
  summary: 'Show what is in a file of a data directory, a bucket or a repository',
  details:
    'Identifies a file by its name and first bytes: a chunk, completed or being written; an index table, its filter, the index map; checkpoints and marks of a directory; commits, manifests and files of a log in a bucket; objects of a backup repository, with the content of blobs; the chain of hashes; the scavenge database; audit and log. A folder is listed. Damaged files are read as far as possible. It reads the whole file, compares checksums if there are any, takes no lock and changes nothing, so a node may use the file meanwhile. Password hashes, keys and sealed secrets are not shown. Exit code 0: nothing wrong found; 1: damaged, and the output names the offset; 3: not found; 4: unknown kind of file.',
  positionals: [{ name: 'FILE', help: 'a file, a folder, file:///path, or s3://bucket/key' }],
  options: inspectOptions,
  examples: [
    { line: 'skua inspect ./data', does: 'List the files and the checkpoints' },
    { line: 'skua inspect ./data/chunk-000000.000000 --limit 10', does: 'A chunk and its first records' },
    { line: 'skua inspect ./data/chunk-000000.000000 --at 0 --json', does: 'One record in full, for a program' },
    { line: 'skua inspect ./data/index/indexmap', does: 'The tables of the index' },
    { line: 'skua inspect s3://backups/a/skua-repository', does: 'An object of a bucket' },
  ],
  run: async (input, io) => (await import('./run-inspect.ts')).runInspect(input, io),
});
