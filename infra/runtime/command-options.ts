import { UsageError } from './failure.ts';

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
export function text(
  placeholder: string,
  fallback: string | null,
  help: string,
  fallbackText = fallback ?? '',
): Option<string | null> {
  return {
    placeholder,
    fallback,
    fallbackText,
    help,
    parse: (given) => (given === '' ? { allowed: 'a non-empty string' } : { value: given }),
  };
}

/** Texts, one each time the option is given. */
export function texts(placeholder: string, help: string): Option<readonly string[]> {
  const parse = (given: string) => (given === '' ? { allowed: 'a non-empty string' } : { value: [given] });
  return { placeholder, fallback: [], fallbackText: '', help, parse, isList: true };
}

/** A whole number within limits. */
export function integer(placeholder: string, min: number, max: number, fallback: number, help: string): Option<number> {
  const parse = (given: string) => {
    const value = (min < 0 ? /^-?\d{1,15}$/ : /^\d{1,15}$/).test(given) ? Number(given) : Number.NaN;
    return value >= min && value <= max ? { value } : { allowed: `a whole number from ${min} to ${max}` };
  };
  return { placeholder, fallback, fallbackText: String(fallback), help, parse };
}

/** Bytes in the largest unit that divides them. */
export function sizeText(bytes: number): string {
  for (const [unit, factor] of [
    ['GiB', 1_073_741_824],
    ['MiB', 1_048_576],
    ['KiB', 1024],
  ] as const) {
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor} ${unit}`;
  }
  return `${bytes} bytes`;
}

/** An `http:` or `https:` address. Null unless given. */
export function address(placeholder: string, fallbackText: string, help: string): Option<string | null> {
  const parse = (given: string) =>
    isAddress(given) ? { value: given } : { allowed: 'an address such as http://127.0.0.1:2113' };
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
