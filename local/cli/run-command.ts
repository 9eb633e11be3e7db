import type { Command, Input } from './command.ts';
import { describeFailure, didYouMean, UsageError } from '../../infra/runtime/failure.ts';
import { commandHelp, groupHelp, programHelp } from './help.ts';
import { coloursFor, EXIT, line, safeIo, shown } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { parseValue } from '../../infra/runtime/command-options.ts';
import type { OptionTable } from '../../infra/runtime/command-options.ts';

interface Program {
  readonly commands: readonly Command[];
  readonly version: string;
}

/** Runs a command line and gives the exit code. Errors end up on stderr, each with a code and what to do. */
export async function runProgram(program: Program, words: readonly string[], given: Io): Promise<ExitCode> {
  const io = safeIo(given);
  try {
    return await dispatch(program, words, io);
  } catch (error) {
    const { red } = coloursFor(io.stderr, io.env);
    if (error instanceof UsageError) {
      line(io.stderr, `${red('error')}: ${error.message}`);
      line(io.stderr, `See: ${helpHint(program, words)}`);
      return EXIT.usage;
    }
    const failure = describeFailure(error);
    line(
      io.stderr,
      `${red('error')} ${failure.code}: ${failure.code === 'internal' ? failure.message : shown(failure.message)}`,
    );
    return failure.exitCode;
  }
}

async function dispatch(program: Program, words: readonly string[], io: Io): Promise<ExitCode> {
  const colours = coloursFor(io.stdout, io.env);
  const [name, ...rest] = words;
  if (name === '--version' || name === '-v' || name === 'version') {
    line(io.stdout, program.version);
    return EXIT.ok;
  }
  if (
    name === undefined ||
    name === '--help' ||
    name === '-h' ||
    (name === 'help' && (rest.length === 0 || rest[0]!.startsWith('-')))
  ) {
    io.stdout.write(programHelp(program.commands, program.version, colours));
    return EXIT.ok;
  }
  const isHelp = name === 'help';
  const asked = isHelp ? rest : words;
  const command = commandOf(program, asked);
  if (command === null) {
    // Help that was asked for is an answer; a first word alone is half a command, and scripts must not take it for
    // done.
    const isAsked = isHelp || asked.length > 1;
    const output = isAsked ? io.stdout : io.stderr;
    if (!isAsked) line(output, `${coloursFor(output, io.env).red('error')}: skua ${name} needs a command after it.\n`);
    output.write(groupHelp(asked[0]!, groupOf(program, asked[0]!), coloursFor(output, io.env)));
    return isAsked ? EXIT.ok : EXIT.usage;
  }
  const behind = asked.slice(command.name.split(' ').length);
  if (command.ownHelp !== undefined) {
    if (!isHelp) return command.run({ options: {}, given: new Set(), positionals: behind }, io);
    io.stdout.write(command.ownHelp(colours));
    return EXIT.ok;
  }
  const parsed = isHelp ? { kind: 'help' as const } : parseArguments(command, behind);
  if (parsed.kind === 'help') {
    io.stdout.write(commandHelp(command, colours));
    return EXIT.ok;
  }
  return command.run(parsed.input, io);
}

/** The commands of two words whose first word this is. */
function groupOf(program: Program, word: string): readonly Command[] {
  return program.commands.filter((each) => each.name.startsWith(`${word} `));
}

function named(program: Program, words: readonly string[]): Command | undefined {
  return program.commands.find((each) => each.name === words.slice(0, each.name.split(' ').length).join(' '));
}

/** The command that the words begin with; null for a first word alone that several commands share. */
function commandOf(program: Program, words: readonly string[]): Command | null {
  const command = named(program, words);
  if (command !== undefined) return command;
  const [first = '', second] = words;
  const group = groupOf(program, first);
  if (group.length > 0) {
    if (second === undefined || second === '--help' || second === '-h') return null;
    const suggestion = didYouMean(
      second,
      group.map((each) => each.name.slice(first.length + 1)),
      `skua ${first} `,
    );
    throw new UsageError(
      second.startsWith('-')
        ? `skua ${first} needs a command before ${second}.`
        : `Unknown command '${first} ${second}'.${suggestion}`,
    );
  }
  const kind = first.startsWith('-') ? 'The first word must be a command, not' : 'Unknown command';
  throw new UsageError(
    `${kind} '${first}'.${didYouMean(first, program.commands.map((each) => each.name.split(' ')[0]!).concat('help'), 'skua ')}`,
  );
}

function helpHint(program: Program, words: readonly string[]): string {
  const command = named(program, words);
  if (command !== undefined) return `skua ${command.name} --help`;
  return groupOf(program, words[0] ?? '').length > 0 ? `skua ${words[0]} --help` : 'skua --help';
}

/** A command line understood, or a call for help. */
type Parsed<O extends OptionTable> = { readonly kind: 'help' } | { readonly kind: 'run'; readonly input: Input<O> };

/**
 * Reads the words behind a command's name: `--name value`, `--name=value`, switches, and positional arguments. `--`
 * ends the options. A repeated option counts with its last value, unless it takes several. `--help` wins over anything
 * else that is wrong.
 */
export function parseArguments<O extends OptionTable>(command: Command<O>, words: readonly string[]): Parsed<O> {
  const end = words.indexOf('--');
  const optional = end < 0 ? words : words.slice(0, end);
  if (optional.includes('--help') || optional.includes('-h')) return { kind: 'help' };
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(command.options)) values[name] = option.fallback;
  const given = new Set<string>();
  const positionals: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (at === end) continue;
    if ((end >= 0 && at > end) || !word.startsWith('-') || word === '-') {
      positionals.push(word);
      continue;
    }
    const { name, inline } = splitOption(command, word);
    const option = command.options[name]!;
    let value = inline;
    if (value === null && option.placeholder === null) value = 'true';
    if (value === null) {
      const next = words[at + 1];
      if (next === undefined || next.startsWith('--'))
        throw new UsageError(`--${name} needs a value: --${name} ${option.placeholder}.`);
      value = next;
      at++;
    }
    const parsed = parseValue(name, option, value);
    values[name] = option.isList === true ? [...(values[name] as unknown[]), ...(parsed as unknown[])] : parsed;
    given.add(name);
  }
  checkPositionals(command, positionals);
  return { kind: 'run', input: { options: values as Input<O>['options'], given, positionals } };
}

function splitOption<O extends OptionTable>(
  command: Command<O>,
  word: string,
): { name: string; inline: string | null } {
  const equals = word.indexOf('=');
  const written = (equals < 0 ? word : word.slice(0, equals)).replace(/^--?/, '');
  const inline = equals < 0 ? null : word.slice(equals + 1);
  if (word.startsWith('--') && Object.hasOwn(command.options, written)) return { name: written, inline };
  const known = Object.keys(command.options).concat('help');
  throw new UsageError(
    `Unknown option ${word.slice(0, equals < 0 ? undefined : equals)}.${didYouMean(written, known, '--')}`,
  );
}

function checkPositionals<O extends OptionTable>(command: Command<O>, positionals: readonly string[]): void {
  const wanted = command.positionals ?? [];
  const missing = wanted[positionals.length];
  if (missing !== undefined && missing.isOptional !== true)
    throw new UsageError(`${missing.name} is missing: ${missing.help}.`);
  if (positionals.length > wanted.length && wanted.at(-1)?.isRepeated !== true)
    throw new UsageError(`Unexpected argument '${positionals[wanted.length]}'.`);
}
