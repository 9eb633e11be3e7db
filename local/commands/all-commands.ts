import { coloursFor } from '../../infra/runtime/io.ts';
import { defineCommand } from '../cli/command.ts';
import type { Command } from '../cli/command.ts';
import { startHelp } from '../config/show-options.ts';
import { VERSION } from '../../infra/runtime/version.ts';
import {
  backupCopyCommand,
  backupCreateCommand,
  backupDrillCommand,
  backupKeyCommand,
  backupListCommand,
  backupPruneCommand,
  backupVerifyCommand,
  restoreCommand,
  verifyCommand,
} from './backup-command.ts';
import { clusterResetCommand, clusterStatusCommand, clusterTryCommand } from './cluster-command.ts';
import {
  autoScavengeConfigureCommand,
  autoScavengePauseCommand,
  autoScavengeResumeCommand,
  autoScavengeStatusCommand,
  explainCommand,
  proveErasedCommand,
  redactCommand,
  scavengeOfflineCommand,
  scavengeStartCommand,
  scavengeStatusCommand,
  scavengeStopCommand,
  scavengeWatchCommand,
} from './scavenge-command.ts';
import { indexesSetCommand, indexesStatusCommand } from './indexes-command.ts';
import { readCommand, streamsCommand } from './read-command.ts';
import { proofExportCommand, proofVerifyCommand } from './proof.ts';
import {
  subscriptionsDeleteCommand,
  subscriptionsInfoCommand,
  subscriptionsListCommand,
  subscriptionsReplayCommand,
  subscriptionsResetCommand,
  subscriptionsRestartCommand,
} from './subscriptions-command.ts';
import { demoCommand, functionsServeCommand, inspectCommand, webhookSendCommand, webhookTestCommand } from './tools.ts';
import { userListCommand, userResetPasswordCommand } from './user-command.ts';

/** The options of a node come from a file and the environment, too: they are in `local/config`. */
const startCommand: Command = defineCommand({
  name: 'start',
  summary: 'Run a node',
  details:
    'Serves HTTP requests until it is interrupted (Ctrl+C, SIGTERM). Logs go to stderr, one JSON object per line unless that is a terminal. Options also come from the environment (SERVER_NODE_PORT for --node-port) and from a YAML file (NodePort); the command line wins.',
  options: {},
  examples: [
    { line: 'skua start --disable-tls', does: 'Run on http://127.0.0.1:2113 with data in ./data, without TLS' },
    {
      line: 'skua start --dev --db /var/lib/skua --node-port 2114',
      does: 'With a generated certificate; another directory and port',
    },
    { line: 'skua start --config node.yaml', does: 'With options from a file, such as CertificateFile' },
    {
      line: 'skua start --config node.yaml --what-if',
      does: 'Show the options that would be in force and their sources',
    },
    { line: 'skua start --insecure --mem-db --node-port 0', does: 'For a trial; leaves nothing behind' },
  ],
  ownHelp: (colours) => startHelp(startCommand, colours),
  // What is needed to run is loaded only here, so that `--help` of the program and of other commands answers at once.
  run: async ({ positionals }, io) => {
    const [{ readStartWords }, { readConfigFile }] = await Promise.all([
      import('../config/load-config.ts'),
      import('../config/yaml.ts'),
    ]);
    const help = () => startHelp(startCommand, coloursFor(io.stdout, io.env));
    const outcome = readStartWords(
      { argv: positionals, env: io.env, readFile: readConfigFile },
      { version: VERSION, help },
    );
    if (outcome.kind === 'run') return (await import('./run-start.ts')).runStart(outcome.config, io);
    io.stdout.write(outcome.text);
    return outcome.exitCode;
  },
});

/** Every command, in the order of `--help`. */
export const COMMANDS: readonly Command[] = [
  startCommand,
  readCommand,
  streamsCommand,
  scavengeStartCommand,
  scavengeStopCommand,
  scavengeStatusCommand,
  scavengeWatchCommand,
  scavengeOfflineCommand,
  autoScavengeStatusCommand,
  autoScavengeConfigureCommand,
  autoScavengePauseCommand,
  autoScavengeResumeCommand,
  backupCopyCommand,
  backupCreateCommand,
  backupListCommand,
  backupVerifyCommand,
  backupDrillCommand,
  backupPruneCommand,
  backupKeyCommand,
  restoreCommand,
  clusterTryCommand,
  clusterStatusCommand,
  clusterResetCommand,
  explainCommand,
  redactCommand,
  indexesStatusCommand,
  indexesSetCommand,
  proveErasedCommand,
  proofExportCommand,
  proofVerifyCommand,
  verifyCommand,
  inspectCommand,
  subscriptionsListCommand,
  subscriptionsInfoCommand,
  subscriptionsReplayCommand,
  subscriptionsResetCommand,
  subscriptionsRestartCommand,
  subscriptionsDeleteCommand,
  userListCommand,
  userResetPasswordCommand,
  webhookTestCommand,
  webhookSendCommand,
  functionsServeCommand,
  demoCommand,
];
