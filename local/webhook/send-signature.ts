import { isSkuaError } from '../../core/errors.ts';
import type { SignatureSettings, Violation } from '../../core/webhook/active.ts';
import { checkSignatureSettings, GENERIC, isGeneric, SCHEME_NAMES, schemeOf } from '../../core/webhook/signatures/schemes.ts';
import { signCall } from '../../core/webhook/signatures/signatures.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { didYouMean, UsageError } from '../cli/usage-error.ts';
import { readInput, utf8Text } from './input.ts';

/** What the words of `skua webhook send` say of a signature; null where they say nothing. */
export interface SignatureWords {
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
export interface SignatureDefaults {
  readonly uuid: () => string;
  readonly nowMs: number;
}

export interface Signed {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null where the scheme names no deliveries in a header. */
  readonly id: string | null;
}

/** Longest file of a secret: the longest secret in UTF-8, and the end of its line. */
const SECRET_BYTES_MAX = 4 * 4_096 + 2;

/** The option that stands for a setting. */
const OPTIONS: Readonly<Record<string, string>> = {
  'signature:scheme': '--scheme', 'signature:secret': '--secret-file', 'signature:header': '--signature-header', 'signature:prefix': '--signature-prefix',
  'signature:encoding': '--signature-encoding', 'signature:hash': '--signature-hash',
};

/** The headers that sign a body; none where no scheme is named. Throws UsageErrors that name the option at fault. */
export async function signatureHeaders(words: SignatureWords, body: Uint8Array, defaults: SignatureDefaults): Promise<Signed> {
  if (words.scheme === null) return refuseStray(words);
  if (words.secretFile === null) throw new UsageError('--scheme needs --secret-file FILE.');
  const settings = settingsOf(words.scheme, words);
  const secret = await readSecret(words.secretFile);
  refuse(checkSignatureSettings(settings, [secret]));
  const scheme = schemeOf(settings)!;
  if (words.id !== null && scheme.deliveryHeader === null) throw new UsageError(`--id: ${scheme.name} names no delivery in a header. Use --header name=value with the header that the connector's deduplication:header names.`);
  if (words.timestampS !== null && scheme.timestamp === null) throw new UsageError(`--timestamp: ${scheme.name} signs no time.`);
  const id = scheme.deliveryHeader === null ? null : words.id ?? defaults.uuid();
  try {
    return { id, headers: signCall(nodeKeys, settings, secret, { body, id, timestampS: words.timestampS ?? Math.floor(defaults.nowMs / 1000) }) };
  } catch (error) {
    throw isSkuaError(error, 'invalid_connector') ? new UsageError(`--id: ${error.message}`) : error;
  }
}

function refuseStray(words: SignatureWords): Signed {
  const { secretFile, id, timestampS, header, prefix, encoding, hash } = words;
  if (secretFile !== null) throw new UsageError(`--secret-file needs --scheme: one of ${SCHEME_NAMES.join(', ')}.`);
  if ([id, timestampS, header, prefix, encoding, hash].some((word) => word !== null)) throw new UsageError('Without --scheme nothing is signed: leave out --id, --timestamp and what begins with --signature.');
  return { headers: [], id: null };
}

function settingsOf(scheme: string, { header, prefix, encoding, hash }: SignatureWords): SignatureSettings {
  if (!isGeneric(scheme) && !SCHEME_NAMES.some((name) => name.toLowerCase() === scheme.toLowerCase())) {
    throw new UsageError(`--scheme must be one of ${SCHEME_NAMES.join(', ')}, not '${scheme}'.${didYouMean(scheme, SCHEME_NAMES)}`);
  }
  if (isGeneric(scheme) && header === null) throw new UsageError(`--scheme ${GENERIC} needs --signature-header NAME.`);
  return { scheme, timestampToleranceMs: 0, header, prefix, encoding, hash };
}

function refuse([violation]: readonly Violation[]): void {
  if (violation !== undefined) throw new UsageError(`${OPTIONS[violation.field] ?? violation.field}: ${violation.description}`);
}

/** The text of the file without the end of its line, which editors add. */
async function readSecret(file: string): Promise<string> {
  const text = utf8Text(await readInput(file, SECRET_BYTES_MAX));
  if (text === null) throw new UsageError('--secret-file: the file is no text in UTF-8.');
  return text.replace(/\r?\n$/, '');
}
