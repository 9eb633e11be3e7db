import { createNodeLog } from '../log/logger.ts';
import type { NodeLog } from '../log/logger.ts';
import type { LogEntry } from '../embedded/api.ts';

const NOWHERE = { stderr: { write: () => {} }, env: {} };

/**
 * The log of a node, whose lines go to `onLog` alone. As of any node, the last ones are in memory, for clients that ask
 * over HTTP.
 */
export function testLog(level: NodeLog['level'], onLog: ((line: LogEntry) => void) | undefined): NodeLog {
  const log = createNodeLog(NOWHERE, { level });
  if (onLog === undefined) return log;
  const telling =
    (at: LogEntry['level']) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      log[at](message, fields);
      if (RANKS[at] < RANKS[log.level]) return;
      try {
        onLog({ level: at, message, fields });
      } catch {
        // A line is no reason for the node to fail.
      }
    };
  return {
    get level() {
      return log.level;
    },
    setLevel: (to) => log.setLevel(to),
    recent: (query) => log.recent(query),
    stats: (values) => log.stats(values),
    close: () => log.close(),
    debug: telling('debug'),
    info: telling('info'),
    warn: telling('warn'),
    error: telling('error'),
  };
}

const RANKS: Readonly<Record<NodeLog['level'], number>> = { debug: 0, info: 1, warn: 2, error: 3, off: 4 };
