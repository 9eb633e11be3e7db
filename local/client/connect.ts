import { SkuaError } from '../../core/base/errors.ts';
import { wait } from '../event-store/values.ts';
import { Caller, type Timing } from './caller.ts';
import { CalledStore } from './called-store.ts';
import type { Client, ConnectOptions } from './api.ts';

/** Longest time without a sign of the server in milliseconds, unless the caller says otherwise. */
const TIMEOUT_MS = 30_000;
/** Addresses of one client. */
const ADDRESSES_MAX = 16;
/** The longest that timers take. */
const TIMEOUT_MS_MAX = 2_147_483_647;

/** How time passes, and what spreads clients that try again. */
const REAL: Timing = { sleep: wait, random: Math.random };

/**
 * A client of a node, a cluster or functions. Nothing is sent before a method is called.
 *
 * @throws `bad_option` for an address that is none.
 * @example
 * const store = connect({ url: 'http://127.0.0.1:2113' });
 * await store.append('order-1', { type: 'OrderPlaced', data: { pieces: 2 } }, { expected: 'none' });
 * for await (const { type, data } of store.read('order-1')) console.log(type, data);
 * await store.close();
 */
export function connect(options: ConnectOptions): Client {
  return clientOf(options, REAL);
}

/** The same with a time of one's own. */
export function clientOf(options: ConnectOptions, timing: Timing): Client {
  const { credentials, headers = {}, timeoutMs = TIMEOUT_MS, fetch: send = globalThis.fetch } = options ?? {};
  const { url, urls } = (options ?? {}) as { readonly url?: string; readonly urls?: readonly string[] };
  const given = urls ?? (url === undefined ? [] : [url]);
  if (
    !Array.isArray(given) ||
    given.length === 0 ||
    given.length > ADDRESSES_MAX ||
    (url !== undefined && urls !== undefined)
  )
    throw badOption('url', `give url, or urls with 1 to ${ADDRESSES_MAX} addresses`);
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > TIMEOUT_MS_MAX)
    throw badOption('timeoutMs', `timeoutMs must be a whole number from 1 to ${TIMEOUT_MS_MAX}`);
  const places = given.map((address) => placeOf(address));
  return new CalledStore(
    new Caller({
      places: places.map(({ root, login }) => ({
        root,
        headers: { ...loginHeader(credentials ?? login), ...lowerCased(headers) },
      })),
      timeoutMs,
      // As a method of an object of ours a browser refuses to call its own.
      send: (url, init) => send(url, init),
      timing,
    }),
  );
}

interface Login {
  readonly username: string;
  readonly password: string;
}

function placeOf(address: unknown): { readonly root: string; readonly login: Login | null } {
  let url: URL;
  try {
    url = new URL(String(address));
  } catch {
    throw badOption('url', `'${String(address)}' is not an address such as https://events.example.com`);
  }
  const { protocol, origin, pathname, username, password } = url;
  if (protocol !== 'http:' && protocol !== 'https:')
    throw badOption('url', `an address begins with http:// or https://, and this one with ${protocol}`);
  return {
    root: `${origin}${pathname.replace(/\/$/, '')}`,
    login: username === '' ? null : { username: decodeURIComponent(username), password: decodeURIComponent(password) },
  };
}

function loginHeader(login: Login | null): Readonly<Record<string, string>> {
  if (login === null) return {};
  const bytes = new TextEncoder().encode(`${login.username}:${login.password}`);
  return { authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

function lowerCased(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function badOption(option: string, why: string): SkuaError {
  return new SkuaError('bad_option', `The client can't be made: ${why}.`, { option });
}
