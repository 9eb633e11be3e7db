import { randomUUID } from 'node:crypto';
import * as path from 'node:path';
import { isSkuaError } from '../../core/errors.ts';
import type { Log } from '../../core/ports/log.ts';
import type { StartProgress } from '../../core/store.ts';
import { systemClock } from '../../infra/clock.ts';
import { coloursFor } from '../cli/colour.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { sizeText } from '../cli/options.ts';
import type { Config } from '../config/config.ts';
import type { Values } from '../config/options.ts';
import { logLevelOf } from '../config/table/logging.ts';
import { refuseFile } from '../directory.ts';
import { createLog } from '../logger.ts';
import { startNode } from '../node.ts';
import type { RunningNode } from '../node.ts';
import { Progress } from '../progress.ts';
import { signalHandler } from '../signals.ts';
import { VERSION } from '../version.ts';

const PHASES: Readonly<Record<StartProgress['phase'], string>> = {
  'recovering-log': 'recovering the log',
  'rebuilding-index': 'rebuilding the index',
  'verifying-index': 'verifying the index',
};

/** Runs a node until a signal, or until it can't go on. */
export async function runStart(config: Config, io: Io): Promise<ExitCode> {
  const { values } = config;
  const log = createLog(io, logLevelOf(values.LogLevel));
  for (const warning of config.warnings) log.warn(warning);
  const directory = values.MemDb ? null : path.resolve(values.Db);
  if (directory !== null) await refuseFile(directory, config.spelling('Db'));
  const ending = listenForSignals(io, log);
  const progress = new Progress({
    output: io.stderr, env: io.env, clock: systemClock,
    onLine: (message, { bytesDone, bytesTotal }) => log.info(message, { bytesDone, bytesTotal }),
  });
  try {
    if (values.UnsafeIgnoreHardDelete) {
      log.warn('UnsafeIgnoreHardDelete: a scavenge will remove the marks of hard-deleted streams, and their names can then be used again');
    }
    log.info('starting', { version: VERSION, directory, pid: process.pid });
    const node = await startNode({
      db: directory, index: values.Index, ip: values.NodeIp, port: values.NodePort, chunkSizeBytes: config.given('ChunkSize') ? values.ChunkSize : null, log,
      scavenge: scavengeSettings(values),
      onProgress: ({ phase, bytesDone, bytesTotal }) => progress.update({ label: PHASES[phase], bytesDone, bytesTotal }),
    });
    progress.clear();
    if (config.given('ChunkSize') && values.ChunkSize !== node.chunkSizeBytes) {
      log.warn(`${config.spelling('ChunkSize')} was not used: the directory already has chunks of ${sizeText(node.chunkSizeBytes)}`);
    }
    log.info('listening', { url: node.url });
    banner(io, node, directory);
    return await runUntilEnd(node, ending, log);
  } finally {
    progress.clear();
    ending.release();
  }
}

/** The options as the store takes them: the page size is given in KiB. */
function scavengeSettings(values: Values) {
  return {
    pageSizeBytes: values.ScavengeBackendPageSize * 1_024,
    cacheBytes: values.ScavengeBackendCacheSize,
    hashUsersCacheEntries: values.ScavengeHashUsersCacheCapacity,
    historyMaxAgeDays: values.ScavengeHistoryMaxAge,
    disableMerging: values.DisableScavengeMerging,
    unsafeIgnoreHardDelete: values.UnsafeIgnoreHardDelete,
  };
}

interface Ending {
  /** Resolves with the first signal, once `isRunning` was set. */
  readonly signal: Promise<string>;
  /** Until then a signal ends the process at once: what a start does can be interrupted at any point. */
  isRunning: boolean;
  release(): void;
}

function listenForSignals(io: Io, log: Log): Ending {
  const { promise, resolve } = Promise.withResolvers<string>();
  const exitNow = (signal: string) => {
    log.warn('interrupted', { signal });
    process.exit(EXIT.interrupted);
  };
  const ending: Ending = { signal: promise, isRunning: false, release: () => {} };
  const handle = signalHandler({
    nowMs: () => systemClock.monotonicMs(),
    onFirst: (signal) => {
      if (!ending.isRunning) exitNow(signal);
      if (io.stdout.isTTY === true) line(io.stdout, '\nStopping; press Ctrl+C again to stop at once.');
      resolve(signal);
    },
    onSecond: exitNow,
  });
  const fatal = (error: unknown) => {
    log.error('the process failed', { error });
    process.exit(EXIT.failed);
  };
  const listeners = [['SIGINT', handle], ['SIGTERM', handle], ['uncaughtException', fatal]] as const;
  for (const [name, listener] of listeners) process.on(name, listener);
  ending.release = () => { for (const [name, listener] of listeners) process.off(name, listener); };
  return ending;
}

async function runUntilEnd(node: RunningNode, ending: Ending, log: Log): Promise<ExitCode> {
  ending.isRunning = true;
  const ended = await Promise.race([ending.signal, node.failed]);
  if (isSkuaError(ended)) log.error('the node can not go on', { error: ended });
  else log.info('stopping', { signal: ended });
  await node.stop();
  log.info('stopped');
  return isSkuaError(ended) ? EXIT.failed : EXIT.ok;
}

function banner(io: Io, node: RunningNode, directory: string | null): void {
  const { bold, dim } = coloursFor(io.stdout, io.env);
  const event = `[{"eventId":"${randomUUID()}","eventType":"parcel-weighed","data":{"grams":750}}]`;
  const lines = [
    `Skua ${VERSION} is listening on ${bold(node.url)}`,
    directory === null ? 'Data is kept in memory and gone when the node stops.' : `Data directory: ${directory} (chunks of ${sizeText(node.chunkSizeBytes)})`,
    '',
    dim('# append an event, read it back, and follow what comes'),
    `curl -i ${node.url}/streams/parcels -H 'Content-Type: application/vnd.eventstore.events+json' -d '${event}'`,
    `curl -i ${node.url}/streams/parcels/head`,
    `curl -N ${node.url}/streams/parcels -H 'Accept: text/event-stream'`,
    '',
  ];
  line(io.stdout, lines.join('\n'));
}
