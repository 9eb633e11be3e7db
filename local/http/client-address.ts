import { BlockList, isIP, SocketAddress } from 'node:net';
import { parse as parseForwarded } from 'forwarded-parse';
import { isLoopbackAddress } from '../../core/base/address-group.ts';
import type { ServerSide } from '../../handlers/http/context.ts';
import { rangeOf } from '../../infra/runtime/config/kinds.ts';

/** Longest text of a hop that is looked at: an IPv6 address in brackets, with zone and port. */
const HOP_LENGTH_MAX = 64;

/** The proxies whose word about their clients counts (option TrustedProxies), and the clients behind them. */
export class TrustedProxies {
  readonly #ranges = new BlockList();
  readonly #isEmpty: boolean;
  /** Looking an address up in the list costs as much as all else that is done with it. */
  readonly #byConnection = new WeakMap<object, boolean>();

  /** Addresses and ranges that the option's kind has accepted. */
  constructor(ranges: readonly string[]) {
    this.#isEmpty = ranges.length === 0;
    for (const text of ranges) {
      const range = rangeOf(text);
      if (range === null) throw new Error(`${text} is not an address or address range.`);
      const { address, family, prefix } = range;
      if (prefix === null) this.#ranges.addAddress(address, family);
      else this.#ranges.addSubnet(address, prefix, family);
    }
  }

  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** `address` in the form in which `connectionAddress` gives it. */
  has(address: string | null): boolean {
    if (this.#isEmpty || address === null) return false;
    const zone = address.indexOf('%');
    return this.#ranges.check(zone < 0 ? address : address.slice(0, zone), address.includes(':') ? 'ipv6' : 'ipv4');
  }

  /** Whether a connection comes from one of them. Looked up once, since a connection stays where it is. */
  hasConnection(connection: { readonly remoteAddress?: string | undefined }): boolean {
    if (this.#isEmpty) return false;
    let isTrusted = this.#byConnection.get(connection);
    if (isTrusted === undefined) {
      isTrusted = this.has(connectionAddress(connection));
      this.#byConnection.set(connection, isTrusted);
    }
    return isTrusted;
  }

  /**
   * Where a request comes from: the connection's address, or behind trusted proxies the last hop that is none of them,
   * by what these say in `X-Forwarded-For` or `Forwarded` (RFC 7239). What a client wrote into these stands before it,
   * and is never reached. Where the hops can't be read, or both headers are there and name different clients, the
   * connection's address counts: it is the only one that no client can make up.
   */
  clientOf(connection: { readonly remoteAddress?: string | undefined }, headers: Headers): string | null {
    const address = connectionAddress(connection);
    return address !== null && this.hasConnection(connection) ? (this.#forwardedClient(headers) ?? address) : address;
  }

  /**
   * Whether a request was sent on this machine: over its loopback interface, and passed on by no proxy. Behind a
   * trusted proxy here the client must be said to be local, too. A proxy that is not named as trusted gives itself away
   * by what it adds, or by the name under which the node was asked for; what can't be known counts as not local.
   */
  isLocal(connection: { readonly remoteAddress?: string | undefined }, headers: Headers): boolean {
    if (!isLoopbackAddress(connectionAddress(connection))) return false;
    if (this.hasConnection(connection)) return isLoopbackAddress(this.#forwardedClient(headers));
    return !PASSED_ON.some((name) => headers.has(name)) && isLoopbackHost(headers.get('host'));
  }

  /** Null where the headers are not there or can't be read. */
  #forwardedClient(headers: Headers): string | null {
    const list = headers.get('x-forwarded-for');
    const forwarded = headers.get('forwarded');
    const byList = list === null ? null : this.#lastUntrusted(hopsOfList(list));
    if (forwarded === null) return byList;
    const hops = hopsOfForwarded(forwarded);
    const byForwarded = hops === null ? null : this.#lastUntrusted(hops);
    return list === null || byList === byForwarded ? byForwarded : null;
  }

  /** From the nearest hop on; null for none, and where one that is reached is no address. */
  #lastUntrusted(hops: Iterable<string>): string | null {
    let last: string | null = null;
    for (const hop of hops) {
      last = addressOfHop(hop);
      if (last === null || !this.has(last)) return last;
    }
    return last;
  }
}

/** What proxies add to the requests that they pass on. */
const PASSED_ON = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-server',
  'x-forwarded-scheme',
  'x-forwarded-ssl',
  'x-real-ip',
  'x-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'x-original-forwarded-for',
  'x-envoy-external-address',
  'x-request-start',
] as const;

/** The last `Host` header that was asked for: one request after the other has the same. */
let known = { host: '', isLoopback: false };

/** A `Host` header, with or without a port. */
function isLoopbackHost(host: string | null): boolean {
  if (host === null) return false;
  if (host === known.host) return known.isLoopback;
  const hostname = URL.parse(`http://${host}`)?.hostname ?? '';
  const isLoopback =
    hostname === 'localhost' || isLoopbackAddress(hostname.startsWith('[') ? hostname.slice(1, -1) : hostname);
  known = { host, isLoopback };
  return isLoopback;
}

/** The address at the other end; null once it is gone. IPv4 addresses are shown as such on a socket for both. */
export function connectionAddress({ remoteAddress }: { readonly remoteAddress?: string | undefined }): string | null {
  return remoteAddress === undefined ? null : withoutMapping(remoteAddress);
}

/** The address of this machine to which a connection was made; null once it is gone. */
export function ownAddress({ localAddress }: { readonly localAddress?: string | undefined }): string | null {
  return localAddress === undefined ? null : withoutMapping(localAddress);
}

const MAPPED = '::ffff:';

function withoutMapping(address: string): string {
  return address.startsWith(MAPPED) && address.includes('.') ? address.slice(MAPPED.length) : address;
}

export type ProxySide = Required<Pick<ServerSide, 'addressOf' | 'isLocal'>> & Pick<ServerSide, 'isTrustedProxy'>;

/** What the server side offers of this; `isTrustedProxy` only where some were named. */
export function proxySide(
  proxies: TrustedProxies,
  connectionOf: (request: Request) => { readonly remoteAddress?: string | undefined },
): ProxySide {
  return {
    addressOf: (request) => proxies.clientOf(connectionOf(request), request.headers),
    isLocal: (request) => proxies.isLocal(connectionOf(request), request.headers),
    ...(!proxies.isEmpty && { isTrustedProxy: (request: Request) => proxies.hasConnection(connectionOf(request)) }),
  };
}

/** The members of a list with commas, the last one first. Only what is asked for is looked at. */
function* hopsOfList(list: string): Iterable<string> {
  let end = list.length;
  while (end >= 0) {
    const comma = end === 0 ? -1 : list.lastIndexOf(',', end - 1);
    yield list.slice(comma + 1, end);
    end = comma;
  }
}

/** The `for` of each element, the last one first; null for what is no such header. */
function hopsOfForwarded(header: string): string[] | null {
  try {
    return parseForwarded(header)
      .map((element) => element['for'] ?? '')
      .reverse();
  } catch {
    return null;
  }
}

/**
 * `192.0.2.7`, `2001:db8::7`, `[2001:db8::7]`, each with a port or without; null for everything else, such as
 * `unknown`.
 */
function addressOfHop(hop: string): string | null {
  const text = hop.trim();
  if (text.length > HOP_LENGTH_MAX) return null;
  if (text.startsWith('[')) {
    const end = text.indexOf(']');
    return isPortOrNothing(text.slice(end + 1)) && isIP(text.slice(1, end)) === 6
      ? canonical(text.slice(1, end))
      : null;
  }
  const colon = text.indexOf(':');
  if (isIP(text) !== 0) return canonical(text);
  return colon > 0 && isPortOrNothing(text.slice(colon)) && isIP(text.slice(0, colon)) === 4
    ? text.slice(0, colon)
    : null;
}

function isPortOrNothing(text: string): boolean {
  return text === '' || /^:\d{1,5}$/.test(text);
}

/** The one spelling by which addresses are compared, without a zone. */
function canonical(address: string): string {
  return isIP(address) === 4 ? address : withoutMapping(new SocketAddress({ address, family: 'ipv6' }).address);
}
