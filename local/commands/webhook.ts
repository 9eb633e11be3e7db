import { SCHEME_NAMES } from '../../core/webhook/signatures/schemes.ts';
import { defineCommand } from '../cli/command.ts';
import type { Option } from '../cli/options.ts';
import { flag, integer, text, texts } from '../cli/options.ts';

/** `skua webhook ...`: trying out a routing script, and a connector, without the real sender. */

/** The year 9999. */
const TIMESTAMP_MAX_S = 253_402_300_799;
const TIMEOUT_MAX_S = 3_600;
const SCRIPT_TIMEOUT_MAX_MS = 10_000;

function timestamp(help: string): Option<number | null> {
  const { parse } = integer('SECONDS', 0, TIMESTAMP_MAX_S, 0, help);
  return { placeholder: 'SECONDS', fallback: null, fallbackText: 'now', help, parse };
}

export const testOptions = {
  header: texts('NAME=VALUE', 'A header of the call; may be given several times'),
  query: texts('NAME=VALUE', 'A parameter of the call; may be given several times'),
  'script-timeout-ms': integer('MS', 1, SCRIPT_TIMEOUT_MAX_MS, 100, 'Processor time that the script may take, as Webhook:ScriptTimeoutMs of the node'),
  json: flag('One JSON object: outcome, stream, schema, error, durationMs'),
};

export const webhookTestCommand = defineCommand({
  name: 'webhook test',
  summary: 'Run a routing script on a payload and show where the event would go',
  details: 'Runs the script where a node would run it, under the same limits, without a node. Nothing is written. Exit code 0: routed; 1: the call would be refused, and the output says why.',
  positionals: [{ name: 'SCRIPT', help: 'a file of JavaScript that defines route(request)' }, { name: 'PAYLOAD', help: 'a file with the body of a call, JSON' }],
  options: testOptions,
  examples: [
    { line: 'skua webhook test route.js order.json', does: 'See stream and type' },
    { line: 'skua webhook test route.js order.json --header x-event=push --json', does: 'The same for a program' },
  ],
  run: async (input, io) => (await import('./run-webhook-test.ts')).runWebhookTest(input, io),
});

export const sendOptions = {
  scheme: text('NAME', null, `How to sign: ${SCHEME_NAMES.join(', ')}. Without it nothing is signed`),
  'secret-file': text('FILE', null, 'File with the secret; the end of its line does not count'),
  id: text('ID', null, 'Id of the delivery, for schemes that send one: the same id again is written once', 'a new one'),
  timestamp: timestamp('Time of signing, Unix seconds'),
  header: texts('NAME=VALUE', 'A further header, or another value for one; may be given several times'),
  'content-type': text('TYPE', 'application/json', 'Media type of the body'),
  'signature-header': text('NAME', null, 'Of Generic: header with the signature'),
  'signature-prefix': text('TEXT', null, 'Of Generic: what stands in front of the signature'),
  'signature-encoding': text('NAME', null, 'Of Generic: hex or base64', 'hex'),
  'signature-hash': text('NAME', null, 'Of Generic: sha256, sha1 or sha512', 'sha256'),
  timeout: integer('SECONDS', 1, TIMEOUT_MAX_S, 60, 'How long to wait for the answer'),
  json: flag('One JSON object: status, meaning, id, durationMs'),
};

export const webhookSendCommand = defineCommand({
  name: 'webhook send',
  summary: 'Sign a file as a sender of webhooks does, and post it',
  details: 'Sends the bytes of the file once and shows what the answer means. Exit code 0: taken (2xx); 1: the call is not acceptable; 3: nobody answers, or not now; 4: signature refused.',
  positionals: [{ name: 'URL', help: 'where to, as http://127.0.0.1:2113/webhook/orders' }, { name: 'FILE', help: 'the body' }],
  options: sendOptions,
  examples: [
    { line: 'skua webhook send $URL order.json --scheme Stripe --secret-file key', does: 'Sign as Stripe does' },
    { line: 'skua webhook send http://127.0.0.1:2113/webhook/orders order.json', does: 'Send unsigned' },
  ],
  run: async (input, io) => (await import('./run-webhook-send.ts')).runWebhookSend(input, io),
});
