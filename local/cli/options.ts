import { UsageError } from './usage-error.ts';

/** One option of a command. Parsing, `--help` and errors are all made from this. */
export interface Option<T> {
  /** What the value stands for in `--help`; null for a switch, which takes none. */
  readonly placeholder: string | null;
  readonly fallback: T;
  /** How `--help` writes the default; empty for none. */
  readonly fallbackText: string;
  readonly help: string;
  /** The value, or a text that says what is allowed. */
  readonly parse: (text: string) => { readonly value: T } | { readonly allowed: string };
  /** The value is a list, and grows each time the option is given. */
  readonly isList?: boolean;
}

export type OptionTable = Readonly<Record<string, Option<unknown>>>;
export type OptionValues<O extends OptionTable> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

/** A switch: `--name`, also `--name=true` and `--name=false`. */
export function flag(help: string): Option<boolean> {
  return { placeholder: null, fallback: false, fallbackText: '', help, parse: parseBoolean };
}

function parseBoolean(text: string): { value: boolean } | { allowed: string } {
  if (text === 'true') return { value: true };
  return text === 'false' ? { value: false } : { allowed: 'true or false' };
}

/** Any text that is not empty. Without a default the value is null unless given. */
export function text(placeholder: string, fallback: string, help: string): Option<string>;
export function text(placeholder: string, fallback: null, help: string, fallbackText?: string): Option<string | null>;
export function text(placeholder: string, fallback: string | null, help: string, fallbackText = fallback ?? ''): Option<string | null> {
  return { placeholder, fallback, fallbackText, help, parse: (given) => (given === '' ? { allowed: 'a text that is not empty' } : { value: given }) };
}

/** Texts, one each time the option is given. */
export function texts(placeholder: string, help: string): Option<readonly string[]> {
  const parse = (given: string) => (given === '' ? { allowed: 'a text that is not empty' } : { value: [given] });
  return { placeholder, fallback: [], fallbackText: '', help, parse, isList: true };
}

/** A power of two within limits, both of which are powers of two. */
export function powerOfTwo(placeholder: string, min: number, max: number, fallback: number, help: string): Option<number> {
  const parse = (given: string) => {
    const value = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
    return value >= min && value <= max && Number.isInteger(Math.log2(value)) ? { value } : { allowed: `a power of two from ${min} to ${max}` };
  };
  return { placeholder, fallback, fallbackText: String(fallback), help, parse };
}

/** A whole number within limits. */
export function integer(placeholder: string, min: number, max: number, fallback: number, help: string): Option<number> {
  const parse = (given: string) => {
    const value = (min < 0 ? /^-?\d{1,15}$/ : /^\d{1,15}$/).test(given) ? Number(given) : Number.NaN;
    return value >= min && value <= max ? { value } : { allowed: `a whole number from ${min} to ${max}` };
  };
  return { placeholder, fallback, fallbackText: String(fallback), help, parse };
}

/** One of a few words. */
export function oneOf<W extends string>(placeholder: string, words: readonly W[], fallback: W, help: string): Option<W> {
  const parse = (given: string) => {
    const value = words.find((word) => word === given.toLowerCase());
    return value === undefined ? { allowed: `one of ${words.join(', ')}` } : { value };
  };
  return { placeholder, fallback, fallbackText: fallback, help: `${help} (${words.join(', ')})`, parse };
}

export interface SizeLimits {
  readonly min: number;
  readonly max: number;
  readonly multipleOf: number;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, b: 1, k: 1024, kb: 1024, kib: 1024, m: 1_048_576, mb: 1_048_576, mib: 1_048_576, g: 1_073_741_824, gb: 1_073_741_824, gib: 1_073_741_824 };

/** A number of bytes, with an optional unit (KiB, MiB, GiB). Null unless given. */
export function size(placeholder: string, limits: SizeLimits, fallbackText: string, help: string): Option<number | null> {
  const parse = (given: string) => {
    const parts = /^(\d{1,15}) ?([a-z]*)$/i.exec(given);
    const unit = parts === null ? undefined : UNITS[parts[2]!.toLowerCase()];
    const value = parts === null || unit === undefined ? Number.NaN : Number(parts[1]) * unit;
    if (value >= limits.min && value <= limits.max && value % limits.multipleOf === 0) return { value };
    return { allowed: `a number of bytes from ${sizeText(limits.min)} to ${sizeText(limits.max)} in steps of ${sizeText(limits.multipleOf)}, such as 67108864 or 64MiB` };
  };
  return { placeholder, fallback: null, fallbackText, help, parse };
}

/** Bytes in the largest unit that divides them. */
export function sizeText(bytes: number): string {
  for (const [unit, factor] of [['GiB', 1_073_741_824], ['MiB', 1_048_576], ['KiB', 1024]] as const) {
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor} ${unit}`;
  }
  return `${bytes} bytes`;
}

/** An `http:` or `https:` address. Null unless given. */
export function address(placeholder: string, fallbackText: string, help: string): Option<string | null> {
  const parse = (given: string) => (isAddress(given) ? { value: given } : { allowed: 'an address such as http://127.0.0.1:2113' });
  return { placeholder, fallback: null, fallbackText, help, parse };
}

export function isAddress(given: string): boolean {
  return /^https?:\/\//.test(given) && URL.canParse(given);
}

/** The value of an option, or a UsageError that says what is allowed. */
export function parseValue<T>(name: string, option: Option<T>, given: string): T {
  const parsed = option.parse(given);
  if ('value' in parsed) return parsed.value;
  throw new UsageError(`--${name} must be ${parsed.allowed}, not '${given}'.`);
}
