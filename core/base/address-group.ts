/**
 * By which callers are counted: an IPv4 address by itself, an IPv6 address by its network of 64 bits, since a client
 * that has one address of such a network has all of them. `address` is in the canonical form (RFC 5952), as servers
 * show addresses; what is no address, and the null of an unknown one, stand for themselves.
 */
export function addressGroup(address: string | null): string {
  if (address === null) return '';
  if (!address.includes(':')) return address;
  const zone = address.indexOf('%');
  const bare = zone < 0 ? address : address.slice(0, zone);
  const gap = bare.indexOf('::');
  if (gap < 0) return networkOf(bare.split(':'));
  const head = partsOf(bare.slice(0, gap));
  const tail = partsOf(bare.slice(gap + 2));
  const tailWords = tail.length + (tail.at(-1)?.includes('.') === true ? 1 : 0);
  return networkOf([
    ...head,
    ...Array.from({ length: Math.max(0, WORDS - head.length - tailWords) }, () => '0'),
    ...tail,
  ]);
}

/** Whether an address, in the same form, is this machine's own; never for one that is not known. */
export function isLoopbackAddress(address: string | null): boolean {
  return address !== null && (address === '::1' || LOOPBACK_IPV4.test(address));
}

const LOOPBACK_IPV4 = /^127(?:\.\d{1,3}){3}$/;

/** 16-bit words of an IPv6 address. */
const WORDS = 8;

function partsOf(text: string): string[] {
  return text === '' ? [] : text.split(':', WORDS);
}

function networkOf(words: readonly string[]): string {
  return `${words.slice(0, WORDS / 2).join(':')}::/64`;
}
