import type { AutoScavenge, ScavengeOrders } from '../../core/auto-scavenge/api.ts';
import type { ByteShare } from '../../core/base/byte-budget.ts';
import type { MemberLog, Membership, Patience, Writer } from '../../core/cluster/api.ts';
import type { AskLeader } from '../../core/cluster/ask-leader/ask-leader.ts';
import type { RunningMembership } from '../../core/cluster/membership/api.ts';
import type { Holds } from '../../core/store/api.ts';
import type { BackupChecks, BackupStatus, Backups } from '../../core/backup/api.ts';
import type { PersistentSubscriptions } from '../../core/persistent/api.ts';
import type { AuditAction, AuditDetails, AuditLog } from '../../core/ports/audit.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Ids } from '../../core/ports/ids.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { ScavengeControl, ScavengeView } from '../../core/scavenge/api.ts';
import type { ErasureChecks } from '../../core/scavenge/scavenge.ts';
import type { Security, Session, Principal } from '../../core/security/api.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { StreamNames } from '../../core/streams/find-names/find-names.ts';
import type { Connectors, WebhookIngest, ArrivalLimits } from '../../core/webhook/api.ts';
import { ARRIVAL_LIMITS, Arrivals } from '../../core/webhook/arrivals/arrivals.ts';
import type { Fence, Forwarded, Forwarder, EpochGuard } from './cluster-feature.ts';
import type { NodeControl } from './node-control.ts';
import { OwnHosts } from './own-hosts.ts';
import type { PageFiles } from './page-files.ts';
import { Turns } from './turns.ts';

export interface AppOptions {
  /** Largest request body in bytes; a larger one is 413. */
  readonly bodyBytesMax: number;
  /**
   * Largest append of gRPC in bytes of data, 1 MiB as in the reference; what is larger in all than a body may be is
   * refused too.
   */
  readonly appendBytesMax: number;
  /** Bytes of events with which a page ends, behind at least one; its links lead on to the rest. */
  readonly readPageBytesMax: number;
  /** Every reply to a read tells caches to ask again. */
  readonly disableHttpCaching: boolean;
  /** Shown at `/`. */
  readonly version: string;
  /** Routes that can be switched off: they are 404 then. */
  readonly disableAdminUi: boolean;
  readonly disableStatsOnHttp: boolean;
  readonly disableGossipOnHttp: boolean;
  readonly disableAtomPub: boolean;
  /** The anonymous caller may see `/stats` and `/metrics`. */
  readonly allowAnonymousEndpointAccess: boolean;
  /** The anonymous caller may see `/gossip`. */
  readonly allowAnonymousGossip: boolean;
  /** Header in which a trusted proxy names the caller, where that is believed; else null. */
  readonly trustedAuthHeader: string | null;
  readonly logFailedAuthenticationAttempts: boolean;
  readonly logHttpRequests: boolean;
  /**
   * Origins whose pages browsers let in, with credentials, as `scheme://host:port`; `*` lets all read without. Empty:
   * none but the node's own.
   */
  readonly corsOrigins: readonly string[];
  /** For so many seconds browsers are told to ask for the node over TLS only; 0: they are told nothing. */
  readonly hstsSeconds: number;
  /** Names of the node beside those that can be no other host's (`OwnHosts`), and suffixes of such. */
  readonly allowedHosts: readonly string[];
  /** Replies of fewer bytes are not compressed for callers that take several codings; -1: none is compressed. */
  readonly compressionMinBytes: number;
}

export const DEFAULT_OPTIONS: AppOptions = {
  bodyBytesMax: 30_000_000,
  appendBytesMax: 1_048_576,
  readPageBytesMax: 8_388_608,
  disableHttpCaching: false,
  version: '0.1.0',
  disableAdminUi: false,
  disableStatsOnHttp: false,
  disableGossipOnHttp: false,
  disableAtomPub: false,
  allowAnonymousEndpointAccess: false,
  allowAnonymousGossip: true,
  trustedAuthHeader: null,
  logFailedAuthenticationAttempts: false,
  logHttpRequests: false,
  compressionMinBytes: 1_024,
  corsOrigins: [],
  hstsSeconds: 0,
  allowedHosts: [],
};

/** All that the handlers need, by part. */
export interface AppContext {
  readonly world: AppWorld;
  readonly store: EventStore;
  /** Null where the routes of scavenges are not served, as in functions of streams. */
  readonly scavenger: (ScavengeControl & ScavengeView) | null;
  /** Users and access lists; null while security is off: then every caller is the system user and may do everything. */
  readonly security: Security | null;
  /**
   * The node around the handlers; null where there is none (tests of streams, functions): its routes are absent then.
   */
  readonly node: NodeControl | null;
  /** The audit log; null, or left out, where no option asks for one. */
  readonly audit?: AuditLog | null;
  readonly features?: AppFeatures;
  readonly server?: ServerSide;
  readonly options?: Partial<AppOptions>;
}

export interface AppWorld {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
}

/** What not every node has. The routes of what is null, or not named, are absent. */
export interface AppFeatures {
  /** The schedule of scavenges. */
  readonly autoScavenge?: AutoScavenge | null;
  /** What this node remembers of the cluster's orders; null where it takes none. */
  readonly scavengeOrders?: Pick<ScavengeOrders, 'start' | 'stop' | 'asked' | 'last'> | null;
  /** Null where files are not given away and no backups made. */
  readonly backups?: {
    readonly holds: Holds;
    readonly node: Backups;
    readonly checks: BackupChecks;
    status(): BackupStatus;
  } | null;
  /** Null where connectors are switched off. */
  readonly webhooks?: Webhooks | null;
  /** Persistent subscriptions; null where there are none, as in functions. */
  readonly subscriptions?: PersistentSubscriptions | null;
  /** Null where there are no files to search. */
  readonly erasure?: ErasureChecks | null;
  /** Null where the node is a member of no cluster. */
  readonly cluster?: ClusterFeature | null;
  /** The page for browsers; null where there is none, as in functions. */
  readonly page?: PageFiles | null;
}

/** This node as a member of a cluster. */
export interface ClusterFeature {
  readonly membership: Membership & Pick<RunningMembership, 'onGossip' | 'onCommits' | 'onLead'>;
  readonly log: MemberLog;
  /**
   * Whether a text is the secret that the members share; null where there is none: then certificates prove that a
   * caller is a member.
   */
  readonly isSecret: ((text: string) => boolean) | null;
  /**
   * Takes in what other members have written, before a user is refused that may have been made, or changed, elsewhere a
   * moment ago; resolves after a second at the latest, whether that worked or not. Null where that was done within the
   * last second.
   */
  readonly upToDate: () => Promise<void> | null;
  readonly forward: Forwarder;
  readonly fence: Fence;
  /** For how long writes of clients may be under way here. */
  readonly patience: Patience;
  /** Has decided what another member is to decide. */
  readonly ask: AskLeader;
  /** This member's own replica, for what other members send to be written here. */
  readonly copy: Pick<EventStore, 'append' | 'appendToStreams' | 'deleteStream'>;
}

export interface Webhooks {
  readonly connectors: Connectors;
  readonly ingest: WebhookIngest;
  readonly limits?: Partial<WebhookLimits>;
}

export interface WebhookLimits extends ArrivalLimits {
  /** Largest body of a call. */
  readonly bodyBytesMax: number;
  /** How long a body may take to arrive. */
  readonly bodyReadMs: number;
}

/** Values of `Content-Encoding`. */
export type Coding = 'zstd' | 'br' | 'gzip' | 'deflate';

/** How a server compresses; off the loop that serves requests. */
export interface BodyEncoder {
  /**
   * What can be used for bodies that are there, and for those that come bit by bit and whose every block has to arrive
   * at once.
   */
  readonly codings: ReadonlySet<Coding>;
  readonly liveCodings: ReadonlySet<Coding>;
  /** The compressed body; null where too many are being compressed already. */
  encode(body: ReplyBody, coding: Coding, isLive: boolean): ReplyBody | Promise<ReplyBody> | null;
}

/**
 * What the server around the handlers knows of a request beyond the web platform's `Request`, and how it takes replies.
 */
export interface ServerSide {
  /**
   * Names and values of the headers as they arrived, in turn; without it those of the web platform, which joins what
   * has one name.
   */
  readonly rawHeadersOf?: (request: Request) => readonly string[];
  /**
   * Where a request comes from, behind trusted proxies too; null where that is not known. Callers are counted by
   * `addressGroup` of it.
   */
  readonly addressOf?: (request: Request) => string | null;
  /** The address of the node's machine at which the connection of a request came in; null where that is not known. */
  readonly localAddressOf?: (request: Request) => string | null;
  /**
   * Whether a request was sent on the machine of the node and passed on by no proxy; absent where that is not known.
   */
  readonly isLocal?: (request: Request) => boolean;
  /**
   * Whether the connection of a request comes from a proxy that was named as one to be trusted, whatever its headers
   * say. Absent where none was named.
   */
  readonly isTrustedProxy?: (request: Request) => boolean;
  /**
   * The `Host` of a request over plain HTTP/1.1 as it was sent; null where it names none, or came over TLS or HTTP/2,
   * by which no page under a name of others gets here. Absent where the name is not checked.
   */
  readonly plainHostOf?: (request: Request) => string | null;
  /**
   * What stands for the connection of a request, the same object for all its requests; null where that is not known.
   * Credentials that come again over one connection are then recognised without being verified anew.
   */
  readonly connectionOf?: (request: Request) => object | null;
  /**
   * Called with the caller as soon as it is known: what the request takes of limits that callers share counts for that
   * caller. Throws `too_busy` where it has more than its part of them.
   */
  readonly calledBy?: (request: Request, caller: string) => void;
  /** Whether no client waits for the answer to a request any more; without it the request's signal decides. */
  readonly isGone?: (request: Request) => boolean;
  /**
   * The caller whom the connection itself proves (a node's certificate); null for none. Credentials in the request win.
   */
  readonly peerOf?: (request: Request) => Principal | null;
  /** The name in the verified certificate of the connection; null without one. */
  readonly certificateOf?: (request: Request) => string | null;
  /**
   * Reads a body of at most `bytesMax` bytes, or throws `body_too_large`. A server adapter gives a direct way to its
   * own buffers here; without it the web platform's `Request` is read. Where a body comes in parts, `onBytes` is told
   * of each; once it says false nothing is kept of the body, and the promise rejects with `aborted`.
   */
  readonly readBody?: (request: Request, bytesMax: number, onBytes?: OnBytes) => Promise<Uint8Array>;
  /** Compresses replies; without it the web platform does, as far as it can. */
  readonly encoder?: BodyEncoder;
  /** What the reply to a request holds in memory, of what all replies may; without it replies are not counted. */
  readonly replyShareOf?: (request: Request) => ByteShare;
  /** Makes a response that this server sends with less work than one of the web platform, which is made without it. */
  readonly toResponse?: (reply: Reply) => Response;
}

/** So many bytes more of a body have arrived; false where it is not wanted any more. */
export type OnBytes = (bytes: number) => boolean;

/** The context with every part and option filled in. */
export interface App extends AppContext {
  readonly audit: AuditLog | null;
  readonly features: AppFeatures;
  readonly server: ServerSide;
  readonly options: AppOptions;
  /** The last login over each connection. */
  readonly logins: WeakMap<object, Login>;
  /** Null where no option names any. */
  readonly origins: Origins | null;
  readonly hosts: OwnHosts;
  /** Bodies of webhook calls that are arriving. */
  readonly arrivals: Arrivals;
  /** Bodies of logins of the page that are arriving, by the group of their address. */
  readonly arrivingLogins: Map<string, number>;
  readonly streamNames: StreamNames;
  /** For work that takes long: taking large bodies apart, and making large pages. */
  readonly turns: Turns;
}

/** As browsers write them, in lower case. */
type Origins = ReadonlySet<string>;

/** The context with everything filled in that it leaves out. */
export function appOf(context: AppContext): App {
  const { features = {}, server = {}, world } = context;
  const options = { ...DEFAULT_OPTIONS, ...context.options };
  const arrivals = new Arrivals(world.clock, { ...ARRIVAL_LIMITS, ...features.webhooks?.limits });
  return {
    ...context,
    audit: context.audit ?? null,
    features,
    server,
    options,
    logins: new WeakMap(),
    origins: options.corsOrigins.length === 0 ? null : new Set(options.corsOrigins),
    hosts: new OwnHosts(options.allowedHosts),
    arrivals,
    arrivingLogins: new Map(),
    streamNames: new StreamNames(context.store, world.clock),
    turns: new Turns(world.clock),
  };
}

/** Credentials as they were sent and from where, and the user that they named. */
interface Login {
  readonly header: string;
  readonly address: string | null;
  /** Requests with other credentials, or from elsewhere, that came over the connection since. */
  others: number;
  readonly principal: Principal;
}

/**
 * Which callers may call an operation. `anyone` is asked for no rights, but wrong credentials are refused all the same;
 * `probe` and `sender` (of webhooks) are answered without a look at credentials. `backup`: the files of the node, which
 * hold everything, so that operators may not see them. `members`: the members of the cluster, and no user whatever
 * groups that user is in. `stream`: the access list of the stream decides, in the handler; `self`: the handler compares
 * the user in the path with the caller.
 */
export type Access =
  | 'probe'
  | 'sender'
  | 'anyone'
  | 'gossip'
  | 'statistics'
  | 'authenticated'
  | 'self'
  | 'operators'
  | 'backup'
  | 'administrators'
  | 'members'
  | 'stream';

/**
 * What holds for every path that begins with one segment. It is asked before routes are looked at, and of paths that no
 * route has, so that what is not there is answered in the form of what is.
 */
export interface Branch {
  readonly fail: (error: unknown, call: Call, app: App) => Reply;
  /** Callers have signatures and no users: credentials are not looked at. */
  readonly isForSenders: boolean;
  /** Paths of probes, of which nothing is asked; null for none. */
  readonly probes: ReadonlySet<string> | null;
  readonly heedsRequiresLeader: boolean;
  /** Whether the leader alone has what some reads ask for. */
  readonly hasReadsOfLeader: boolean;
}

/**
 * One request on its way through the router. `params` and `query` are the router's, percent-encoding untouched in
 * `params`.
 */
export interface Call {
  readonly request: Request;
  /** GET for a HEAD. */
  readonly method: string;
  readonly url: string;
  /** Scheme and host of the URL. */
  readonly origin: string;
  /** As sent, without the query. */
  readonly path: string;
  readonly branch: Branch;
  params: Record<string, string>;
  query: Record<string, string | string[] | undefined>;
  /** What `Access-Control-Allow-Methods` says for this path; empty when no route knows the path. */
  methods: string;
  principal: Principal;
  /** What the route asked of the caller; null until it has. */
  entered: Access | null;
  /**
   * The caller under which what callers share is counted (core/base/shared-limit.ts); null until the caller is known.
   */
  countedAs: string | null;
  /** The session of the page by which the caller is known; null where it is known otherwise, or not at all. */
  session: Session | null;
  /**
   * Beginning of every generated link; filled in by url.ts when first needed, and at once where forwarding headers do
   * not count.
   */
  base: string | null;
  /**
   * What the audit log records of the call; null where it records nothing. The route sets it, and its handler adds to
   * it.
   */
  audited: Audited | null;
  /** What another member says of a request that it has passed on; null for a client's own. */
  readonly forwarded: Forwarded | null;
  /** Whether a request that was passed on may still be decided here; null for a client's own. */
  guard: EpochGuard | null;
  /** It takes slices of the process (./turns.ts). */
  isLong: boolean;
  /** The body where it was read before the handler; null where it still has to be read. */
  body: Uint8Array | null;
}

/** What a call does, for the audit. */
export interface Audited {
  readonly action: AuditAction;
  readonly target: string | null;
  readonly details: AuditDetails | null;
  /** The name that was tried, where a login is what is recorded. */
  readonly user?: string;
}

/** Adds to what the audit log records of a call, where it records the call at all. */
export function noteForAudit(call: Pick<Call, 'audited'>, more: Partial<Audited>): void {
  if (call.audited !== null) call.audited = { ...call.audited, ...more };
}

/** What a call is answered with. The edge makes of it what its server sends (`ServerSide.toResponse`). */
export interface Reply {
  readonly status: number;
  readonly statusText: string;
  /** By lower-cased name; one plain object, which server adapters pass on without parsing. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReplyBody | null;
}

export type ReplyBody = string | Uint8Array<ArrayBuffer> | ReadableStream;

export type Handler = (call: Call, app: App) => Reply | Promise<Reply>;

/** A query parameter's first value. */
export function queryOf(call: Call, name: string): string | undefined {
  const value = call.query[name];
  return Array.isArray(value) ? value[0] : value;
}

/** The user for which the writes of a call are written at another member, and what access is asked there. */
export function writerOf(
  { principal, entered }: Pick<Call, 'principal' | 'entered'>,
  { security }: Pick<App, 'security'>,
): Writer {
  const { name, roles } = principal;
  return {
    name,
    roles: security?.authenticator.isUser?.(principal) === true ? null : roles,
    asks: entered === 'stream' ? 'list' : entered === 'administrators' ? 'administrators' : 'nothing',
  };
}

/** Makes the check whether no client waits for the answer to a call any more. */
export function goneOf({ request }: Pick<Call, 'request'>, { server }: Pick<App, 'server'>): () => boolean {
  const { isGone } = server;
  return isGone === undefined ? () => request.signal.aborted : () => isGone(request);
}
