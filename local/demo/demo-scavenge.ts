import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import { checkErasure } from '../../core/scavenge/erasure/erasure.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import type { Io } from '../../infra/runtime/io.ts';
import type { NodeClient } from '../cli/node-client.ts';
import { completionOfNode, ScavengeClient } from '../scavenge/scavenge-client.ts';
import { followDryRun, followRun } from '../scavenge/follow.ts';
import type { FollowOptions } from '../scavenge/follow.ts';
import type { StreamReport } from './play-demo.ts';

/** What the scavenge of the demo has done. */
export interface ScavengeReport {
  /** Records that could be removed; with none, or where this run has deleted nothing, no scavenge was started. */
  readonly removable: number;
  readonly result: string | null;
  /** Data in the chunk files. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  readonly seconds: number | null;
  /** The node's files are not in the directory that was named, so nothing is proved about them. */
  readonly isElsewhere: boolean;
  readonly erasure: ErasureReport | null;
}

/** The events of the hard-deleted stream, searched in the node's files before and after. */
interface ErasureReport {
  readonly stream: string;
  readonly directory: string;
  /** Where they were found. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

interface ScavengeDemoOptions {
  readonly io: Io;
  readonly signal: AbortSignal;
  /** Where the node's files may be. */
  readonly directory: string;
}

/** Counts what could go, scavenges, counts again, and looks for erased events in the files where they are at hand. */
export async function runScavengeDemo(
  node: NodeClient,
  reports: readonly StreamReport[],
  options: ScavengeDemoOptions,
): Promise<ScavengeReport> {
  const client = new ScavengeClient(node);
  const following: FollowOptions = {
    io: options.io,
    json: false,
    isShown: options.io.stderr.isTTY === true,
    signal: options.signal,
  };
  const totals = async () => {
    const { scavengeId } = await client.start(new URLSearchParams({ dryRun: 'true' }));
    return (await followDryRun(client, scavengeId, following)).value.totals;
  };
  const before = await totals();
  const directory = path.resolve(options.directory);
  const hasFiles = await stat(path.join(directory, 'writer.chk')).then(
    () => true,
    () => false,
  );
  if (before.discardable === 0 || reports.every(({ fate, wasBefore }) => fate === null || wasBefore))
    return {
      removable: before.discardable,
      result: null,
      bytesBefore: before.bytes,
      bytesAfter: before.bytes,
      seconds: null,
      isElsewhere: !hasFiles,
      erasure: null,
    };
  const deleted = reports.find((report) => report.fate === 'hard' && !report.wasBefore);
  const search = deleted === undefined || !hasFiles ? null : await searchFor(deleted.stream, directory);
  const { scavengeId } = await client.start(new URLSearchParams());
  const { result, seconds } = await followRun(client, completionOfNode(node), scavengeId, following);
  const after = await totals();
  const erasure = search === null ? null : { ...search, after: await tracesOf(search.stream, search.directory) };
  return {
    removable: before.discardable,
    result,
    bytesBefore: before.bytes,
    bytesAfter: after.bytes,
    seconds,
    isElsewhere: !hasFiles || (deleted !== undefined && search === null),
    erasure,
  };
}

/** Null when the events are not in that directory: then the node's files are elsewhere. */
async function searchFor(stream: string, directory: string): Promise<Omit<ErasureReport, 'after'> | null> {
  const before = await tracesOf(stream, directory);
  return before.length === 0 ? null : { stream, directory, before };
}

async function tracesOf(stream: string, directory: string): Promise<string[]> {
  const found: string[] = [];
  for await (const message of checkErasure({
    storage: new FilesystemStorage({ root: directory, mustExist: true }),
    stream,
  })) {
    if (message.kind === 'trace') found.push(`${message.file} at ${message.offset}`);
  }
  return found;
}
