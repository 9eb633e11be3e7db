import { coloursFor } from './colour.ts';
import type { Command } from './command.ts';
import { describeFailure } from './failure.ts';
import { commandHelp, programHelp } from './help.ts';
import type { ExitCode, Io } from './io.ts';
import { EXIT, line } from './io.ts';
import { parseArguments } from './parse.ts';
import { didYouMean, UsageError } from './usage-error.ts';

export interface Program {
  readonly commands: readonly Command[];
  readonly version: string;
}

/** Runs a command line and gives the exit code. Errors end up on stderr, each with a code and what to do. */
export async function runProgram(program: Program, words: readonly string[], io: Io): Promise<ExitCode> {
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
    line(io.stderr, `${red('error')} ${failure.code}: ${failure.message}`);
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
  if (name === undefined || name === '--help' || name === '-h' || (name === 'help' && (rest.length === 0 || rest[0]!.startsWith('-')))) {
    io.stdout.write(programHelp(program.commands, program.version, colours));
    return EXIT.ok;
  }
  const command = commandNamed(program, name === 'help' ? rest[0]! : name);
  const parsed = name === 'help' ? { kind: 'help' as const } : parseArguments(command, rest);
  if (parsed.kind === 'help') {
    io.stdout.write(commandHelp(command, colours));
    return EXIT.ok;
  }
  return command.run(parsed.input, io);
}

function commandNamed(program: Program, name: string): Command {
  const command = program.commands.find((each) => each.name === name);
  if (command !== undefined) return command;
  const kind = name.startsWith('-') ? 'The first word must be a command, not' : 'Unknown command';
  throw new UsageError(`${kind} '${name}'.${didYouMean(name, program.commands.map((each) => each.name).concat('help'), 'skua ')}`);
}

function helpHint(program: Program, words: readonly string[]): string {
  const command = program.commands.find((each) => each.name === words[0]);
  return command === undefined ? 'skua --help' : `skua ${command.name} --help`;
}
