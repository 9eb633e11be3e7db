import { runProgram } from '../../local/cli/run-command.ts';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { FakeIo } from './support.ts';

/** `skua ...` in this process, to its end; what it told without lines of progress. */
export function run(...words: string[]) {
  return runBy(new FakeIo(), words);
}

/** The same, by a terminal or an environment of the test's. */
export async function runBy(io: FakeIo, words: readonly string[]) {
  const code = await runProgram({ commands: COMMANDS, version: '1' }, words, io);
  return { code, out: io.out, err: io.complaints };
}
