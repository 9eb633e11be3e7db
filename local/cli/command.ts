import { UsageError } from '../../infra/runtime/failure.ts';
import type { Colours, ExitCode, Io } from '../../infra/runtime/io.ts';
import { address, isAddress, text } from '../../infra/runtime/command-options.ts';
import type { OptionTable, OptionValues } from '../../infra/runtime/command-options.ts';

/** An argument without a name. Optional ones come last, and only the last one may be given several times. */
interface Positional {
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

/** Where a node is looked for unless one is named. */
const DEFAULT_NODE = 'http://127.0.0.1:2113';

/** `--node URL` of every command that talks to a running node. */
export const nodeOption = address(
  'URL',
  `SKUA_NODE or ${DEFAULT_NODE}`,
  'Address of the node; may contain user and password, otherwise SKUA_USER and SKUA_PASSWORD are used',
);

/** `--ca FILE` of the same commands. */
export const caOption = text(
  'FILE',
  null,
  'PEM file with additional CA certificates to trust, for a node whose certificate the system does not trust',
  'SKUA_CA',
);

/** The file given, or that of the environment; null for none. */
export function caOf(given: string | null, env: Io['env']): string | null {
  return given ?? (env['SKUA_CA'] || null);
}

/** The address given, or that of the environment, or the default. */
export function nodeOf(given: string | null, { env }: Pick<Io, 'env'>): string {
  const node = given ?? (env['SKUA_NODE'] || DEFAULT_NODE);
  if (!isAddress(node)) throw new UsageError(`SKUA_NODE must be an address such as ${DEFAULT_NODE}, not '${node}'.`);
  return node;
}
