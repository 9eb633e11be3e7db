import { UsageError } from '../failure.ts';
import type { Kind } from './kinds.ts';

/**
 * One option. Parsing, `--help`, the documentation page, the dump at start and `/info/options` are all made from this.
 */
export interface OptionSpec<T> {
  readonly kind: Kind<T>;
  readonly fallback: T;
  /** How help and documentation write the default. */
  readonly fallbackText: string;
  /** A sentence without its full stop. */
  readonly description: string;
  /** The value is never shown. */
  readonly isSensitive: boolean;
  /** Why the option should no longer be used; null for one that may. */
  readonly deprecated: string | null;
  /** Names that it had before, which still work and warn. */
  readonly aliases: readonly string[];
  /** May only be given in the environment, where other users of the machine don't see it. */
  readonly isEnvironmentOnly: boolean;
  /** A reload puts a new value into force. */
  readonly isReloadable: boolean;
}

/** Options by their name in YAML; a colon stands for nesting (`AutoScavenge:Enabled`). */
type OptionTable = Readonly<Record<string, OptionSpec<unknown>>>;

/** Options that stand together in help, dump and documentation. */
export interface OptionGroup {
  readonly title: string;
  readonly options: OptionTable;
}

export type ValuesOf<O extends OptionTable> = { readonly [K in keyof O]: O[K] extends OptionSpec<infer T> ? T : never };

type Traits = Partial<Omit<OptionSpec<unknown>, 'kind' | 'fallback' | 'description'>>;

/** An option with a default. */
export function option<T>(
  kind: Kind<T>,
  fallback: NoInfer<T>,
  description: string,
  traits: Traits = {},
): OptionSpec<T> {
  return {
    kind,
    fallback,
    description,
    fallbackText: kind.show(fallback),
    isSensitive: false,
    deprecated: null,
    aliases: [],
    isEnvironmentOnly: false,
    isReloadable: false,
    ...traits,
  };
}

/** An option that is null unless given. */
export function optional<T>(kind: Kind<T>, description: string, traits: Traits = {}): OptionSpec<T | null> {
  const orNull: Kind<T | null> = { ...kind, show: (value) => (value === null ? '' : kind.show(value)) };
  return option(orNull, null, description, traits);
}

/** A switch that is off unless given. */
export function flag(kind: Kind<boolean>, description: string, traits: Traits = {}): OptionSpec<boolean> {
  return option(kind, false, description, traits);
}

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
