import { decodeText, encodeText } from '../../base/text.ts';
import { ATTRIBUTE_INDEXES, type AttributeSetting } from '../api.ts';

/** The stream whose newest event says which attribute indexes a log has, and the type of its events. */
export const SETTING_STREAM = '$attribute-indexes';
export const SETTING_TYPE = '$attribute-indexes-set';
/** Events of the stream that are looked at from its end on: another program may have appended what is no setting. */
export const SETTINGS_LOOKED_AT_MAX = 64;

/** The data of the event. */
export function encodeSetting(setting: AttributeSetting): Uint8Array {
  return encodeText(JSON.stringify(Object.fromEntries(ATTRIBUTE_INDEXES.map((name) => [name, setting[name]]))));
}

/** Null for what says it not for all indexes, or says more: such an event has no effect, and none can be written. */
export function decodeSetting(data: Uint8Array): AttributeSetting | null {
  let value: unknown;
  try {
    value = JSON.parse(decodeText(data));
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const { names, correlations, tags, ...rest } = value as Readonly<Record<string, unknown>>;
  return typeof names === 'boolean' &&
    typeof correlations === 'boolean' &&
    typeof tags === 'boolean' &&
    Object.keys(rest).length === 0
    ? { names, correlations, tags }
    : null;
}

export function isSameSetting(a: AttributeSetting, b: AttributeSetting): boolean {
  return ATTRIBUTE_INDEXES.every((name) => a[name] === b[name]);
}
