#!/usr/bin/env node
import { runProgram } from './cli/run.ts';
import { processIo } from './cli/io.ts';
import { COMMANDS } from './commands/all.ts';
import { VERSION } from './version.ts';

// The code is set and the process left to end by itself, so that what was written to pipes arrives.
process.exitCode = await runProgram({ commands: COMMANDS, version: VERSION }, process.argv.slice(2), processIo);
