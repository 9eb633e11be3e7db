import { PREFIX } from './prefix.ts';
import { lost } from './connection-state.ts';
import { ApiError, problemOf } from './problem-text.ts';
import { askToLogin } from './page-session.ts';

/**
 * Requests to the node that the page comes from, and to no other. Failures are `ApiError`s; a session that has ended
 * asks for a login and repeats the request.
 */

/** Nothing is sent for what is empty. */
type QueryValue = string | number | boolean | null | undefined;

export interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
  /** False: a 401 is an error like others, and no login is shown. */
  readonly canLogin?: boolean;
}

const TIMEOUT_MS = 30_000;
const JSON_TYPE = 'application/json';

export function get<T>(path: string, options?: RequestOptions): Promise<T> {
  return asJson<T>('GET', path, undefined, options);
}

export function post<T = unknown>(path: string, body?: unknown, options?: RequestOptions): Promise<T> {
  return asJson<T>('POST', path, body, options);
}

export function put<T = unknown>(path: string, body?: unknown, options?: RequestOptions): Promise<T> {
  return asJson<T>('PUT', path, body, options);
}

export function del<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
  return asJson<T>('DELETE', path, undefined, options);
}

/** The body as text, of whatever type it is. */
export async function getText(path: string, options?: RequestOptions): Promise<string> {
  const response = await send('GET', path, undefined, {
    ...options,
    headers: { accept: 'text/plain, */*', ...options?.headers },
  });
  return response.text();
}

async function asJson<T>(method: string, path: string, body: unknown, options?: RequestOptions): Promise<T> {
  const response = await send(method, path, body, options);
  const text = await response.text();
  if (text === '') return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError('unreadable', 'The node answered with something other than JSON. Is there a proxy in between?', {
      status: response.status,
    });
  }
}

/** The reply, once it is a success (or 304). A body that is no string goes as JSON. */
export async function send(
  method: string,
  path: string,
  body?: unknown,
  options: RequestOptions = {},
): Promise<Response> {
  const address = addressOf(path, options.query);
  for (let hasAsked = false; ; hasAsked = true) {
    const response = await once(method, address, body, options);
    if (response.ok || response.status === 304) return response;
    const problem = await problemOf(response);
    if (response.status === 401 && options.canLogin !== false && !hasAsked && (await askToLogin())) continue;
    if (problem.isAway) lost();
    throw problem;
  }
}

/** Own paths only: what the node sends may hold whole addresses, and another host must get nothing. */
function addressOf(path: string, query: RequestOptions['query'] = {}): string {
  const url = new URL(path, location.origin);
  if (url.origin !== location.origin)
    throw new ApiError('foreign_address', `This page talks only to its own node, not to the host of ${path}.`);
  for (const [name, values] of Object.entries(query))
    for (const value of [values].flat())
      if (value != null && value !== '') url.searchParams.append(name, String(value));
  return PREFIX + url.pathname + url.search;
}

async function once(
  method: string,
  address: string,
  body: unknown,
  { signal, timeoutMs = TIMEOUT_MS, headers = {} }: RequestOptions,
): Promise<Response> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const hasBody = body !== undefined;
  try {
    return await fetch(address, {
      method,
      cache: 'no-store',
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      headers: {
        accept: JSON_TYPE,
        'x-requested-with': 'skua',
        ...(hasBody && { 'content-type': JSON_TYPE }),
        ...headers,
      },
      ...(hasBody && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  } catch {
    if (signal?.aborted === true) throw new ApiError('aborted', 'The request was cancelled.');
    // A node that is stuck, or behind a network that swallows all, refuses nothing.
    lost();
    if (timeout.aborted) throw new ApiError('timeout', `The node did not answer within ${timeoutMs / 1_000} seconds.`);
    // What changes something is not sent again by itself.
    const next = method === 'GET' ? '' : ' Try again when it does.';
    throw new ApiError('unreachable', `The node is not responding.${next}`);
  }
}
