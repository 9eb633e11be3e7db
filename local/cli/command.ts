import type { Colours } from './colour.ts';
import type { ExitCode, Io } from './io.ts';
import type { OptionTable, OptionValues } from './options.ts';

/** An argument without a name. Optional ones come last, and only the last one may be given several times. */
export interface Positional {
  readonly name: string;
  readonly help: string;
  readonly isOptional?: boolean;
  readonly isRepeated?: boolean;
}

/** One command: what it is called with, how `--help` describes it, and what it does. */
export interface Command<O extends OptionTable = OptionTable> {
  /** One or two words; commands whose first word is the same belong together. */
  readonly name: string;
  readonly summary: string;
  /** Further lines of `--help`. */
  readonly details?: string;
  readonly positionals?: readonly Positional[];
  readonly options: O;
  readonly examples: readonly { readonly line: string; readonly does: string }[];
  /** A command that understands its words itself gets all of them as positionals, and has a help of its own. */
  readonly ownHelp?: (colours: Colours) => string;
  readonly run: (input: Input<O>, io: Io) => Promise<ExitCode>;
}

export interface Input<O extends OptionTable> {
  readonly options: OptionValues<O>;
  /** Options named on the command line. */
  readonly given: ReadonlySet<string>;
  readonly positionals: readonly string[];
}

/** Keeps the types of a command's own options while it stands in a list with others. */
export function defineCommand<const O extends OptionTable>(command: Command<O>): Command {
  return command as unknown as Command;
}
