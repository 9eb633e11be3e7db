/** Longest name of a host in characters (RFC 1035 section 2.3.4); a longer one is no host's. */
const HOST_LENGTH_MAX = 255;
/** Name or address, and the port, which says nothing of which host is meant. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+?)\.?(?::\d{1,5})?$/;
/** What browsers take for an address of IPv4: no name that can be registered ends in a number. */
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;
/**
 * No name under one of these can be registered and pointed elsewhere (RFC 6761, RFC 6762, RFC 8375; the clusters of
 * Kubernetes).
 */
const PRIVATE_SUFFIXES = ['.localhost', '.local', '.internal', '.lan', '.home.arpa', '.test', '.svc'] as const;

/**
 * Under which names a node may be asked for. An address, a name without a dot and a name under a private suffix always
 * count, since no page of the internet has such an origin; any other must be named, as a whole, or by a suffix that
 * begins with a dot.
 */
export class OwnHosts {
  readonly #names: ReadonlySet<string>;
  readonly #suffixes: readonly string[];
  /** The last one that was found to be ours: one request after the other names the same. */
  #last = '';

  /** `named`: names and suffixes without ports. */
  constructor(named: readonly string[]) {
    const lower = named.map((name) => name.toLowerCase());
    this.#names = new Set(lower);
    this.#suffixes = [...PRIVATE_SUFFIXES, ...lower.filter((name) => name.startsWith('.'))];
  }

  /** `host`: as it stands in the header, with or without a port. */
  has(host: string): boolean {
    if (host === this.#last) return true;
    if (!this.#isOwn(host)) return false;
    this.#last = host;
    return true;
  }

  #isOwn(host: string): boolean {
    if (host.length > HOST_LENGTH_MAX) return false;
    const name = HOST.exec(host.toLowerCase())?.[1];
    if (name === undefined) return false;
    return (
      name.startsWith('[') ||
      !name.includes('.') ||
      IPV4.test(name) ||
      this.#names.has(name) ||
      this.#suffixes.some((suffix) => name.endsWith(suffix))
    );
  }
}
