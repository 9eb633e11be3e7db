import { boolean, integer, oneOf, path, size } from '../kinds.ts';
import { flag, option, optional } from '../option.ts';

/** Levels of both generations of the reference database, the least important first; `Default` is Information. */
const LEVELS = ['Default', 'Verbose', 'Trace', 'Debug', 'Information', 'Warning', 'Error', 'Fatal', 'Critical', 'None'] as const;
export type LevelName = (typeof LEVELS)[number];

/** Options of section 2.8. */
export const logging = {
  Log: optional(path('DIR'), 'Directory for log files', { fallbackText: 'no log files' }),
  LogLevel: option(oneOf('LEVEL', LEVELS, { info: 'Information', warn: 'Warning', off: 'None' }), 'Default', 'Least important lines to log; also debug, info, warn, error, off', { isReloadable: true, fallbackText: 'Default, which is Information' }),
  LogConsoleFormat: optional(oneOf('FORMAT', ['Plain', 'Json']), 'Lines on stderr: for people, or JSON', { fallbackText: 'Plain on a terminal, else Json' }),
  LogFileSize: option(size({ min: 4_096, max: 1_099_511_627_776 }), 1_073_741_824, 'A log file that has reached this size is continued in another', { fallbackText: '1 GiB' }),
  LogFileInterval: option(oneOf('INTERVAL', ['Minute', 'Hour', 'Day', 'Month', 'Year', 'Infinite']), 'Day', 'Time after which another log file is begun'),
  LogFileRetentionCount: option(integer('COUNT', 1, 100_000), 31, 'Log files of each family that are kept'),
  DisableLogFile: flag(boolean, 'Write no log files, even where Log is given'),
};

const LOWER: Readonly<Record<LevelName, 'debug' | 'info' | 'warn' | 'error' | 'off'>> = {
  Default: 'info', Verbose: 'debug', Trace: 'debug', Debug: 'debug', Information: 'info', Warning: 'warn', Error: 'error', Fatal: 'error', Critical: 'error', None: 'off',
};

/** The level of the logger that a value of LogLevel asks for. */
export function logLevelOf(name: LevelName): 'debug' | 'info' | 'warn' | 'error' | 'off' {
  return LOWER[name];
}
