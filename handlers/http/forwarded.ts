import { FOR_OTHERS } from '../../core/cluster/ask-leader/ask-leader.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { SessionProof, Principal } from '../../core/security/api.ts';
import { notAMember } from './authorization.ts';
import type { Forwarded } from './cluster-feature.ts';
import type { App, Call, ServerSide } from './context.ts';

export const FORWARDED_HEADER = 'skua-forwarded';
/** Of the cluster's secret, where there is one: `Authorization` is the caller's. */
export const MEMBER_HEADER = 'skua-member';
/** On the leader's answer: the end of its log, up to which the member that was asked reads before it answers. */
export const LOG_END_HEADER = 'skua-log-end';
/** On the leader's answer: nothing was decided, since it does not lead in that epoch. */
export const NOT_LEADER_HEADER = 'skua-not-leader';
/** Status of such an answer, which no client ever sees: Misdirected Request. */
export const NOT_LEADER_STATUS = 421;

export function isForOthers(error: unknown): boolean {
  return isSkuaError(error) && FOR_OTHERS.has(error.code);
}

/** Longest header that is looked at, in characters. */
const FORWARDED_LENGTH_MAX = 16_384;

/** The header's value: JSON with nothing but ASCII in it. */
export function forwardedText(forwarded: Forwarded): string {
  return JSON.stringify(forwarded).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The last header that was read: one request after the other has the same. */
let last: { readonly text: string; readonly forwarded: Forwarded | null } = { text: '', forwarded: null };

/** Null for what is no such header, which counts as none. */
export function parseForwarded(text: string): Forwarded | null {
  if (text !== last.text) last = { text, forwarded: readForwarded(text) };
  return last.forwarded;
}

function readForwarded(text: string): Forwarded | null {
  if (text.length > FORWARDED_LENGTH_MAX) return null;
  let value: Partial<Record<keyof Forwarded, unknown>> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { epoch, atMs = null, base, address, isLocal, caller, certificate, session = null } = value;
  if (
    !Number.isSafeInteger(epoch) ||
    (epoch as number) < 0 ||
    typeof base !== 'string' ||
    typeof isLocal !== 'boolean' ||
    !isText(address) ||
    !isText(certificate) ||
    !(atMs === null || Number.isFinite(atMs)) ||
    !isCaller(caller) ||
    !isProof(session)
  )
    return null;
  return { epoch: epoch as number, atMs: atMs as number | null, base, address, isLocal, caller, certificate, session };
}

function isText(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function isCaller(value: unknown): value is Principal | null {
  if (value === null) return true;
  const { name, roles } = value as Partial<Principal>;
  return isText(name) && Array.isArray(roles) && roles.every((role) => typeof role === 'string');
}

function isProof(value: unknown): value is SessionProof | null {
  if (value === null) return true;
  const { user, lastEventNumber, metadataVersion } = value as Partial<SessionProof>;
  return typeof user === 'string' && Number.isSafeInteger(lastEventNumber) && Number.isSafeInteger(metadataVersion);
}

/** Requests that another member has passed on, with what it says of them. */
const known = new WeakMap<Request, Forwarded>();

/** What a member says of the request that it has passed on; null for a request of a client's own. */
export function forwardedOf(request: Request, app: App): Forwarded | null {
  const text = request.headers.get(FORWARDED_HEADER);
  if (text === null || !isFromMember(request, app)) return null;
  const forwarded = parseForwarded(text);
  if (forwarded !== null) known.set(request, forwarded);
  return forwarded;
}

/**
 * Throws `not_a_member` for a request that says to be passed on, where no member can be heard saying so. It must not be
 * decided as a client's own: after a change of certificates it may be a member's all the same, and the epoch in which
 * it was sent would count for nothing.
 */
export function refuseUnheard({ request, forwarded }: Call): void {
  if (forwarded === null && request.headers.has(FORWARDED_HEADER))
    throw notAMember(`Only a member may send ${FORWARDED_HEADER}.`);
}

/** Longest secret that is looked at, in characters. */
const SECRET_LENGTH_MAX = 8_192;

/** Known by its certificate, or by the secret of the cluster; without security every caller is what it claims to be. */
function isFromMember(request: Request, { security, server, features: { cluster } }: App): boolean {
  if (security === null || (server.peerOf?.(request) ?? null) !== null) return true;
  const secret = request.headers.get(MEMBER_HEADER);
  return secret !== null && secret.length <= SECRET_LENGTH_MAX && cluster?.isSecret?.(secret) === true;
}

/**
 * What a server knows of requests, where some of them come by way of other members: what these have seen of the client,
 * in place of what is seen here.
 */
export function behindMembers(server: ServerSide): ServerSide {
  const of = (request: Request) => known.get(request);
  return {
    ...server,
    addressOf: (request) => (of(request) ?? { address: server.addressOf?.(request) ?? null }).address,
    isLocal: (request) => of(request)?.isLocal ?? server.isLocal?.(request) ?? false,
    // Many callers share the connection, and none is recognised by it.
    connectionOf: (request) => (of(request) === undefined ? (server.connectionOf?.(request) ?? null) : null),
    peerOf: (request) => (of(request) ?? { caller: server.peerOf?.(request) ?? null }).caller,
    certificateOf: (request) => (of(request) ?? { certificate: server.certificateOf?.(request) ?? null }).certificate,
    ...(server.isTrustedProxy !== undefined && {
      isTrustedProxy: (request: Request) => of(request) === undefined && server.isTrustedProxy!(request),
    }),
    ...(server.rawHeadersOf !== undefined && {
      rawHeadersOf: (request: Request) => {
        const forwarded = of(request);
        return forwarded === undefined
          ? server.rawHeadersOf!(request)
          : asSent(server.rawHeadersOf!(request), forwarded);
      },
    }),
  };
}

const OURS: ReadonlySet<string> = new Set([FORWARDED_HEADER, MEMBER_HEADER]);

/** Handlers that look at all headers are shown those of the client alone, with the host that it asked for. */
function asSent(raw: readonly string[], { base }: Forwarded): readonly string[] {
  const headers: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (!OURS.has(name)) headers.push(raw[i]!, name === 'host' ? (URL.parse(base)?.host ?? raw[i + 1]!) : raw[i + 1]!);
  }
  return headers;
}
