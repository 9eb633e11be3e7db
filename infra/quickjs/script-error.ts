import { REASON_LENGTH_MAX } from '../../core/ports/routing-sandbox.ts';
import type { Guest, Value } from './guest.ts';

/** A longer text of a script is not even read. */
const TEXT_LENGTH_MAX = 64 * 1024;
/** SCRIPT_NAME of guest.ts, with line and column. */
const PLACE = /\bscript:(\d+):(\d+)/;

/** For people: what a script threw, with line and column. May run the script's getters. */
export function describeException(guest: Guest): string {
  const thrown = guest.exception();
  if (guest.isString(thrown)) return cut(`The script threw the text: ${read(guest, thrown) ?? ''}`);
  if (!guest.isError(thrown)) return 'The script threw something that is no Error.';
  const name = member(guest, thrown, 'name') ?? 'Error';
  const message = member(guest, thrown, 'message') ?? '';
  const place = PLACE.exec(member(guest, thrown, 'stack') ?? '');
  const where = place === null ? '' : ` (line ${place[1]}, column ${place[2]})`;
  return `${cut(message === '' ? name : `${name}: ${message}`, REASON_LENGTH_MAX - where.length)}${where}`;
}

function member(guest: Guest, error: Value, name: string): string | null {
  const value = guest.get(error, name);
  return guest.isString(value) ? read(guest, value) : null;
}

function read(guest: Guest, text: Value): string | null {
  const length = guest.lengthOf(text);
  return length > TEXT_LENGTH_MAX ? `(a text of ${length} characters)` : guest.textOf(text);
}

export function cut(text: string, lengthMax = REASON_LENGTH_MAX): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`;
}
