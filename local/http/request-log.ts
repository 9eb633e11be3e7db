import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Fetch } from './server.ts';

interface RequestLogParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly addressOf?: (request: Request) => string | null;
}

/** Longest URL in a line. */
const URL_LENGTH_MAX = 2_048;

/**
 * Logs a line for every request that goes through (option LogHttpRequests). Credentials and bodies are never logged.
 */
export function logRequests(fetch: Fetch, { log, clock, addressOf }: RequestLogParts): Fetch {
  return async (request) => {
    const startMs = clock.monotonicMs();
    const { method, url } = request;
    let status: number | null = null;
    try {
      const response = await fetch(request);
      status = response.status;
      return response;
    } finally {
      const path = url.slice(url.indexOf('/', url.indexOf('://') + 3), URL_LENGTH_MAX);
      log.info('HTTP request', {
        method,
        path,
        status,
        elapsedMs: Math.round((clock.monotonicMs() - startMs) * 1_000) / 1_000,
        address: addressOf?.(request) ?? null,
      });
    }
  };
}
