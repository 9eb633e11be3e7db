import type { App, Call } from './context.ts';
import type { GossipMember } from './node-control.ts';
import { forwardedBase, NO_HOST, pathStart } from './url.ts';

/**
 * What a URL makes of every spelling of the addresses that stand for all of a machine, by which no client reaches it
 * from elsewhere.
 */
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '[::]', '[::ffff:0:0]']);

/**
 * Members as the client of a call reaches them. One that listens on all addresses and was given no name knows none for
 * itself: it is told by the host that the client asked for, else by the address at which the connection came in. For
 * another port than its own there is an option (NodePortAdvertiseAs).
 */
export function membersFor(call: Call, app: App, members: readonly GossipMember[]): readonly GossipMember[] {
  if (!members.some(({ host }) => isWildcard(host))) return members;
  const host = askedHost(call, app);
  return members.map((member) => (isWildcard(member.host) ? { ...member, host } : member));
}

function isWildcard(host: string): boolean {
  return WILDCARDS.has(URL.parse(`http://${host.includes(':') ? `[${host}]` : host}`)?.hostname ?? '');
}

/**
 * What the client has sent, and where forwarding headers count what these say. Addresses of IPv6 are without brackets,
 * as in gossip.
 */
function askedHost({ request }: Call, { server: { isTrustedProxy, localAddressOf } }: App): string {
  const origin = request.url.slice(0, pathStart(request.url));
  const base =
    isTrustedProxy === undefined || isTrustedProxy(request) ? forwardedBase(request.headers, origin) : origin;
  const hostname = URL.parse(base)?.hostname ?? NO_HOST;
  if (hostname === NO_HOST || WILDCARDS.has(hostname)) return localAddressOf?.(request) ?? 'localhost';
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
