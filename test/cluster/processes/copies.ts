import { createHash } from 'node:crypto';
import { type ChunkTable, scanLog } from '../../../core/log/chunk-table/chunk-table.ts';
import { PREPARE, PrepareFields, RecordFrame, parsePrepare, streamOf } from '../../../core/log/format/records.ts';
import { verifyDirectory } from '../../../core/integrity/integrity.ts';
import { VerifyRun } from '../../../core/integrity/verify/verify-run.ts';
import { verifyChunks } from '../../../core/integrity/verify/verify-chunks.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { SqliteScavengeStates } from '../../../infra/sqlite/scavenge-states.ts';

/** The records of a stopped data directory. */
interface Copy {
  readonly folder: string;
  readonly end: number;
  /** By position: a digest of the record's bytes, and its stream; empty where it is none of a stream. */
  readonly records: Map<number, { readonly digest: string; readonly stream: string }>;
  isScavengedAt(position: number): boolean;
}

export interface CopiesReport {
  readonly problems: string[];
  readonly ends: number[];
  readonly records: number[];
  /** Records that scavenges have removed from one copy and not from another. */
  readonly removed: number;
}

/**
 * Compares data directories record by record: each is a prefix of the longest one, with the same bytes at the same
 * positions. A record may be missing only where that directory's file was scavenged, and only of a stream from which a
 * scavenge may take something.
 */
export async function compareCopies(
  folders: readonly string[],
  mayRemove: (stream: string) => boolean,
): Promise<CopiesReport> {
  const problems: string[] = [];
  const copies: Copy[] = [];
  for (const folder of folders) copies.push(await readCopy(folder, problems));
  const all = new Map<number, { digest: string; stream: string; folder: string }>();
  let removed = 0;
  const tell = (problem: string): void => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  for (const { folder, records } of copies) {
    for (const [position, record] of records) {
      const other = all.get(position);
      if (other === undefined) all.set(position, { ...record, folder });
      else if (other.digest !== record.digest)
        tell(`the record at ${position} differs in ${other.folder} and ${folder}`);
    }
  }
  for (const [position, { stream, folder: other }] of all) {
    for (const copy of copies) {
      if (position >= copy.end || copy.records.has(position)) continue;
      if (!copy.isScavengedAt(position))
        tell(
          `${copy.folder} lacks the record at ${position}, of ${stream || 'no stream'}, that ${other} has, in a chunk that is not scavenged`,
        );
      else if (!mayRemove(stream))
        tell(
          `${copy.folder} lacks the record at ${position} of ${stream || 'no stream'}, from which nothing may be removed`,
        );
      else removed++;
    }
  }
  return { problems, ends: copies.map(({ end }) => end), records: copies.map(({ records }) => records.size), removed };
}

const PROBLEMS_MAX = 20;

async function readCopy(folder: string, problems: string[]): Promise<Copy> {
  const storage = new FilesystemStorage({ root: folder });
  // The index too: every event is found in it.
  const whole = verifyDirectory({
    storage,
    digests: nodeDigests,
    clock: systemClock,
    scavengeStates: new SqliteScavengeStates({ indexRoot: storage.indexRoot }),
  });
  for await (const found of whole)
    if (found.kind === 'finding' && found.severity === 'error') problems.push(`${folder}: ${found.message}`);
  const run = new VerifyRun({ storage, digests: nodeDigests, clock: systemClock });
  const checking = verifyChunks(run, await storage.list(''));
  let step = await checking.next();
  while (step.done !== true) step = await checking.next();
  const table: ChunkTable | null = step.value;
  const records: Copy['records'] = new Map();
  if (table !== null) {
    const fields = new PrepareFields();
    await scanLog(table, 0, (frame: RecordFrame) => {
      const bytes = frame.bytes.subarray(frame.at, frame.at + frame.length);
      let stream = '';
      if (frame.type === PREPARE) {
        parsePrepare(frame, fields);
        stream = streamOf(frame, fields);
      }
      records.set(frame.position, { digest: createHash('md5').update(bytes).digest('base64'), stream });
    });
  }
  const scavenged =
    table === null
      ? []
      : [...table.all()]
          .filter(({ isScavenged }) => isScavenged)
          .map(({ startPosition, endPosition }) => [startPosition, endPosition] as const);
  const end = table?.end ?? 0;
  await run.close();
  return {
    folder,
    end,
    records,
    isScavengedAt: (position) => scavenged.some(([from, to]) => position >= from && position < to),
  };
}
