import { UsageError } from '../cli/usage-error.ts';

/** Options that a node can't start, or reload, with. The message has a line for every problem. */
export class ConfigError extends UsageError {
  readonly problems: readonly string[];
  /** The configuration file, when it alone is to blame. */
  readonly file: string | null;

  constructor(problems: readonly string[], file: string | null = null) {
    super(problems.join('\n'));
    this.problems = problems;
    this.file = file;
  }
}
