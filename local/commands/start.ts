import { defineCommand } from '../cli/command.ts';
import { flag, integer, oneOf, powerOfTwo, size, text } from '../cli/options.ts';

const CHUNK_SIZE = { min: 131_072, max: 1_073_741_824, multipleOf: 4_096 };
/** Less would hold no page of the largest size, and more than a terabyte is a slip of the hand. */
const BACKEND_CACHE = { min: 65_536, max: 1_099_511_627_776, multipleOf: 1_024 };
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'off'] as const;

export const startOptions = {
  db: text('DIR', './data', 'Data directory, created when absent'),
  index: text('DIR', null, 'Folder of the index', 'index in the data directory'),
  'mem-db': flag('Keep everything in memory; nothing outlives the process'),
  'node-ip': text('ADDRESS', '127.0.0.1', 'Address to listen on'),
  'node-port': integer('PORT', 0, 65_535, 2113, 'Port to listen on; 0 takes any free one'),
  'chunk-size': size('BYTES', CHUNK_SIZE, '256 MiB', 'Data bytes of a chunk file, also with KiB or MiB behind the number; for a new directory only, an existing one keeps its own'),
  'disable-scavenge-merging': flag('Leave small chunk files as they are after a scavenge'),
  'scavenge-history-max-age': integer('DAYS', 1, 24_855, 30, 'Days for which the events of a scavenge are kept'),
  'scavenge-backend-page-size': powerOfTwo('KIB', 1, 64, 16, 'Page of the scavenge database in KiB; an existing one keeps its own'),
  'scavenge-backend-cache-size': size('BYTES', BACKEND_CACHE, '64 MiB', 'Cache of the scavenge database while a scavenge runs, also with KiB or MiB behind the number'),
  'scavenge-hash-users-cache-capacity': integer('COUNT', 0, 100_000_000, 100_000, 'Stream hashes that a scavenge remembers in memory'),
  'unsafe-ignore-hard-delete': flag('Let a scavenge remove the marks of hard-deleted streams too: their names can then be used again, from event 0 on'),
  'log-level': oneOf('LEVEL', LOG_LEVELS, 'info', 'Least important lines to log'),
};

export const startCommand = defineCommand({
  name: 'start',
  summary: 'Run a node',
  details: 'Listens for HTTP requests until it is interrupted (Ctrl+C, SIGTERM). The log goes to stderr, one JSON object a line where that is no terminal.',
  options: startOptions,
  deprecated: { 'http-ip': 'node-ip', 'http-port': 'node-port' },
  examples: [
    { line: 'skua start', does: 'Run on http://127.0.0.1:2113 with data in ./data' },
    { line: 'skua start --db /var/lib/skua --node-port 2114', does: 'Another directory and port' },
    { line: 'skua start --mem-db --node-port 0', does: 'Try something out; leaves nothing behind' },
  ],
  // Loaded only here, so that `--help` and wrong usage answer at once.
  run: async (input, io) => (await import('./run-start.ts')).runStart(input, io),
});
