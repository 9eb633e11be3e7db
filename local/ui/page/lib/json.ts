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
  return typeof value === 'number' && source !== undefined && String(value) !== source ? new ExactNumber(source) : value;
};

/** Undefined for what is no JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text, exact as (key: string, value: unknown) => unknown) as Json;
  } catch {
    return undefined;
  }
}
