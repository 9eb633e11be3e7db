import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import { statusOf } from './watch.ts';
import type { CallWatch } from './watch.ts';

interface CallLogParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly addressOf: (request: Request) => string | null;
}

/** Longest path in a line. */
const PATH_LENGTH_MAX = 2_048;

/** Logs a line for every call when it has ended (option LogHttpRequests). Credentials and messages are never logged. */
export function logCalls({ log, clock, addressOf }: CallLogParts): CallWatch {
  return (call) => {
    const startMs = clock.monotonicMs();
    const address = addressOf(call.request);
    return (ending) =>
      log.info('gRPC call', {
        path: call.path.slice(0, PATH_LENGTH_MAX),
        status: statusOf(ending),
        received: call.received,
        sent: call.sent,
        elapsedMs: Math.round((clock.monotonicMs() - startMs) * 1_000) / 1_000,
        address,
      });
  };
}
