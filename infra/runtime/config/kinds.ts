import { isIP } from 'node:net';
import { isBlankPassword } from '../../../core/security/format/user.ts';
import { sizeText } from '../command-options.ts';

/** What kind of value an option takes: how it is read from text, shown, and described. */
export interface Kind<T> {
  /** Type in `/info/options`. */
  readonly schema: 'boolean' | 'integer' | 'string';
  /** For the documentation, such as `integer from 1 to 5`. */
  readonly description: string;
  /** What the value stands for in `--help`; null for a switch, which may stand alone. */
  readonly placeholder: string | null;
  /** All values there are, where they can be listed. */
  readonly words: readonly string[] | null;
  /** YAML may give a sequence. */
  readonly isList: boolean;
  /** The value, or a text that says what is allowed. */
  parse(text: string): { readonly value: T } | { readonly allowed: string };
  show(value: T): string;
  /** A sequence of YAML as the text that `parse` takes; null where the items are joined by commas as they are. */
  readonly join: ((items: readonly string[]) => string) | null;
}

const common = { schema: 'string', words: null, isList: false, show: String, join: null } as const;

/** `true` or `false` in any case, nothing else. */
export const boolean: Kind<boolean> = {
  ...common,
  schema: 'boolean',
  description: 'boolean',
  placeholder: null,
  parse: (text) => {
    const word = text.toLowerCase();
    return word === 'true' || word === 'false' ? { value: word === 'true' } : { allowed: 'true or false' };
  },
};

const INT32_MIN = -2_147_483_648;
const INT32_MAX = 2_147_483_647;

/** A whole number within limits, decimal or hexadecimal (`0x10`); without limits one of 32 bits. */
export function integer(placeholder: string, min = INT32_MIN, max = INT32_MAX): Kind<number> {
  const allowed = min === INT32_MIN && max === INT32_MAX ? 'a whole number' : `a whole number from ${min} to ${max}`;
  const parse = (text: string) => {
    const value = /^(-?\d{1,15}|0x[0-9a-f]{1,12})$/i.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : { allowed };
  };
  return { ...common, schema: 'integer', description: allowed.slice(2), placeholder, parse };
}

/** A power of two within limits, both of which are powers of two. */
export function powerOfTwo(placeholder: string, min: number, max: number): Kind<number> {
  const allowed = `a power of two from ${min} to ${max}`;
  const parse = (text: string) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max && Number.isInteger(Math.log2(value)) ? { value } : { allowed };
  };
  return { ...common, schema: 'integer', description: allowed.slice(2), placeholder, parse };
}

interface SizeLimits {
  readonly min: number;
  readonly max: number;
  readonly multipleOf?: number;
  /** A value outside of the limits that means something else, such as 0 for "off". */
  readonly or?: number;
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1024,
  kb: 1024,
  kib: 1024,
  m: 1_048_576,
  mb: 1_048_576,
  mib: 1_048_576,
  g: 1_073_741_824,
  gb: 1_073_741_824,
  gib: 1_073_741_824,
};

/** A number of bytes, with an optional unit: `67108864`, `64MiB`, `64 MiB`. */
export function size({ min, max, multipleOf = 1, or }: SizeLimits): Kind<number> {
  const steps = multipleOf === 1 ? '' : ` in steps of ${sizeText(multipleOf)}`;
  const bound = (bytes: number) => (/^\d{1,4} .iB$/.test(sizeText(bytes)) ? sizeText(bytes) : String(bytes));
  const limits = `number of bytes from ${bound(min)} to ${bound(max)}${steps}${or === undefined ? '' : `, or ${or}`}`;
  const parse = (text: string) => {
    if (or !== undefined && text === String(or)) return { value: or };
    const parts = /^(\d{1,15}) ?([a-z]*)$/i.exec(text);
    const unit = parts === null ? undefined : UNITS[parts[2]!.toLowerCase()];
    const value = parts === null || unit === undefined ? Number.NaN : Number(parts[1]) * unit;
    if (value >= min && value <= max && value % multipleOf === 0) return { value };
    return { allowed: `a ${limits}, such as 67108864 or 64MiB` };
  };
  return { ...common, schema: 'integer', description: limits, placeholder: 'BYTES', parse };
}

/** Any text; an empty one only where that says something (a password). */
export function text(placeholder: string, { mayBeEmpty = false } = {}): Kind<string> {
  const parse = (given: string) => (given === '' && !mayBeEmpty ? { allowed: 'a non-empty string' } : { value: given });
  return { ...common, description: 'text', placeholder, parse };
}

/** A password that users log in with: the empty one would let everybody in. */
export const loginPassword: Kind<string> = {
  ...common,
  description: 'non-empty string',
  placeholder: 'PASSWORD',
  parse: (given) =>
    isBlankPassword(given)
      ? {
          allowed:
            'a password, and it is empty (a variable that a compose file passes through unset is empty, too). Set one, or leave out the variable',
        }
      : { value: given },
};

/** A path of the file system, relative ones from where the node was started. */
export function path(placeholder: 'DIR' | 'FILE'): Kind<string> {
  const parse = (given: string) => (given === '' || given.includes('\0') ? { allowed: 'a path' } : { value: given });
  return {
    ...common,
    description: placeholder === 'DIR' ? 'path of a directory' : 'path of a file',
    placeholder,
    parse,
  };
}

/** An IP address; a host name is none. */
export const ip: Kind<string> = {
  ...common,
  description: 'IP address',
  placeholder: 'ADDRESS',
  parse: (given) =>
    isIP(given) === 0 ? { allowed: 'an IP address such as 127.0.0.1 or ::1 (0.0.0.0 for all)' } : { value: given },
};

/** A time zone by its name in the IANA database. */
export const timeZone: Kind<string> = {
  ...common,
  description: 'name of a time zone',
  placeholder: 'ZONE',
  parse: (given) => {
    try {
      Intl.DateTimeFormat('en', { timeZone: given });
      return { value: given };
    } catch {
      return { allowed: 'the name of a time zone, such as UTC or Europe/Oslo' };
    }
  },
};

/** One of a few words, in any case; `also` are other spellings of them. */
export function oneOf<const W extends string>(
  placeholder: string,
  words: readonly W[],
  also: Readonly<Record<string, NoInfer<W>>> = {},
): Kind<W> {
  const parse = (given: string) => {
    const wanted = given.toLowerCase();
    const value =
      words.find((word) => word.toLowerCase() === wanted) ?? (Object.hasOwn(also, wanted) ? also[wanted] : undefined);
    return value === undefined ? { allowed: `one of ${words.join(', ')}` } : { value };
  };
  return { ...common, description: 'one of the words below', placeholder, words, parse };
}

/** Origins of pages as browsers name them, with commas between them, or `*`; YAML may give a sequence. */
export const origins: Kind<readonly string[]> = {
  ...common,
  description: 'comma-separated list of origins',
  placeholder: 'ORIGIN,...',
  isList: true,
  show: (items) => items.join(','),
  parse: (given) => {
    const items = given.split(',').map((item) => item.trim().toLowerCase());
    return items.every(isOrigin)
      ? { value: items }
      : {
          allowed:
            'a list of origins such as https://events.example.test or http://localhost:8080, without a path, or *',
        };
  },
};

/** Only what a browser would send counts: it leaves out the port of the scheme. */
function isOrigin(text: string): boolean {
  if (text === '*') return true;
  const url = URL.parse(text);
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') && url.origin === text;
}

/** Texts with commas between them; YAML may give a sequence. */
export function list(placeholder: string): Kind<readonly string[]> {
  const parse = (given: string) => {
    const items = given.split(',').map((item) => item.trim());
    return /[;\t]/.test(given) || items.includes('')
      ? { allowed: `a comma-separated list, such as ${placeholder},${placeholder}` }
      : { value: items };
  };
  return {
    ...common,
    description: 'comma-separated list',
    placeholder: `${placeholder},...`,
    isList: true,
    parse,
    show: (items) => items.join(','),
  };
}

/** A name of the DNS, or all below one, which begins with a dot. */
const HOST_OR_SUFFIX = /^[a-z0-9_.-]+$/;
const HOST_LENGTH_MAX = 255;

/** Names of hosts and suffixes of such, with commas between them; YAML may give a sequence. */
export const hosts: Kind<readonly string[]> = {
  ...list('HOST'),
  description: 'comma-separated list of hosts',
  parse: (given) => {
    const items = given.split(',').map((item) => item.trim().toLowerCase());
    return items.every(
      (item) =>
        item.length <= HOST_LENGTH_MAX && HOST_OR_SUFFIX.test(item) && !item.endsWith('.') && !item.includes('..'),
    )
      ? { value: items }
      : {
          allowed:
            'a list of hosts without ports, such as events.example.test, or .example.test for all below it; non-ASCII names in DNS form (xn--)',
        };
  },
};

/** Hosts with their ports, with commas between them; YAML may give a sequence. */
export const hostPorts: Kind<readonly string[]> = {
  ...list('HOST:PORT'),
  description: 'comma-separated list of host:port',
  parse: (given) => {
    const items = given === '' ? [] : given.split(',').map((item) => item.trim());
    return items.every((item) => /^[^\s;,]+:\d{1,5}$/.test(item))
      ? { value: items }
      : { allowed: 'a comma-separated list of host:port, such as node1.example.test:2113,node2.example.test:2113' };
  },
};

/**
 * Any texts with commas between them, in which a comma is written with a backslash before it; YAML may give a sequence
 * of them as they are.
 */
export function texts(placeholder: string): Kind<readonly string[]> {
  const parse = (given: string) => {
    const items = given.split(/(?<!\\),/).map((item) => item.trim().replaceAll('\\,', ','));
    return items.includes('') ? { allowed: 'comma-separated strings (\\, for a comma in one)' } : { value: items };
  };
  // A blank keeps a backslash at the end of a text from the comma behind it.
  const join = (items: readonly string[]) =>
    items.map((item) => item.replaceAll(',', '\\,').replace(/\\$/, '\\ ')).join(',');
  return {
    ...common,
    description: 'texts, with commas between them (`\\,` for a comma in one)',
    placeholder: `${placeholder},...`,
    isList: true,
    parse,
    show: join,
    join,
  };
}

/**
 * An address, or a range of addresses; `prefix` is the bits that all of the range have in common, null for one address.
 */
export interface AddressRange {
  readonly address: string;
  readonly family: 'ipv4' | 'ipv6';
  readonly prefix: number | null;
}

/**
 * What `10.0.0.0/8`, `2001:db8::/32` or an address stands for; null for anything else, and for a range of all
 * addresses.
 */
export function rangeOf(text: string): AddressRange | null {
  const slash = text.indexOf('/');
  const address = slash < 0 ? text : text.slice(0, slash);
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return null;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  if (slash < 0) return { address, family, prefix: null };
  const bits = text.slice(slash + 1);
  const prefix = /^\d{1,3}$/.test(bits) ? Number(bits) : 0;
  return prefix >= 1 && prefix <= (version === 4 ? 32 : 128) ? { address, family, prefix } : null;
}

/** Addresses and ranges of addresses with commas between them; YAML may give a sequence. */
export const addressRanges: Kind<readonly string[]> = {
  ...list('RANGE'),
  description: 'comma-separated addresses and address ranges',
  parse: (given) => {
    const items = given.split(',').map((item) => item.trim());
    return items.every((item) => rangeOf(item) !== null)
      ? { value: items }
      : {
          allowed:
            'comma-separated IP addresses and ranges, such as 10.0.0.0/8,2001:db8::7 (a range of all addresses is refused)',
        };
  },
};

/** The name of a header of HTTP. */
export const headerName: Kind<string> = {
  ...common,
  description: 'header name',
  placeholder: 'NAME',
  parse: (given) =>
    /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(given)
      ? { value: given }
      : { allowed: 'a header name, such as ES-TrustedAuth' },
};
