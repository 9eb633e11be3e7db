import type { JSValueHandle } from 'quickjs-wasi';
import { REASON_LENGTH_MAX } from '../../core/ports/routing-sandbox.ts';

/** A longer text of a script is not shown. */
const TEXT_LENGTH_MAX = 64 * 1024;
/** The name of a script in the places of its errors. */
export const SCRIPT_NAME = 'script';
/** That name, with line and column. */
const PLACE = /\bscript:(\d+):(\d+)/;

/** For people: what a script threw, with line and column. May run the script's getters. */
export function describeException(thrown: JSValueHandle): string {
  if (thrown.isString) return cut(`The script threw the text: ${read(thrown)}`);
  if (!thrown.isError) return 'The script threw something that is not an Error.';
  const name = member(thrown, 'name') ?? 'Error';
  const message = member(thrown, 'message') ?? '';
  const location = PLACE.exec(member(thrown, 'stack') ?? '');
  const where = location === null ? '' : ` (line ${location[1]}, column ${location[2]})`;
  return `${cut(message === '' ? name : `${name}: ${message}`, REASON_LENGTH_MAX - where.length)}${where}`;
}

function member(error: JSValueHandle, name: string): string | null {
  const value = error.getProp(name);
  return value.isString ? read(value) : null;
}

function read(text: JSValueHandle): string {
  const { length } = text;
  return length > TEXT_LENGTH_MAX ? `(a text of ${length} characters)` : text.toString();
}

export function cut(text: string, lengthMax = REASON_LENGTH_MAX): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`;
}

const MODULE = /^[ \t]*(?:export|import)\b/m;
const COMMON_JS = /\b(?:module\.)?exports\b/;
/** Types of parameters, of what is returned, and declarations that are types alone. */
const TYPES =
  /\(\s*[\w$]+\??\s*:\s*[\w$]|[\w$]\s*\}\s*:\s*[\w$]|\)\s*:[^(){};=?]{1,100}(?:\{|=>)|^[ \t]*(?:interface|type|enum|declare)\s+[\w$]|\bas\s+(?:const|any|unknown|string|number|[A-Z])/m;
const FORM = 'write function route(request) { … } at its top level';

/**
 * What to write instead of what no script can be, which is why its top level failed so; null where that can't be
 * guessed.
 */
export function adviceFor(reason: string, script: string): string | null {
  if (reason.startsWith('ReferenceError'))
    return COMMON_JS.test(script) ? `A routing script is no module: ${FORM}, and export nothing.` : null;
  if (!reason.startsWith('SyntaxError')) return null;
  if (MODULE.test(script)) return `A routing script is no module: ${FORM}, without export or import.`;
  return TYPES.test(script) ? `A routing script is JavaScript: if this is TypeScript, ${FORM}, without types.` : null;
}
