import type { Clock } from '../../ports/clock.ts';
import type { Storage } from '../../ports/storage.ts';
import { checkErasure } from '../../scavenge/erasure/erasure.ts';
import type { ErasureFinding, ErasureProgress, ErasureSummary } from '../../scavenge/api.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import { timestampText } from '../../base/time.ts';
import type { Repository } from '../repository/api.ts';
import { blobPart, filesOfBackup, type Part, PartStorage } from '../repository/part-storage.ts';
import { blobsOf, madeMsOf } from '../format/snapshot-manifest.ts';
import type { Manifest } from '../format/snapshot-manifest.ts';
import { runningBackups } from '../notes/notes.ts';
import type { RunningBackup } from '../notes/notes.ts';

interface CheckErasureInRepositoryOptions {
  readonly repository: Repository;
  readonly clock: Clock;
  /** Ids of events. */
  readonly events?: readonly string[];
  /** A stream, all of whose events should be gone. */
  readonly stream?: string;
  readonly hasher?: StreamHasher;
  /** Findings after this many in one backup are only counted. Default 1000. */
  readonly findingsMax?: number;
}

/** A place of a repository in which traces were found. */
export type TraceLocation =
  /** `isNewest`: of its node, whose newest backup is never pruned. */
  | {
      readonly kind: 'backup';
      readonly backupId: string;
      readonly nodeId: string;
      readonly isNewest: boolean;
      /** ISO 8601. */
      readonly madeAt: string;
      readonly traces: number;
    }
  /** Blobs that no backup needs. */
  | { readonly kind: 'unused'; readonly traces: number };

export interface RepositoryErasureSummary extends ErasureSummary {
  /** Nodes of which there are backups. */
  readonly nodes: number;
  /** Newest first, what no backup needs last. */
  readonly places: readonly TraceLocation[];
  /** Backups that are being made, or were killed: while there are any, nothing that no backup needs can be removed. */
  readonly backupsRunning: readonly RunningBackup[];
}

/**
 * Looks for what remains of events or of a stream in a repository: in the files of every backup and what was shipped
 * after it, and in blobs that no backup needs any more. Content that several backups share is searched once, in the
 * newest; where it is found, `file` names the backup and its file. Throws as `checkErasure` does, and
 * `repository_damaged`: what can't be read can't be judged.
 */
export async function* checkErasureInRepository(
  options: CheckErasureInRepositoryOptions,
): AsyncGenerator<ErasureFinding | ErasureProgress, RepositoryErasureSummary> {
  const { repository } = options;
  const searched = new Set<string>();
  const unknownEvents = [...new Set(options.events?.map((id) => id.toLowerCase()))];
  const sum: Sum = { files: 0, bytes: 0, traces: 0, residues: 0, redacted: 0, unknownEvents };
  const bytesTotal = await totalBytes(repository);
  const places: TraceLocation[] = [];
  const nodes = new Set<string>();
  for (const { id, nodeId } of await repository.backups()) {
    const isNewest = !nodes.has(nodeId);
    nodes.add(nodeId);
    const before = sum.traces;
    const manifest = await repository.manifest(id);
    const files = filesOfBackup(repository, manifest, await repository.shipped(id));
    for (const [path, blob] of singleBlobs(manifest)) if (searched.has(blob)) files.delete(path);
    for (const { blob } of blobsOf(manifest)) searched.add(blob);
    const madeAt = timestampText(madeMsOf(manifest), 0);
    yield* searchIn(options, new PartStorage(files), `backup ${id} of ${madeAt}`, sum, bytesTotal);
    if (sum.traces > before)
      places.push({ kind: 'backup', backupId: id, nodeId, isNewest, madeAt, traces: sum.traces - before });
  }
  const unused = new Map<string, readonly Part[]>();
  for await (const { id } of repository.blobs())
    if (!searched.has(id))
      unused.set(`unused-${id}`, [blobPart(repository, 0, { blob: id, sizeBytes: await repository.blobSize(id) })]);
  if (unused.size > 0) {
    // A search wants a directory that looks like one.
    unused.set('writer.chk', []);
    const before = sum.traces;
    yield* searchIn(options, new PartStorage(unused), 'blobs that no backup needs', sum, bytesTotal);
    if (sum.traces > before) places.push({ kind: 'unused', traces: sum.traces - before });
  }
  return {
    ...sum,
    nodes: nodes.size,
    places,
    backupsRunning: await runningBackups({ repository, clock: options.clock }),
  };
}

/** Files that are one blob: the tail is put together of several, and is searched in every backup. */
function singleBlobs({ chunks, index, scavengeDb, proofs = [], redactions }: Manifest): [string, string][] {
  return [
    ...chunks,
    ...(index?.files ?? []),
    ...(scavengeDb === null ? [] : [scavengeDb]),
    ...proofs,
    ...(redactions === undefined ? [] : [redactions]),
  ].map(({ path, blob }) => [path, blob]);
}

type Sum = { -readonly [K in keyof ErasureSummary]: ErasureSummary[K] };

async function* searchIn(
  { events, stream, hasher, findingsMax }: CheckErasureInRepositoryOptions,
  storage: Storage,
  where: string,
  sum: Sum,
  bytesTotal: number,
): AsyncGenerator<ErasureFinding | ErasureProgress, void> {
  const before = sum.bytes;
  const search = checkErasure({
    storage,
    ...(events && { events }),
    ...(stream !== undefined && { stream }),
    ...(hasher && { hasher }),
    ...(findingsMax !== undefined && { findingsMax }),
  });
  for (let step = await search.next(); ; step = await search.next()) {
    if (step.done === true) {
      for (const name of ['files', 'bytes', 'traces', 'residues', 'redacted'] as const) sum[name] += step.value[name];
      const unknown = new Set(step.value.unknownEvents);
      sum.unknownEvents = sum.unknownEvents.filter((id) => unknown.has(id));
      return;
    }
    const said = step.value;
    if (said.kind === 'progress') {
      const bytesDone = before + said.bytesDone;
      yield { kind: 'progress', bytesDone, bytesTotal: Math.max(bytesTotal, bytesDone) };
    } else yield { ...said, file: `${said.file} in ${where}` };
  }
}

/** About: frames may be compressed, and tails are searched once for each backup. */
async function totalBytes(repository: Repository): Promise<number> {
  let total = 0;
  for await (const { storedBytes } of repository.blobs()) total += storedBytes;
  return total;
}
