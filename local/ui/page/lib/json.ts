/** JSON that keeps what was written: numbers beyond the precision of JavaScript stay the text that they were. */

export class ExactNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

export type Json = null | boolean | number | string | ExactNumber | readonly Json[] | { readonly [name: string]: Json };

type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

const exact: Reviver = (_key, value, context) => {
  const source = context?.source;
  return typeof value === 'number' && source !== undefined && String(value) !== source
    ? new ExactNumber(source)
    : value;
};

/** Undefined for what is no JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text, exact as (key: string, value: unknown) => unknown) as Json;
  } catch {
    return undefined;
  }
}

/** The text of a value, its numbers as they were. `indent` in spaces; without it on one line. */
export function formatJson(value: Json, indent = 0, depth = 0): string {
  if (value instanceof ExactNumber) return value.source;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((item: Json) => formatJson(item, indent, depth + 1))
    : Object.entries(value).map(
        ([name, member]) => `${JSON.stringify(name)}:${indent > 0 ? ' ' : ''}${formatJson(member, indent, depth + 1)}`,
      );
  const [open, close] = isList ? '[]' : '{}';
  if (indent === 0 || parts.length === 0) return `${open}${parts.join(',')}${close}`;
  const line = `\n${' '.repeat(indent * (depth + 1))}`;
  return `${open}${line}${parts.join(`,${line}`)}\n${' '.repeat(indent * depth)}${close}`;
}
