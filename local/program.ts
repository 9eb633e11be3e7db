import { runProgram } from './cli/run-command.ts';
import { processIo } from '../infra/runtime/io.ts';
import { COMMANDS } from './commands/all-commands.ts';
import { VERSION } from '../infra/runtime/version.ts';

// A reader that closes its end of a pipe early (`skua verify … | head`) wants no more; that is no failure.
const ignoreClosedPipe = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
};
process.stdout.on('error', ignoreClosedPipe);
process.stderr.on('error', ignoreClosedPipe);

// The code is set and the process left to end by itself, so that what was written to pipes arrives.
process.exitCode = await runProgram({ commands: COMMANDS, version: VERSION }, process.argv.slice(2), processIo);
