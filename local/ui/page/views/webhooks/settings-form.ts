import type { Complaints, Values } from '../../parts/form.tsx';
import type { SettingsDocument } from '../../../../../handlers/documents/connectors.ts';
import { GENERIC, schemeOf } from './scheme-fields.ts';

/** The settings of a connector between the form and the flat map of texts that the node keeps. */

/** What the node shows in place of a secret, and takes for the one that it has. */
export const MASK = '********';
export const SECRET = 'signature:secret';
export const SECOND_SECRET = 'signature:secrets:0';
export const DEFAULT_HEADERS: readonly string[] = ['Content-Type', 'User-Agent', 'X-Request-Id'];
export const SKIPPED = ['400', '200', '202', '204'] as const;

const utf8 = new TextDecoder();

/** As the node takes scripts: Base64 of UTF-8. */
export function encodedScript(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export function decodedScript(base64: string | undefined): string {
  try {
    return utf8.decode(Uint8Array.from(atob(base64 ?? ''), (character) => character.charCodeAt(0)));
  } catch {
    return '';
  }
}

/**
 * The elements of a list, which stand as `name:0` and on; null where nothing is said. The empty text is the empty list.
 */
export function listOf(settings: SettingsDocument, name: string): readonly string[] | null {
  if (settings[name] === '') return [];
  const elements = Object.keys(settings).filter((each) => each.startsWith(`${name}:`));
  return elements.length === 0 ? null : elements.map((each) => settings[each]!);
}

export function linesOf(text: string | undefined): readonly string[] {
  return (text ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Names that the form has fields for; others stay as they are. */
const KNOWN =
  /^(?:instanceTypeName|routingScript|skippedStatus|waitForWrite|confirmationTimeout|signature:(?:scheme|secret|secrets:0|timestampTolerance|header|prefix|encoding|hash)|allowedHeaders(?::\d+)?|streams(?::\d+)?|deduplication:(?:enabled|header|maxAge|maxCount)|logging:enabled)$/i;

/** What the form says as settings; what it leaves at its default is left out. */
export function settingsOf(values: Values, stored: SettingsDocument): SettingsDocument {
  const isSigned = values['scheme'] !== '';
  const others = Object.entries(stored).filter(
    ([name]) => !KNOWN.test(name) && (isSigned || !name.startsWith('signature:')),
  );
  const settings: Record<string, string> = {
    ...Object.fromEntries(others),
    instanceTypeName: 'webhook-source',
    routingScript: encodedScript(values['script'] ?? ''),
  };
  const put = (name: string, value: string | undefined, otherwise = '') => {
    const text = value?.trim() ?? '';
    if (text !== '' && text !== otherwise) settings[name] = text;
  };
  const putList = (name: string, list: readonly string[]) =>
    list.forEach((value, i) => (settings[`${name}:${i}`] = value));
  put('skippedStatus', values['skippedStatus'], '400');
  if (values['waitForWrite'] === 'true') settings['waitForWrite'] = 'true';
  put('confirmationTimeout', values['confirmationTimeout'], '00:00:30');
  if (isSigned) {
    const scheme = schemeOf(values['scheme']!);
    settings['signature:scheme'] = values['scheme']!;
    for (const name of [SECRET, SECOND_SECRET]) if (values[name]) settings[name] = values[name];
    if (scheme?.hasTime === true) put('signature:timestampTolerance', values['timestampTolerance'], '00:05:00');
    if (scheme?.name === GENERIC) {
      put('signature:header', values['signatureHeader']);
      put('signature:prefix', values['signaturePrefix']);
      put('signature:encoding', values['signatureEncoding'], 'hex');
      put('signature:hash', values['signatureHash'], 'sha256');
    }
  }
  const headers = linesOf(values['allowedHeaders']);
  if (headers.length === 0) settings['allowedHeaders'] = '';
  else if (headers.join('\n').toLowerCase() !== DEFAULT_HEADERS.join('\n').toLowerCase())
    putList('allowedHeaders', headers);
  putList('streams', linesOf(values['streams']));
  if (values['deduplication'] !== 'true') settings['deduplication:enabled'] = 'false';
  else {
    put('deduplication:header', values['deduplicationHeader']);
    put('deduplication:maxAge', values['deduplicationMaxAge'], '72:00:00');
    put('deduplication:maxCount', values['deduplicationMaxCount'], '1000000');
  }
  if (values['logging'] !== 'true') settings['logging:enabled'] = 'false';
  return settings;
}

/** The field of the form that a setting of the node stands in. */
const FIELDS: Readonly<Record<string, string>> = {
  connectorid: 'id',
  name: 'name',
  routingscript: 'script',
  'signature:scheme': 'scheme',
  'signature:secret': SECRET,
  'signature:secrets:0': SECOND_SECRET,
  'signature:timestamptolerance': 'timestampTolerance',
  'signature:header': 'signatureHeader',
  'signature:prefix': 'signaturePrefix',
  'signature:encoding': 'signatureEncoding',
  'signature:hash': 'signatureHash',
  skippedstatus: 'skippedStatus',
  waitforwrite: 'waitForWrite',
  confirmationtimeout: 'confirmationTimeout',
  'deduplication:header': 'deduplicationHeader',
  'deduplication:maxage': 'deduplicationMaxAge',
  'deduplication:maxcount': 'deduplicationMaxCount',
};

export function fieldOf(setting: string): string | null {
  const name = setting.toLowerCase();
  return (
    FIELDS[name] ??
    (/^(?:allowedheaders|streams)(?::\d+)?$/.test(name) ? (name.startsWith('s') ? 'streams' : 'allowedHeaders') : null)
  );
}

const TIME_SPAN = /^(?:\d{1,4}\.)?\d{1,5}:[0-5]\d:[0-5]\d$/;
const ID = /^[a-zA-Z0-9_-]{1,50}$/;

export function complaintsOf(values: Values, isNew: boolean): Complaints {
  const wrong: Record<string, string> = {};
  if (isNew && !ID.test(values['id'] ?? '')) wrong['id'] = 'Use 1 to 50 letters, digits, hyphens and underscores.';
  const name = values['name']?.trim() ?? '';
  if (isNew && name !== '' && (name.length < 3 || name.length > 50)) wrong['name'] = 'Use 3 to 50 characters.';
  if ((values['script'] ?? '').trim() === '')
    wrong['script'] = 'Enter a script: it decides which stream a call goes to.';
  if (values['scheme'] !== '' && values[SECRET] === '') wrong[SECRET] = 'Enter the secret that the sender signs with.';
  if (values['scheme'] === GENERIC && (values['signatureHeader'] ?? '').trim() === '')
    wrong['signatureHeader'] = 'Enter the header that holds the signature.';
  for (const field of ['confirmationTimeout', 'timestampTolerance', 'deduplicationMaxAge']) {
    const text = values[field]?.trim() ?? '';
    if (text !== '' && !TIME_SPAN.test(text)) wrong[field] = 'Write it as hh:mm:ss, such as 00:00:30.';
  }
  return wrong;
}
