import { isSkuaError } from '../../core/base/errors.ts';
import type { SignatureSettings, Violation } from '../../core/webhook/api.ts';
import {
  checkSignatureSettings,
  GENERIC,
  isGeneric,
  SCHEME_NAMES,
  schemeOf,
} from '../../core/webhook/format/schemes.ts';
import { signCall } from '../../core/webhook/signatures/signatures.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { CommandError, didYouMean, UsageError } from '../../infra/runtime/failure.ts';
import { readInput, utf8Text } from '../cli/input.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { ExitCode } from '../../infra/runtime/io.ts';
import { explainTls } from '../cli/tls-failure.ts';
import type { Trust } from '../cli/trust.ts';
import { VERSION } from '../../infra/runtime/version.ts';

/** Characters of an answer's body that are shown. */
const SHOWN_LENGTH_MAX = 500;
/** Headers that the connection itself is run by. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

interface Call {
  readonly url: string;
  /** By lower-cased name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
  readonly trust: Trust;
}

export interface Answer {
  readonly status: number;
  readonly statusText: string;
  /** Beginning of the answer's text; a node sends none. */
  readonly text: string;
}

/**
 * Posts a call once, as a sender would. Errors: `receiver_unreachable`, `receiver_silent`, what is wrong with TLS or
 * certificates; a UsageError for a header that can't be sent.
 */
export async function postCall({ url, headers, body, timeoutMs, trust }: Call): Promise<Answer> {
  const sent = sendable(headers);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const call = { method: 'POST', headers: sent, body, signal };
    const response = await (url.startsWith('https:')
      ? trust.fetch(url, call)
      : fetch(url, { ...call, redirect: 'manual' }));
    return { status: response.status, statusText: response.statusText, text: await beginningOf(response) };
  } catch (error) {
    if (signal.aborted)
      throw new CommandError(
        'receiver_silent',
        `${url} has not answered within ${timeoutMs / 1000} s; the event may still be written. Raise --timeout to wait longer.`,
        EXIT.unreachable,
      );
    if (error instanceof CommandError) throw error;
    const failure = await explainTls(error, url, { file: trust.file, option: 'URL' });
    if (failure !== null) throw new CommandError(failure.code, failure.message, EXIT.unreachable);
    const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
    throw new CommandError(
      'receiver_unreachable',
      `No answer from ${url} (${cause?.code ?? cause?.message ?? (error as Error).message}).`,
      EXIT.unreachable,
    );
  }
}

function sendable(headers: ReadonlyMap<string, string>): Headers {
  const sent = new Headers({ 'user-agent': `skua/${VERSION}` });
  for (const [name, value] of headers) {
    if (CONNECTION_HEADERS.has(name)) throw new UsageError(`--header can't set ${name}: it is set by the connection.`);
    try {
      sent.set(name, value);
    } catch {
      throw new UsageError(`--header: '${name}' with this value is not a valid HTTP header.`);
    }
  }
  return sent;
}

async function beginningOf(response: Response): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of response.body) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > SHOWN_LENGTH_MAX) break;
  }
  // Nothing that a terminal would obey.
  return text
    .slice(0, SHOWN_LENGTH_MAX)
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim();
}

/** What an answer to a call means, and with which code a command ends. */

const MEANINGS: ReadonlyMap<number, string> = new Map([
  [
    200,
    'Nothing is written: the script skipped the call, and the connector answers such calls with 200 (its setting skippedStatus); or the body asked whether somebody is there, as Slack does, and the answer is its challenge.',
  ],
  [201, 'The event is written durably.'],
  [
    202,
    'Accepted: the event is about to be written, unless the script skipped the call and the connector answers that with 202 (its setting skippedStatus).',
  ],
  [
    204,
    'The script skipped the call, and the connector answers such calls with 204 (its setting skippedStatus): nothing is written.',
  ],
  [
    400,
    "Nothing is written: the script skipped the call (the connector's setting skippedStatus can answer that with 200, 202 or 204), or the body is empty or not JSON in UTF-8. `skua webhook test` shows what a script does with a file.",
  ],
  [
    401,
    'Refused: the signature is missing, malformed or wrong, or the clocks are too far apart. Compare scheme and secret with the settings of the connector.',
  ],
  [403, 'Refused by the receiver.'],
  [404, 'No connector with this id is running there. Create and start it first, or check the address.'],
  [405, 'The address takes no webhook calls. It must end in /webhook/ and the id of a connector.'],
  [408, 'The receiver waited too long for the body, or it came too slowly. Send it again.'],
  [413, 'The body is larger than the receiver accepts.'],
  [415, 'The receiver accepts JSON only. Leave out --content-type, or give application/json.'],
  [
    422,
    'Nothing is written: the script named a stream that is deleted for ever. Have it return another name, or null.',
  ],
  [429, 'The receiver accepts no more calls for now. Try again later.'],
  [
    500,
    'Nothing is written: the script failed, took too long, or named an invalid stream or type, or a stream that the connector may not write to. `skua webhook test` shows why.',
  ],
  [
    503,
    "The connector can't accept calls at the moment, or was stopped. Send it again, with the same --id so that it is written once.",
  ],
  [
    504,
    'Not confirmed in time: the event may still be written. Send it again, with the same --id so that it is written once.',
  ],
]);

export function meaningOf(status: number): string {
  const known = MEANINGS.get(status);
  if (known !== undefined) return known;
  if (isTaken(status)) return 'The receiver accepted it.';
  return status >= 300 && status < 400
    ? 'The receiver answered with a redirect, which is not followed. Give its final address.'
    : 'The receiver did not accept it.';
}

export function exitCodeOf(status: number): ExitCode {
  if (isTaken(status)) return EXIT.ok;
  if (status === 401 || status === 403) return EXIT.refused;
  return status === 503 ? EXIT.unreachable : EXIT.failed;
}

function isTaken(status: number): boolean {
  return status >= 200 && status < 300;
}

/** What the words of `skua webhook send` say of a signature; null where they say nothing. */
interface SignatureWords {
  readonly scheme: string | null;
  readonly secretFile: string | null;
  readonly header: string | null;
  readonly prefix: string | null;
  readonly encoding: string | null;
  readonly hash: string | null;
  readonly id: string | null;
  readonly timestampS: number | null;
}

/** What stands in for an id or a time that is not named. */
interface SignatureDefaults {
  readonly uuid: () => string;
  readonly nowMs: number;
}

interface Signed {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null where the scheme names no deliveries in a header. */
  readonly id: string | null;
}

/** Longest file of a secret: the longest secret in UTF-8, and the end of its line. */
const SECRET_BYTES_MAX = 4 * 4_096 + 2;

/** The option that stands for a setting. */
const OPTIONS: Readonly<Record<string, string>> = {
  'signature:scheme': '--scheme',
  'signature:secret': '--secret-file',
  'signature:header': '--signature-header',
  'signature:prefix': '--signature-prefix',
  'signature:encoding': '--signature-encoding',
  'signature:hash': '--signature-hash',
};

/** The headers that sign a body; none where no scheme is named. Throws UsageErrors that name the option at fault. */
export async function signatureHeaders(
  words: SignatureWords,
  body: Uint8Array,
  defaults: SignatureDefaults,
): Promise<Signed> {
  if (words.scheme === null) return refuseStray(words);
  if (words.secretFile === null) throw new UsageError('--scheme needs --secret-file FILE.');
  const settings = settingsOf(words.scheme, words);
  const secret = await readSecret(words.secretFile);
  refuse(checkSignatureSettings(settings, [secret]));
  const scheme = schemeOf(settings)!;
  if (words.id !== null && scheme.deliveryHeader === null)
    throw new UsageError(
      `--id: ${scheme.name} has no delivery id header. Use --header name=value with the header that the connector's deduplication:header names.`,
    );
  if (words.timestampS !== null && scheme.timestamp === null)
    throw new UsageError(`--timestamp: ${scheme.name} does not sign a time.`);
  const id = scheme.deliveryHeader === null ? null : (words.id ?? defaults.uuid());
  try {
    return {
      id,
      headers: signCall(nodeKeys, settings, secret, {
        body,
        id,
        timestampS: words.timestampS ?? Math.floor(defaults.nowMs / 1000),
      }),
    };
  } catch (error) {
    throw isSkuaError(error, 'invalid_connector') ? new UsageError(`--id: ${error.message}`) : error;
  }
}

function refuseStray(words: SignatureWords): Signed {
  const { secretFile, id, timestampS, header, prefix, encoding, hash } = words;
  if (secretFile !== null) throw new UsageError(`--secret-file needs --scheme: one of ${SCHEME_NAMES.join(', ')}.`);
  if ([id, timestampS, header, prefix, encoding, hash].some((word) => word !== null))
    throw new UsageError(
      'Without --scheme nothing is signed: leave out --id, --timestamp and the --signature options.',
    );
  return { headers: [], id: null };
}

function settingsOf(scheme: string, { header, prefix, encoding, hash }: SignatureWords): SignatureSettings {
  if (!isGeneric(scheme) && !SCHEME_NAMES.some((name) => name.toLowerCase() === scheme.toLowerCase())) {
    throw new UsageError(
      `--scheme must be one of ${SCHEME_NAMES.join(', ')}, not '${scheme}'.${didYouMean(scheme, SCHEME_NAMES)}`,
    );
  }
  if (isGeneric(scheme) && header === null) throw new UsageError(`--scheme ${GENERIC} needs --signature-header NAME.`);
  return { scheme, timestampToleranceMs: 0, header, prefix, encoding, hash };
}

function refuse([violation]: readonly Violation[]): void {
  if (violation !== undefined)
    throw new UsageError(`${OPTIONS[violation.field] ?? violation.field}: ${violation.description}`);
}

/** The text of the file without the end of its line, which editors add. */
async function readSecret(file: string): Promise<string> {
  const text = utf8Text(await readInput(file, SECRET_BYTES_MAX));
  if (text === null) throw new UsageError('--secret-file: the file is not UTF-8 text.');
  return text.replace(/\r?\n$/, '');
}
