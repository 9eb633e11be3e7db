import { decodeBase64 } from '../../base/base64.ts';
import { SCRIPT_BYTES_MAX, SECRETS_MAX, SKIPPED_STATUSES } from '../api.ts';
import type {
  DeduplicationSettings,
  SignatureSettings,
  SkippedStatus,
  Violation,
  WebhookSettings,
  Settings,
} from '../api.ts';
import { checkWritableName } from '../../streams/format/names.ts';
import { listOf, shown } from '../format/settings-shape.ts';
import { checkSignatureSettings } from '../format/schemes.ts';

/** The settings of a webhook source with their types, defaults and limits. */

export const INSTANCE_TYPE = 'webhook-source';
const CONFIRMATION_TIMEOUT_MAX_MS = 3_600_000;
const TIMESTAMP_TOLERANCE_MAX_MS = 86_400_000;
const DEDUPLICATION_AGE_MAX_MS = 30 * 86_400_000;
const DEDUPLICATION_COUNT_MAX = 1_000_000;
/** UTF-8 would be more: secrets are short. */
const SECRET_LENGTH_MAX = 4_096;

const CONFIRMATION_TIMEOUT_MS = 30_000;
const TIMESTAMP_TOLERANCE_MS = 300_000;
const DEDUPLICATION_AGE_MS = 72 * 3_600_000;
const ALLOWED_HEADERS: readonly string[] = ['content-type', 'user-agent', 'x-request-id'];

export interface ParsedSettings {
  readonly settings: WebhookSettings;
  /** `signature:secret` first, then the list. */
  readonly secrets: readonly string[];
  /** When there are any, the rest means nothing. */
  readonly violations: readonly Violation[];
}

/** `settings` under the names that are shown and with their secrets in the clear. */
export function parseWebhookSettings(settings: Settings): ParsedSettings {
  const fields = new SettingFields(settings);
  checkType(fields);
  const script = parseScript(fields);
  const secrets = parseSecrets(fields);
  const parsed: WebhookSettings = {
    script,
    skippedStatus: parseSkippedStatus(fields),
    waitForWrite: fields.boolean('waitForWrite', false),
    confirmationTimeoutMs: fields.timeSpan(
      'confirmationTimeout',
      CONFIRMATION_TIMEOUT_MS,
      1,
      CONFIRMATION_TIMEOUT_MAX_MS,
    ),
    signature: parseSignature(fields, secrets),
    allowedHeaders: parseAllowedHeaders(fields),
    streams: parseStreams(fields),
    deduplication: parseDeduplication(fields),
    loggingEnabled: fields.boolean('logging:enabled', true),
  };
  return { settings: parsed, secrets: secrets.map(({ value }) => value), violations: fields.violations };
}

function checkType(fields: SettingFields): void {
  const type = fields.text('instanceTypeName');
  if (type === null) fields.violate('instanceTypeName', `Missing. Give '${INSTANCE_TYPE}'.`);
  else if (type !== INSTANCE_TYPE)
    fields.violate('instanceTypeName', `There is no type '${shown(type)}' here, only '${INSTANCE_TYPE}'.`);
}

function parseScript(fields: SettingFields): string {
  const name = 'routingScript';
  const text = fields.text(name);
  if (text === null) {
    fields.violate(name, 'Missing. Give JavaScript that defines route(request), in UTF-8 and Base64.');
    return '';
  }
  const bytes = decodeBase64(text);
  const script = bytes === null ? null : decodeUtf8(bytes);
  if (script === null) fields.violate(name, 'Not Base64 of UTF-8 text. Encode the script with Base64.');
  else if (bytes!.length > SCRIPT_BYTES_MAX)
    fields.violate(name, `The script is longer than ${SCRIPT_BYTES_MAX} bytes.`);
  else if (script.trim() === '') fields.violate(name, 'The script is empty. It must define route(request).');
  return script ?? '';
}

const SKIPPED_STATUS: SkippedStatus = 400;

function parseSkippedStatus(fields: SettingFields): SkippedStatus {
  const name = 'skippedStatus';
  const text = fields.text(name);
  if (text === null) return SKIPPED_STATUS;
  const status = SKIPPED_STATUSES.find((each) => String(each) === text);
  if (status === undefined)
    fields.violate(
      name,
      `Give ${SKIPPED_STATUSES.slice(0, -1).join(', ')} or ${SKIPPED_STATUSES.at(-1)}: the answer to calls that the script skips.`,
    );
  return status ?? SKIPPED_STATUS;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

interface Secret {
  readonly name: string;
  readonly value: string;
}

function parseSecrets(fields: SettingFields): readonly Secret[] {
  const first = fields.settings.get('signature:secret');
  const named = [
    ...(first === undefined ? [] : [{ name: 'signature:secret', value: first }]),
    ...listOf(fields.settings, 'signature:secrets'),
  ];
  for (const { name, value } of named) {
    if (value === '') fields.violate(name, 'The secret is empty.');
    else if (value.length > SECRET_LENGTH_MAX || !value.isWellFormed())
      fields.violate(name, `The secret must be a string of at most ${SECRET_LENGTH_MAX} characters.`);
  }
  if (fields.settings.get('signature:secrets'))
    fields.violate('signature:secrets', 'Give a list, or signature:secrets:0 and on.');
  if (named.length > SECRETS_MAX) fields.violate('signature:secrets', `At most ${SECRETS_MAX} secrets are allowed.`);
  return named;
}

function parseSignature(fields: SettingFields, secrets: readonly Secret[]): SignatureSettings | null {
  if (![...fields.settings.keys()].some((name) => name.startsWith('signature:'))) return null;
  const before = fields.violations.length;
  const scheme = fields.text('signature:scheme');
  if (scheme === null) fields.violate('signature:scheme', 'Missing. Name the signature scheme of the sender.');
  if (secrets.length === 0)
    fields.violate(
      'signature:secret',
      'Missing. Give the secret that is shared with the sender, or leave out all of signature.',
    );
  const signature: SignatureSettings = {
    scheme: scheme ?? '',
    timestampToleranceMs: fields.timeSpan(
      'signature:timestampTolerance',
      TIMESTAMP_TOLERANCE_MS,
      0,
      TIMESTAMP_TOLERANCE_MAX_MS,
    ),
    header: fields.headerName('signature:header'),
    // White space belongs to it: `Bearer `.
    prefix: fields.settings.get('signature:prefix') || null,
    encoding: fields.text('signature:encoding'),
    hash: fields.text('signature:hash'),
  };
  if (fields.violations.length > before) return signature;
  for (const { field, description } of checkSignatureSettings(
    signature,
    secrets.map(({ value }) => value),
  ))
    fields.violate(secretNameOf(field, secrets), description);
  return signature;
}

/** The check counts secrets from `signature:secret` on, which may be absent, and the list may have gaps. */
function secretNameOf(field: string, secrets: readonly Secret[]): string {
  const index =
    field === 'signature:secret' ? 0 : Number(/^signature:secrets:(\d+)$/.exec(field)?.[1] ?? Number.NaN) + 1;
  return secrets[index]?.name ?? field;
}

function parseAllowedHeaders(fields: SettingFields): readonly string[] {
  const name = 'allowedHeaders';
  const given = listOf(fields.settings, name);
  const whole = fields.settings.get(name);
  if (whole !== undefined && whole.trim() !== '')
    fields.violate(name, `Give a list of names, or ${name}:0 and on; an empty list allows none.`);
  if (whole === undefined && given.length === 0) return ALLOWED_HEADERS;
  return [...new Set(given.map((each) => fields.headerName(each.name) ?? ''))].filter((each) => each !== '');
}

/**
 * Null where nothing is said; a list that allows nothing would be a connector that takes calls and refuses them all.
 */
function parseStreams(fields: SettingFields): readonly string[] | null {
  const name = 'streams';
  const given = listOf(fields.settings, name);
  const whole = fields.settings.get(name);
  if (whole !== undefined)
    fields.violate(
      name,
      `Give a list of names, or ${name}:0 and on, with at least one; leave it out to allow every stream that does not begin with $.`,
    );
  if (given.length === 0) return null;
  const streams = given.map((each) => ({ ...each, value: each.value.trim() }));
  for (const each of streams) {
    const refusal = refusalOfAllowed(each.value);
    if (refusal !== null) fields.violate(each.name, refusal);
  }
  return [...new Set(streams.map(({ value }) => value))];
}

function refusalOfAllowed(value: string): string | null {
  const name = value.endsWith('*') ? value.slice(0, -1) : value;
  if (value === '') return 'Give the name of a stream.';
  if (name.startsWith('$')) return 'Only the system may write to streams that begin with $.';
  if (name.includes('*')) return 'A * is allowed only at the end, for all streams with that prefix.';
  return name === '' || checkWritableName(name) === null
    ? null
    : `'${shown(value).toWellFormed()}' is not a valid stream name.`;
}

/** What is allowed and yet worth a warning to the user who configures it. */
export function warningsOf({ signature, streams }: WebhookSettings): readonly string[] {
  if (signature !== null || streams !== null) return [];
  return [
    'Calls are not signed, and the setting streams is absent: anyone who can reach this connector can write to every stream that its script can name, that does not start with $, and whose access list allows everyone or this connector to write. Add a signature, or list the allowed streams in streams.',
  ];
}

function parseDeduplication(fields: SettingFields): DeduplicationSettings {
  return {
    enabled: fields.boolean('deduplication:enabled', true),
    header: fields.headerName('deduplication:header'),
    maxAgeMs: fields.timeSpan('deduplication:maxAge', DEDUPLICATION_AGE_MS, 1_000, DEDUPLICATION_AGE_MAX_MS),
    maxCount: fields.integer('deduplication:maxCount', DEDUPLICATION_COUNT_MAX, 1, DEDUPLICATION_COUNT_MAX),
  };
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$/;
/** `hh:mm:ss` with days and a fraction if need be. Hours may exceed a day, since people write three days as 72:00:00. */
const TIME_SPAN = /^(?:(\d{1,4})\.)?(\d{1,5}):([0-5]\d):([0-5]\d)(?:\.(\d{1,7}))?$/;

/** Reads settings with their types, and notes what is wrong with them. */
class SettingFields {
  readonly settings: Settings;
  readonly violations: Violation[] = [];

  constructor(settings: Settings) {
    this.settings = settings;
  }

  violate(field: string, description: string): void {
    this.violations.push({ field, description });
  }

  /** Without white space around it; null when absent or empty. */
  text(name: string): string | null {
    return this.settings.get(name)?.trim() || null;
  }

  boolean(name: string, otherwise: boolean): boolean {
    const text = this.text(name)?.toLowerCase() ?? null;
    if (text === null) return otherwise;
    if (text !== 'true' && text !== 'false') this.violate(name, 'Give true or false.');
    return text === 'true';
  }

  integer(name: string, otherwise: number, min: number, max: number): number {
    const text = this.text(name);
    if (text === null) return otherwise;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) this.violate(name, `Give a whole number from ${min} to ${max}.`);
    return value;
  }

  /** Milliseconds. */
  timeSpan(name: string, otherwise: number, minMs: number, maxMs: number): number {
    const text = this.text(name);
    if (text === null) return otherwise;
    const match = TIME_SPAN.exec(text);
    if (match === null) {
      this.violate(name, `'${shown(text)}' is not a time span. Write hh:mm:ss, such as 00:00:30.`);
      return otherwise;
    }
    const [, days = '0', hours, minutes, seconds, fraction = '0'] = match;
    const ms =
      ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60_000 +
      Number(seconds) * 1_000 +
      Math.floor(Number(fraction.padEnd(7, '0')) / 10_000);
    if (ms < minMs || ms > maxMs)
      this.violate(name, `Give a time span from ${minMs / 1_000} to ${maxMs / 1_000} seconds.`);
    return ms;
  }

  /** Lower-cased; null when absent or empty. */
  headerName(name: string): string | null {
    const text = this.text(name);
    if (text !== null && !HEADER_NAME.test(text)) this.violate(name, `'${shown(text)}' is not a header name.`);
    return text?.toLowerCase() ?? null;
  }
}
