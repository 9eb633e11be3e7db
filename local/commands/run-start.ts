import { randomUUID } from 'node:crypto';
import * as path from 'node:path';
import { isSkuaError } from '../../core/base/errors.ts';
import type { Log } from '../../core/ports/log.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { coloursFor, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { sizeText } from '../../infra/runtime/command-options.ts';
import { detach } from '../cluster/detach.ts';
import { isMember } from '../config/cluster-settings.ts';
import type { Config } from '../config/config.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import { logLevelOf } from '../../infra/runtime/config/options.ts';
import { refuseFile } from '../cli/data-directory.ts';
import { createNodeLog, logFolder } from '../log/logger.ts';
import type { LogSettings, NodeLog } from '../log/logger.ts';
import { startNode } from '../node/node.ts';
import { openingState } from '../store/open-directory.ts';
import type { RunningNode } from '../node/node.ts';
import { Progress } from '../cli/progress.ts';
import { listenForHangUp, signalHandler } from '../cli/signals.ts';
import { VERSION } from '../../infra/runtime/version.ts';
import { background } from '../../core/base/background.ts';
import { DEFAULT_PASSWORD } from '../../core/security/security.ts';

/**
 * Runs a node until a signal, until a user with the right to do so ends it, or until it can't go on; then the process
 * ends.
 */
export async function runStart(config: Config, io: Io): Promise<ExitCode> {
  const code = await run(config, io);
  // What still waits for a moment or for an answer from elsewhere, such as a tick that was left to its fate, would keep
  // the process for half a minute: nothing is open any more.
  io.process.exit(code);
  return code;
}

async function run(config: Config, io: Io): Promise<ExitCode> {
  const { values } = config;
  const log = createNodeLog(io, logSettings(values));
  // Without a listener SIGHUP ends the process, however early it comes.
  const hangUp = listenForHangUp(io.process, log);
  const ending = listenForSignals(io, log);
  const progress = new Progress({
    io,
    onLine: (message, { bytesDone, bytesTotal }) => log.info(message, { bytesDone, bytesTotal }),
  });
  try {
    const member = isMember(values, config.given);
    const directory = values.MemDb || (values.Storage !== null && !member) ? null : path.resolve(values.Db);
    tellOptions(config, log);
    if (directory !== null) await refuseFile(directory, config.spelling('Db'));
    if (values.Detach && directory !== null) await detach(directory, log);
    log.info('starting', {
      version: VERSION,
      directory: directory ?? values.Storage,
      ...(member && { storage: values.Storage }),
      pid: process.pid,
    });
    const node = await startNode({
      config,
      log,
      env: io.env,
      onProgress: (state) => progress.update(openingState(state)),
    });
    hangUp.attach(() => node.reload('SIGHUP'));
    progress.clear();
    if (config.given('ChunkSize') && values.ChunkSize !== node.chunkSizeBytes) {
      log.warn(
        `${config.spelling('ChunkSize')} was ignored: ${member ? 'the log' : 'the directory'} already has chunks of ${sizeText(node.chunkSizeBytes)}`,
      );
    }
    log.info('listening', { url: node.url });
    banner(io, node, values, directory);
    return await runUntilEnd(node, ending, log);
  } finally {
    progress.clear();
    ending.release();
    hangUp.release();
    await log.close();
  }
}

function logSettings(values: Values): LogSettings {
  const {
    Log,
    LogLevel,
    LogConsoleFormat,
    DisableLogFile,
    LogFileSize,
    LogFileInterval,
    LogFileRetentionCount,
    NodeIp,
    NodePort,
  } = values;
  const files =
    Log === null || DisableLogFile
      ? null
      : {
          folder: logFolder(Log, NodeIp, NodePort),
          sizeBytes: LogFileSize,
          interval: LogFileInterval,
          retention: LogFileRetentionCount,
        };
  return { level: logLevelOf(LogLevel), format: LogConsoleFormat, files };
}

/**
 * Logs the options in force and where each comes from: those that are given in full, the others only at level debug.
 */
function tellOptions(config: Config, log: NodeLog): void {
  for (const warning of config.warnings) log.warn(warning);
  const told = (isGiven: boolean) =>
    Object.fromEntries(
      config.views
        .filter(({ configurationSource }) => (configurationSource !== '<DEFAULT>') === isGiven)
        .map(({ name, value, configurationSource }) => [name, isGiven ? `${value} (${configurationSource})` : value]),
    );
  log.info('options given', { options: told(true), ...(config.file !== null && { file: config.file }) });
  log.debug('options at their default', { options: told(false) });
  if (config.values.UnsafeIgnoreHardDelete) {
    log.warn(
      `${config.spelling('UnsafeIgnoreHardDelete')}: scavenges will remove the tombstones of hard-deleted streams, so that their names can be used again`,
    );
  }
  if (config.values.Insecure) log.warn(`${config.spelling('Insecure')}: anyone who can reach the port can do anything`);
}

interface Ending {
  /** Resolves with the first signal, once `isRunning` was set. */
  readonly signal: Promise<string>;
  /** Until then a signal ends the process at once: what a start does can be interrupted at any point. */
  isRunning: boolean;
  release(): void;
}

function listenForSignals(io: Io, log: NodeLog): Ending {
  const { promise, resolve } = Promise.withResolvers<string>();
  const exit = (code: ExitCode) => {
    background(log.close().finally(() => io.process.exit(code)));
  };
  const exitNow = (signal: string) => {
    log.warn('interrupted', { signal });
    exit(EXIT.interrupted);
  };
  const ending: Ending = { signal: promise, isRunning: false, release: () => {} };
  const handle = signalHandler({
    nowMs: () => systemClock.monotonicMs(),
    onFirst: (signal) => {
      if (!ending.isRunning) exitNow(signal);
      if (io.stdout.isTTY === true) line(io.stdout, '\nStopping; press Ctrl+C again to stop immediately.');
      resolve(signal);
    },
    onSecond: exitNow,
  });
  const fatal = (error: unknown) => {
    log.error('the process failed', { error });
    exit(EXIT.failed);
  };
  const listeners = [
    ['SIGINT', handle],
    ['SIGTERM', handle],
    ['uncaughtException', fatal],
  ] as const;
  for (const [name, listener] of listeners) io.process.on(name, listener);
  ending.release = () => {
    for (const [name, listener] of listeners) io.process.off(name, listener);
  };
  return ending;
}

async function runUntilEnd(node: RunningNode, ending: Ending, log: Log): Promise<ExitCode> {
  ending.isRunning = true;
  const ended = await Promise.race([ending.signal, node.shutdownAsked, node.failed]);
  if (isSkuaError(ended)) log.error('the node cannot continue', { error: ended });
  else log.info('stopping', { signal: ended });
  await node.stop();
  log.info('stopped');
  return isSkuaError(ended) ? EXIT.failed : EXIT.ok;
}

function banner(
  io: Io,
  node: RunningNode,
  { Insecure, Storage, DisableAdminUi, DefaultAdminPassword }: Values,
  directory: string | null,
): void {
  const { bold, dim } = coloursFor(io.stdout, io.env);
  // Another stream than those of the README, whose numbers begin at 0.
  const event = `[{"eventId":"${randomUUID()}","eventType":"letter-posted","data":{"to":"Oslo"}}]`;
  // The words of a first start; a password that was changed is known to its owner, whom curl asks for it.
  const isDefault = DefaultAdminPassword === DEFAULT_PASSWORD;
  const curl = `curl ${Insecure ? '' : isDefault ? `-u admin:${DEFAULT_PASSWORD} ` : '-u admin '}${node.fingerprint === null ? '' : '-k '}`;
  const lines = [
    `Skua ${VERSION} is listening on ${bold(node.url)}`,
    ...(DisableAdminUi ? [] : [`Web page: ${bold(`${node.url}/ui`)}`]),
    placeText(directory, Storage, sizeText(node.chunkSizeBytes)),
    ...(node.fingerprint === null ? [] : [`Development certificate, SHA-256: ${node.fingerprint}`]),
    '',
    dim(
      `# append an event, read it back, and follow new events${Insecure || !isDefault ? '' : ` (${DEFAULT_PASSWORD} is the default password)`}`,
    ),
    `${curl}-i ${node.url}/streams/letters -H 'Content-Type: application/vnd.eventstore.events+json' -d '${event}'`,
    `${curl}-i ${node.url}/streams/letters/head`,
    `${curl}-N ${node.url}/streams/letters -H 'Accept: text/event-stream'`,
    '',
  ];
  line(io.stdout, lines.join('\n'));
}

function placeText(directory: string | null, storage: string | null, chunkSize: string): string {
  if (directory === null)
    return storage === null
      ? 'Data is kept in memory and lost when the node stops.'
      : `Data in: ${storage} (chunks of ${chunkSize})`;
  return storage === null
    ? `Data directory: ${directory} (chunks of ${chunkSize})`
    : `Member of the cluster over ${storage}, replica in ${directory} (chunks of ${chunkSize})`;
}
