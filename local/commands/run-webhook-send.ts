import { randomUUID } from 'node:crypto';
import { systemClock } from '../../infra/system-clock.ts';
import { coloursFor, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { caOf } from '../cli/command.ts';
import type { Input } from '../cli/command.ts';
import { isAddress } from '../../infra/runtime/command-options.ts';
import { UsageError } from '../../infra/runtime/failure.ts';
import { exitCodeOf, meaningOf, postCall, signatureHeaders } from '../webhook/send.ts';
import type { Answer } from '../webhook/send.ts';
import { namedValues, PAYLOAD_BYTES_MAX, readInput } from '../cli/input.ts';
import { Trust } from '../cli/trust.ts';
import type { webhookSendOptions } from './options-command.ts';

/** Signs a file, posts it and prints what the answer means. */
export async function runWebhookSend(
  { options, positionals }: Input<typeof webhookSendOptions>,
  io: Io,
): Promise<ExitCode> {
  const [url, file] = positionals as [string, string];
  requireAddress(url);
  const given = namedValues('header', options.header, (name) => name.toLowerCase());
  const body = await readInput(file, PAYLOAD_BYTES_MAX);
  const signed = await signatureHeaders(
    {
      scheme: options.scheme,
      secretFile: options['secret-file'],
      id: options.id,
      timestampS: options.timestamp,
      header: options['signature-header'],
      prefix: options['signature-prefix'],
      encoding: options['signature-encoding'],
      hash: options['signature-hash'],
    },
    body,
    { uuid: randomUUID, nowMs: systemClock.nowMs() },
  );
  const headers = new Map([
    ['content-type', options['content-type']],
    ...signed.headers.map(([name, value]) => [name.toLowerCase(), value] as const),
    ...given,
  ]);
  const trust = new Trust(caOf(options.ca, io.env));
  if (options.ca !== null) await trust.load();
  const startMs = systemClock.monotonicMs();
  const answer = await postCall({ url, headers, body: new Uint8Array(body), timeoutMs: options.timeout * 1000, trust });
  const durationMs = Math.round((systemClock.monotonicMs() - startMs) * 1000) / 1000;
  if (options.json)
    line(
      io.stdout,
      JSON.stringify({ status: answer.status, meaning: meaningOf(answer.status), id: signed.id, durationMs }),
    );
  else showAnswer(answer, signed.id, durationMs, io);
  return exitCodeOf(answer.status);
}

/** A webhook is signed, not logged in: credentials in the address would be sent by no sender. */
function requireAddress(url: string): void {
  if (!isAddress(url))
    throw new UsageError(`URL must be an address such as http://127.0.0.1:2113/webhook/orders, not '${url}'.`);
  const { username, password } = new URL(url);
  if (username !== '' || password !== '')
    throw new UsageError('Leave user and password out of URL: calls are signed, without a login.');
}

function showAnswer({ status, statusText, text }: Answer, id: string | null, durationMs: number, io: Io): void {
  const { green, red, dim } = coloursFor(io.stdout, io.env);
  const paint = exitCodeOf(status) === EXIT.ok ? green : red;
  line(
    io.stdout,
    `${paint(`${status} ${statusText}`.trimEnd())} ${dim(`(${durationMs.toFixed(1)} ms)`)}: ${meaningOf(status)}`,
  );
  if (id !== null) line(io.stdout, `Delivery: ${id}`);
  if (text !== '') line(io.stdout, `Answer: ${text}`);
}
