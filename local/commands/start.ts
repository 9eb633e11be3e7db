import { defineCommand } from '../cli/command.ts';
import { flag, integer, oneOf, size, text } from '../cli/options.ts';

const CHUNK_SIZE = { min: 131_072, max: 1_073_741_824, multipleOf: 4_096 };
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'off'] as const;

export const startOptions = {
  db: text('DIR', './data', 'Data directory, created when absent'),
  index: text('DIR', null, 'Folder of the index', 'index in the data directory'),
  'mem-db': flag('Keep everything in memory; nothing outlives the process'),
  'node-ip': text('ADDRESS', '127.0.0.1', 'Address to listen on'),
  'node-port': integer('PORT', 0, 65_535, 2113, 'Port to listen on; 0 takes any free one'),
  'chunk-size': size('BYTES', CHUNK_SIZE, '256 MiB', 'Data bytes of a chunk file, also with KiB or MiB behind the number; for a new directory only, an existing one keeps its own'),
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
