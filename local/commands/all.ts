import type { Command } from '../cli/command.ts';
import { demoCommand } from './demo.ts';
import { startCommand } from './start.ts';
import { verifyCommand } from './verify.ts';

/** Every command, in the order of `--help`. */
export const COMMANDS: readonly Command[] = [startCommand, verifyCommand, demoCommand];
