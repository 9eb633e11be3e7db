import type { Command } from '../cli/command.ts';
import { autoScavengeConfigureCommand, autoScavengePauseCommand, autoScavengeResumeCommand, autoScavengeStatusCommand } from './auto-scavenge.ts';
import { backupCopyCommand, backupCreateCommand, backupDrillCommand, backupKeyCommand, backupListCommand, backupPruneCommand, backupVerifyCommand } from './backup.ts';
import { demoCommand } from './demo.ts';
import { explainCommand } from './explain.ts';
import { functionsServeCommand } from './functions.ts';
import { licenseInspectCommand, licenseIssueCommand, licenseIssuerCommand } from './license.ts';
import { proveErasedCommand } from './prove-erased.ts';
import { restoreCommand } from './restore.ts';
import { scavengeOfflineCommand, scavengeStartCommand, scavengeStatusCommand, scavengeStopCommand, scavengeWatchCommand } from './scavenge.ts';
import { startCommand } from './start.ts';
import { verifyCommand } from './verify.ts';
import { webhookSendCommand, webhookTestCommand } from './webhook.ts';

/** Every command, in the order of `--help`. */
export const COMMANDS: readonly Command[] = [
  startCommand, scavengeStartCommand, scavengeStopCommand, scavengeStatusCommand, scavengeWatchCommand, scavengeOfflineCommand,
  autoScavengeStatusCommand, autoScavengeConfigureCommand, autoScavengePauseCommand, autoScavengeResumeCommand,
  backupCopyCommand, backupCreateCommand, backupListCommand, backupVerifyCommand, backupDrillCommand, backupPruneCommand, backupKeyCommand, restoreCommand,
  explainCommand, proveErasedCommand, verifyCommand, webhookTestCommand, webhookSendCommand,
  licenseIssuerCommand, licenseIssueCommand, licenseInspectCommand, functionsServeCommand, demoCommand,
];
