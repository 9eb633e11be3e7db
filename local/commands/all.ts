import type { Command } from '../cli/command.ts';
import { demoCommand } from './demo.ts';
import { explainCommand } from './explain.ts';
import { proveErasedCommand } from './prove-erased.ts';
import { scavengeOfflineCommand, scavengeStartCommand, scavengeStatusCommand, scavengeStopCommand, scavengeWatchCommand } from './scavenge.ts';
import { startCommand } from './start.ts';
import { verifyCommand } from './verify.ts';
import { webhookSendCommand, webhookTestCommand } from './webhook.ts';

/** Every command, in the order of `--help`. */
export const COMMANDS: readonly Command[] = [
  startCommand, scavengeStartCommand, scavengeStopCommand, scavengeStatusCommand, scavengeWatchCommand, scavengeOfflineCommand,
  explainCommand, proveErasedCommand, verifyCommand, webhookTestCommand, webhookSendCommand, demoCommand,
];
