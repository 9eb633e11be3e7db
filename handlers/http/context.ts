import type { Scavenger } from '../../core/scavenge/api.ts';
import type { Security } from '../../core/security/api.ts';
import type { Principal } from '../../core/security/principal.ts';
import type { EventStore } from '../../core/streams/api.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Ids } from '../../core/ports/ids.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { AutoScavengeContext, BackupContext, Webhooks } from './presence.ts';
import type { NodeControl } from './node-control.ts';

export interface AppOptions {
  /** Largest request body in bytes; a larger one is 413. */
  readonly bodyBytesMax: number;
  /** Every reply to a read tells caches to ask again (http-api.md 2.7). */
  readonly disableHttpCaching: boolean;
  /** Shown at `/`. */
  readonly version: string;
  /** Routes of sections 2.2 of options-and-security.md that can be switched off: they are 404 then. */
  readonly disableAdminUi: boolean;
  readonly disableStatsOnHttp: boolean;
  readonly disableGossipOnHttp: boolean;
  readonly disableAtomPub: boolean;
  /** The anonymous caller may see `/stats` and `/metrics`. */
  readonly allowAnonymousEndpointAccess: boolean;
  /** The anonymous caller may see `/gossip`. */
  readonly allowAnonymousGossip: boolean;
  /** A proxy in front of the node names the caller in `ES-TrustedAuth` (section 6.4). */
  readonly enableTrustedAuth: boolean;
  readonly logFailedAuthenticationAttempts: boolean;
  readonly logHttpRequests: boolean;
}

export const DEFAULT_OPTIONS: AppOptions = {
  bodyBytesMax: 30_000_000, disableHttpCaching: false, version: '0.1.0', disableAdminUi: false, disableStatsOnHttp: false, disableGossipOnHttp: false,
  disableAtomPub: false, allowAnonymousEndpointAccess: false, allowAnonymousGossip: true, enableTrustedAuth: false, logFailedAuthenticationAttempts: false,
  logHttpRequests: false,
};

/** All that the handlers need of the world. */
export interface AppContext extends AutoScavengeContext, BackupContext {
  readonly store: EventStore;
  readonly scavenger: Scavenger;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  readonly options?: Partial<AppOptions>;
  /** Users and access lists; null while security is off: then everybody is the system user and may do everything. */
  readonly security: Security | null;
  /** The node around the handlers; null where there is none (tests of streams, functions): its routes are absent then. */
  readonly node: NodeControl | null;
  /** Null, or absent, where connectors are switched off: their paths are unknown then. */
  readonly webhooks?: Webhooks | null;
  /** Names and values of the headers as they arrived, in turn; without it those of the web platform, which joins what has one name. */
  readonly rawHeadersOf?: (request: Request) => readonly string[];
  /** Where a request comes from; null where that is not known. */
  readonly addressOf?: (request: Request) => string | null;
  /**
   * What stands for the connection of a request, the same object for all its requests; null where that is not known.
   * Credentials that come again over one connection are then recognised without being verified anew.
   */
  readonly connectionOf?: (request: Request) => object | null;
  /** The caller whom the connection itself proves (a node's certificate); null for none. Credentials in the request win. */
  readonly peerOf?: (request: Request) => Principal | null;
  /**
   * Reads a body of at most `bytesMax` bytes, or throws `body_too_large`. A server adapter gives a direct way to its
   * own buffers here; without it the web platform's `Request` is read.
   */
  readonly readBody?: (request: Request, bytesMax: number) => Promise<Uint8Array>;
}

/** The context with every option filled in. */
export interface App extends AppContext {
  readonly options: AppOptions;
  /** The last login over each connection. */
  readonly logins: WeakMap<object, Login>;
}

/** Credentials as they were sent, and whom they named. */
export interface Login {
  readonly header: string;
  readonly principal: Principal;
}

/** One request on its way through the router. `params` and `query` are the router's, percent-encoding untouched in `params`. */
export interface Call {
  readonly request: Request;
  readonly method: string;
  readonly url: string;
  /** Scheme and host of the URL. */
  readonly origin: string;
  /** As sent, without the query. */
  readonly path: string;
  params: Record<string, string>;
  query: Record<string, string | string[] | undefined>;
  /** What `Access-Control-Allow-Methods` says for this path; empty when no route knows the path. */
  methods: string;
  principal: Principal;
  /** Beginning of every generated link; filled in by url.ts when first needed. */
  base: string | null;
}

export type Handler = (call: Call, app: App) => Response | Promise<Response>;

/** A query parameter's first value. */
export function queryOf(call: Call, name: string): string | undefined {
  const value = call.query[name];
  return Array.isArray(value) ? value[0] : value;
}
