import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { parseChunkFileNames, takeInventory } from '../../log/format/chunk-format.ts';
import { readHeader } from '../../log/format/chunk-files.ts';
import type { JobContext } from '../../ports/jobs.ts';
import { isChunkName, OWN_FOLDERS } from '../../ports/own-names.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { streamHasher, type StreamHasher } from '../../base/stream-hash.ts';
import { type FileFacts, fileFacts, FileWindow } from '../format/scavenge-files.ts';
import { type ErasureFinding, ErasureJudge } from './judge.ts';
import { idNeedles, PatternSearch, streamNeedles } from '../needles/needles.ts';

/** A running node replaces files; a directory that changes more often than this while it is read can't be judged. */
const ROUNDS_MAX = 100;
const FINDINGS_MAX_DEFAULT = 1_000;

/** A file that is searched, wherever it is. */
export interface SearchedFile {
  /** By which a file that was seen is known again. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Null for one that is gone. */
  open(): Promise<StorageFile | null>;
  facts(file: StorageFile): Promise<FileFacts>;
}

interface SearchOptions extends Omit<CheckErasureOptions, 'storage'> {
  /** All files that there are now. Those that were not there before are searched, until there are none. */
  list(): Promise<readonly SearchedFile[]>;
}

export interface CheckErasureOptions {
  readonly storage: Storage;
  /** Ids of events. */
  readonly events?: readonly string[];
  /** A stream, all of whose events should be gone. */
  readonly stream?: string;
  readonly hasher?: StreamHasher;
  /** Findings after this many are only counted. Default 1000. */
  readonly findingsMax?: number;
}

export type { ErasureFinding } from './judge.ts';

export interface ErasureProgress {
  readonly kind: 'progress';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

export interface ErasureSummary {
  readonly files: number;
  readonly bytes: number;
  readonly traces: number;
  readonly residues: number;
  /** Among the residues: events that a scavenge has emptied, the last ones of deleted streams. */
  readonly redacted: number;
  /** Ids of which there is neither trace nor residue: a scavenge has removed all of the event, or it never was here. */
  readonly unknownEvents: readonly string[];
}

/**
 * Looks for what remains of events or of a stream in all files of a data directory, whatever they are: chunks in force,
 * superseded and unfinished ones, what lies behind the end of the log, index, scavenge database. It only reads and
 * takes no lock, so that a node may run meanwhile, in another process: closing a file in which SQLite holds locks for
 * the same process would let go of them. Files that appear while it works are looked at, too.
 *
 * Yields findings and progress, and returns the counts. Throws `bad_option` when there is nothing to look for or an id
 * is none, `file_not_found` when there is no database, and what the storage throws.
 */
export async function* checkErasure({
  storage,
  ...asked
}: CheckErasureOptions): AsyncGenerator<ErasureFinding | ErasureProgress, ErasureSummary> {
  refuseNothing(asked);
  const names = await storage.list('');
  if (!names.some((name) => name === 'writer.chk' || isChunkName(name)))
    throw new SkuaError(
      'file_not_found',
      'There is no database in this directory: it has neither writer.chk nor chunk files.',
    );
  return yield* searchErased({ ...asked, list: () => filesOf(storage) });
}

function refuseNothing({ events = [], stream }: Omit<CheckErasureOptions, 'storage'>): void {
  if (events.length === 0 && (stream === undefined || stream === ''))
    throw new SkuaError('bad_option', 'Nothing to search for: name a stream or event ids.');
}

/** The same for files that are found by other means. */
export async function* searchErased(
  options: SearchOptions,
): AsyncGenerator<ErasureFinding | ErasureProgress, ErasureSummary> {
  const { events = [], stream } = options;
  refuseNothing(options);
  const needles = [
    ...idNeedles(events),
    ...(stream === undefined ? [] : streamNeedles(stream, options.hasher ?? streamHasher)),
  ];
  const search = new PatternSearch(needles.map((needle) => needle.bytes));
  const overlap = Math.max(...needles.map((needle) => needle.bytes.length)) - 1;
  const judge = new ErasureJudge(needles, stream ?? '', options.findingsMax ?? FINDINGS_MAX_DEFAULT);
  const seen = new Set<string>();
  let bytesTotal = 0;
  let bytesDone = 0;
  for (let round = 0; ; round++) {
    const fresh = (await options.list()).filter(({ path }) => !seen.has(path));
    if (fresh.length === 0) break;
    if (round === ROUNDS_MAX)
      throw new SkuaError(
        'too_busy',
        'New files kept appearing in the directory during the search. Try again when no scavenge runs.',
      );
    for (const { sizeBytes } of fresh) bytesTotal += sizeBytes;
    for (const one of fresh) {
      seen.add(one.path);
      const file = await one.open();
      if (file === null) continue;
      let isBegun = false;
      try {
        const window = new FileWindow(file, overlap);
        judge.begin(await one.facts(file));
        isBegun = true;
        while (await window.next()) {
          await judge.block(window, search);
          bytesDone += window.length;
          yield* judge.take();
          yield { kind: 'progress', bytesDone, bytesTotal: Math.max(bytesTotal, bytesDone) };
        }
        judge.end();
      } catch (error) {
        if (!isGone(error)) throw error;
        // It was replaced while it was read, and no longer holds what has not been read of it.
        if (isBegun) judge.end();
      } finally {
        await file.close();
      }
      yield* judge.take();
    }
  }
  judge.finish();
  yield* judge.take();
  return {
    files: seen.size,
    bytes: bytesDone,
    traces: judge.traces,
    residues: judge.residues,
    redacted: judge.redacted,
    unknownEvents: judge.unknownEvents,
  };
}

async function filesOf(storage: Storage): Promise<readonly SearchedFile[]> {
  const superseded = await supersededIn(storage);
  const files: SearchedFile[] = [];
  for (const path of await listAll(storage))
    files.push({
      path,
      sizeBytes: (await storage.size(path)) ?? 0,
      open: () => openIfThere(storage, path),
      facts: (file) => fileFacts(storage, path, file, superseded),
    });
  return files;
}

async function listAll(storage: Storage): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of OWN_FOLDERS)
    for (const name of await storage.list(folder)) paths.push(folder === '' ? name : `${folder}/${name}`);
  return paths;
}

/** A file that went since it was listed is no longer there to hold anything; what took its place is listed next. */
async function openIfThere(storage: Storage, path: string): Promise<StorageFile | null> {
  try {
    return await storage.open(path, 'read');
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return isSkuaError(error, 'file_not_found');
}

/** Chunk files that a newer version or a merged chunk has replaced. */
async function supersededIn(storage: Storage): Promise<ReadonlySet<string>> {
  const files = parseChunkFileNames(await storage.list(''));
  const inventory = await takeInventory(files, -1, (file) =>
    readHeader(storage, file.name).then(
      (header) => header.endNumber,
      () => file.number,
    ),
  );
  return new Set(inventory.old.map((file) => file.name));
}

/** The search of `checkErasure` off the request loop. */
export const PROVE_ERASED_JOB = 'scavenge.prove-erased';

export interface CheckErasureArgs {
  /** Ids. */
  readonly events: readonly string[];
  /** Null for none. */
  readonly stream: string | null;
}

export interface ErasureReport extends ErasureSummary {
  /** The first thousand. */
  readonly findings: readonly ErasureFinding[];
}

/** Rejects as `checkErasure` throws. */
export async function checkErasureJob(
  { events, stream }: CheckErasureArgs,
  context: JobContext,
): Promise<ErasureReport> {
  const search = checkErasure({
    storage: context.storage,
    hasher: context.hasher,
    events,
    ...(stream !== null && { stream }),
  });
  const findings: ErasureFinding[] = [];
  try {
    for (;;) {
      const next = await search.next();
      if (next.done === true) return { ...next.value, findings };
      if (next.value.kind === 'progress')
        context.progress({ done: next.value.bytesDone, total: next.value.bytesTotal, unit: 'bytes' });
      else findings.push(next.value);
      await context.checkpoint();
    }
  } finally {
    // Where the job is ended the file that is being searched is closed.
    await search.return(undefined as never);
  }
}
