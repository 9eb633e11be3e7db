import { isSkuaError } from '../../core/base/errors.ts';
import type { ErrorCode, SkuaError } from '../../core/base/errors.ts';
import { EXIT } from './io.ts';
import type { ExitCode } from './io.ts';

/** Errors that mean: the node or the storage can't be reached. */
const UNREACHABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'directory_locked',
  'not_a_data_directory',
  'file_not_found',
  'hold_not_found',
  'repository_not_found',
  'storage_unreachable',
  'storage_throttled',
  'bucket_not_found',
  'wrong_region',
  'outcome_unknown',
]);
/** Errors that mean: it was refused, and would be again. Everything else means: it failed. */
const REFUSED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'storage_denied',
  'clock_skewed',
  'repository_key',
  'repository_busy',
  'other_node',
  'directory_not_empty',
  'backup_running',
  'scavenge_in_progress',
  'invalid_user',
  'copy_attached',
  'other_log',
  'log_diverged',
  'format_too_new',
]);

/** A failure outside of the core that a command wants to end with. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly code: string;
  readonly exitCode: ExitCode;

  constructor(code: string, message: string, exitCode: ExitCode) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly exitCode: ExitCode;
}

/** What to tell about an error, and with which code to end. */
export function describeFailure(error: unknown): Failure {
  if (error instanceof CommandError) return { code: error.code, message: error.message, exitCode: error.exitCode };
  if (isSkuaError(error)) return { code: error.code, message: error.message, exitCode: exitCodeOf(error) };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'internal', message: `This is a defect of Skua. ${message}`, exitCode: EXIT.failed };
}

/**
 * Refusals of the system that concern the directory as a whole: another owner, a read-only disk, a file in its place, a
 * file system without folders.
 */
const REFUSALS: ReadonlySet<unknown> = new Set(['ENOENT', 'EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST']);

function exitCodeOf(error: SkuaError): ExitCode {
  if (isUnreachable(error)) return EXIT.unreachable;
  return REFUSED.has(error.code) ? EXIT.refused : EXIT.failed;
}

function isUnreachable(error: SkuaError): boolean {
  return UNREACHABLE.has(error.code) || (error.code === 'io_error' && REFUSALS.has(error.data['systemCode']));
}

/** The command line itself is wrong: exit code 2. The message says what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Suggestions further away than this are noise. */
const DISTANCE_MAX = 3;

/** ` Did you mean X?` for the nearest of the known names, or nothing when none is near. */
export function didYouMean(given: string, known: readonly string[], prefix = ''): string {
  let best: string | null = null;
  let bestDistance = Math.min(DISTANCE_MAX, Math.ceil(given.length / 2)) + 1;
  for (const name of known) {
    const distance = name.startsWith(given) && given.length > 1 ? 1 : editDistance(given, name);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best === null ? '' : ` Did you mean ${prefix}${best}?`;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        cost = Math.min(cost, beforeLast[j - 2]! + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[to.length]!;
}
