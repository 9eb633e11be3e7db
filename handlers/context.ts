import type { Scavenger } from '../core/scavenge/api.ts';
import type { EventStore } from '../core/streams/api.ts';
import type { Clock } from '../core/ports/clock.ts';
import type { Ids } from '../core/ports/ids.ts';
import type { Log } from '../core/ports/log.ts';
import type { Meter } from '../core/ports/meter.ts';

/** Who is calling. The anonymous caller has no name. */
export interface Principal {
  readonly name: string | null;
  readonly roles: readonly string[];
}

export const ANONYMOUS: Principal = { name: null, roles: [] };

export interface AppOptions {
  /** Largest request body in bytes; a larger one is 413. */
  readonly bodyBytesMax: number;
  /** Every reply to a read tells caches to ask again (http-api.md 2.7). */
  readonly disableHttpCaching: boolean;
  /** Shown at `/`. */
  readonly version: string;
}

export const DEFAULT_OPTIONS: AppOptions = { bodyBytesMax: 30_000_000, disableHttpCaching: false, version: '0.1.0' };

/** All that the handlers need of the world. */
export interface AppContext {
  readonly store: EventStore;
  readonly scavenger: Scavenger;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  readonly options?: Partial<AppOptions>;
  /** Names the caller; without it everybody is anonymous and may do everything. */
  readonly authenticate?: (request: Request) => Principal | Promise<Principal>;
  /**
   * Reads a body of at most `bytesMax` bytes, or throws `body_too_large`. A server adapter gives a direct way to its
   * own buffers here; without it the web platform's `Request` is read.
   */
  readonly readBody?: (request: Request, bytesMax: number) => Promise<Uint8Array>;
}

/** The context with every option filled in. */
export interface App extends AppContext {
  readonly options: AppOptions;
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
  /** Beginning of every generated link; filled in by links.ts when first needed. */
  base: string | null;
}

export type Handler = (call: Call, app: App) => Response | Promise<Response>;

/** A query parameter's first value. */
export function queryOf(call: Call, name: string): string | undefined {
  const value = call.query[name];
  return Array.isArray(value) ? value[0] : value;
}
