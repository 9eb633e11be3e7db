import { gather } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import { toHex } from '../../base/hex.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { parseIndexMap } from '../../index/format/index-map.ts';
import { decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import { PROOF_HEAD_BYTES } from '../../integrity/format/chain-layout.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Repository } from '../repository/api.ts';
import { blobsOf, checkClock } from '../format/snapshot-manifest.ts';
import type {
  Manifest,
  ManifestChunk,
  ManifestFile,
  ManifestProof,
  ManifestSegment,
  ManifestTail,
} from '../format/snapshot-manifest.ts';
import { BackupIntent, clearSuspects, suspectBlobs } from '../notes/notes.ts';
import type { BackupLanes } from '../repository/repository.ts';
import type { BackupSource, SnapshotFile } from '../../store/api.ts';
import { endsAlike, PreviousBackups } from './previous-backups.ts';
import { PartStore } from './store-part.ts';
import type { CreateProgress } from './store-part.ts';

/** Files that are stored at once: while some wait for the disk, others are read and digested. */
const PARALLEL_DEFAULT = 4;
/** What is missing at the end is stored again so often. */
const ROUNDS_MAX = 3;
/** What has these kinds never changes under its name. */
const IMMUTABLE: ReadonlySet<SnapshotFile['kind']> = new Set(['chunk', 'index-table', 'bloom-filter']);

/** Made for more than a small store has: an existence filter takes 34 MiB from its beginning on. */
const MOSTLY_ZEROS: ReadonlySet<SnapshotFile['kind']> = new Set([
  'existence-filter',
  'bloom-filter',
  'scavenge-database',
]);

export interface CreateBackupOptions {
  readonly source: BackupSource;
  readonly repository: Repository;
  readonly cause: Manifest['cause'];
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  /**
   * Manifest of the last backup that this process made of the same directory: its files need not be looked at again.
   */
  readonly known?: Manifest | null;
  /** Text of a UUID; drawn where it is left out. */
  readonly backupId?: string;
  readonly parallel?: number;
  /**
   * Jobs that reach the files of `source` and the repository; they are not used where there is a limit of bytes a
   * second.
   */
  readonly lanes?: BackupLanes;
  /** Bytes that are read a second, 0 for no limit. Content that is not there yet is read up to twice. */
  readonly throttleBytesPerSecond?: number;
  readonly onProgress?: (progress: CreateProgress) => void;
  /**
   * Told of each chunk, table and filter that the repository holds now, for the process that goes on with a backup that
   * was cut off.
   */
  readonly onFile?: (file: ManifestFile) => void;
  readonly signal?: AbortSignal;
}

export interface BackupReport {
  readonly files: number;
  /** Plain bytes of everything that the backup restores. */
  readonly sizeBytes: number;
  readonly blobsStored: number;
  /** Plain bytes of what was not there yet, and bytes of the objects that hold them. */
  readonly bytesNew: number;
  readonly bytesStored: number;
  readonly elapsedMs: number;
}

export interface CreatedBackup {
  readonly manifest: Manifest;
  readonly report: BackupReport;
}

/**
 * Backs up a snapshot. Files that an earlier backup holds are not stored again; the manifest is written last, after
 * every blob that it names was looked at once more, and withdrawn where a prune took one of them meanwhile. What was
 * stored before an interruption is found by a repeat. Rejects with `repository_busy`, `log_corrupt` for a chunk that
 * can't be walked, `aborted`, and what source and repository throw.
 */
export async function createBackup(options: CreateBackupOptions): Promise<CreatedBackup> {
  const { repository, clock, ids, signal } = options;
  checkClock(clock.nowMs());
  const startedMs = clock.monotonicMs();
  const id = options.backupId ?? guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
  const store = new PartStore(options);
  const intent = await BackupIntent.begin({ repository, clock, signal }, id);
  try {
    const manifest = await completeManifest(options, id, store, intent);
    await repository.putManifest(manifest);
    await confirm(repository, manifest, intent, signal);
    await clearSuspects(repository, store.suspects, manifest);
    const { blobsStored, bytesNew, bytesStored } = store;
    return {
      manifest,
      report: {
        files: options.source.snapshot.files.length,
        sizeBytes: sumOf([...blobsOf(manifest)]),
        blobsStored,
        bytesNew,
        bytesStored,
        elapsedMs: clock.monotonicMs() - startedMs,
      },
    };
  } finally {
    await intent.end();
  }
}

/**
 * Looks at the blobs once more where a prune may have taken this backup for dead between the last look and the
 * manifest. From now on a prune that begins reads the manifest, and one that runs is waited for. A backup that can't be
 * sure withdraws its manifest.
 */
async function confirm(
  repository: Repository,
  manifest: Manifest,
  intent: BackupIntent,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (!intent.hasLapsed()) return;
  try {
    await intent.renew();
    const missing = await repository.missingBlobs(
      [...blobsOf(manifest)].map(({ blob }) => blob),
      signal,
    );
    if (missing.length > 0)
      throw new SkuaError(
        'backup_failed',
        `This backup was suspended for half a day or longer, and a prune of ${repository.place} has removed ${missing.length} of its objects meanwhile. Repeat the backup.`,
        { place: repository.place, key: repository.blobKey(missing[0]!) },
      );
  } catch (error) {
    await repository.removeManifest(manifest.id);
    throw error;
  }
}

/** A manifest of which every blob was there when it was looked at last, after all of them had been stored. */
async function completeManifest(
  options: CreateBackupOptions,
  id: string,
  store: PartStore,
  intent: BackupIntent,
): Promise<Manifest> {
  const { repository, source, signal } = options;
  const trusted = options.known?.nodeId === source.snapshot.nodeId ? options.known : null;
  const previous = await newestOf(repository, source.snapshot.nodeId, trusted);
  // A check found them damaged, so they are stored once more, which mends earlier backups too.
  store.suspects = await suspectBlobs(repository);
  const gone = new Set(store.suspects);
  for (let round = 1, known = new PreviousBackups(trusted, previous, gone); ; round++) {
    const draft = await backUpFiles(options, id, previous, store, known, intent);
    await intent.renew();
    const missing = await repository.missingBlobs(
      [...blobsOf(draft)].map(({ blob }) => blob),
      signal,
    );
    if (missing.length === 0) return draft;
    if (round === ROUNDS_MAX)
      throw new SkuaError(
        'backup_failed',
        `${missing.length} objects that this backup stored disappeared from ${repository.place} before it was complete. Find out what removes them, then repeat the backup.`,
        { place: repository.place, key: repository.blobKey(missing[0]!) },
      );
    for (const blob of missing) gone.add(blob);
    // Everything else that was just stored is known now.
    known = new PreviousBackups(draft, previous, gone);
  }
}

/**
 * The newest backup of the node, which need not be looked for and read where no process has made one behind that of
 * this process.
 */
async function newestOf(repository: Repository, nodeId: string, trusted: Manifest | null): Promise<Manifest | null> {
  if (trusted !== null) {
    const ids = await repository.manifestsFrom(trusted);
    if (ids.length === 1 && ids[0] === trusted.id) return trusted;
  }
  return repository.newestOf(nodeId);
}

async function backUpFiles(
  options: CreateBackupOptions,
  id: string,
  previous: Manifest | null,
  store: PartStore,
  known: PreviousBackups,
  intent: BackupIntent,
): Promise<Manifest> {
  const { source, repository } = options;
  const { snapshot } = source;
  const parts: ChunkParts = { source, repository, store, known };
  const files = filesToStore(snapshot.files);
  store.expect(files.length, sumOf(files));
  const chunks: ManifestChunk[] = [];
  const others: ManifestFile[] = [];
  let tail: ManifestTail | null = null;
  const checkpointFile = files.find(({ kind }) => kind === 'existence-checkpoint');
  const checkpoint = checkpointFile === undefined ? null : await backUpFile(parts, checkpointFile);
  await inParallel(files.length, options.parallel ?? PARALLEL_DEFAULT, async (i) => {
    const file = files[i]!;
    await intent.renew();
    if (file === checkpointFile) others[i] = checkpoint!;
    else if (file.kind === 'chunk') chunks[i] = await backUpChunk(parts, file);
    else if (file.kind === 'ongoing-chunk') tail = await backUpTail(parts, file);
    else if (file.kind === 'proof') others[i] = await backUpProof(parts, file);
    else others[i] = await backUpOther(parts, file, checkpoint);
    const held = chunks[i] ?? others[i];
    if (held !== undefined && IMMUTABLE.has(file.kind)) options.onFile?.(held);
  });
  const { nodeId, chunkSizeBytes, checkpoints } = snapshot;
  const madeMs = Math.floor(snapshot.takenMs);
  const createdMs = Math.max(madeMs, (previous?.createdMs ?? 0) + 1);
  const ofKinds = (...kinds: SnapshotFile['kind'][]) => others.filter((_, i) => kinds.includes(files[i]!.kind));
  const proofs = ofKinds('proof') as ManifestProof[];
  return {
    format: 1,
    id,
    nodeId,
    createdMs,
    ...(madeMs < createdMs - 1 && { madeMs }),
    cause: options.cause,
    chunkSizeBytes,
    checkpoints,
    chunks: chunks.filter((chunk) => chunk !== undefined),
    tail,
    index: await indexOf(
      options,
      files,
      ofKinds('index-map', 'existence-checkpoint', 'existence-filter', 'index-table', 'bloom-filter'),
    ),
    scavengeDb: databaseOf(ofKinds('scavenge-database')),
    ...(proofs.length > 0 && { proofs }),
  };
}

/**
 * Checkpoint files of the log are numbers in the manifest. Without an index map, what else there is of an index is
 * worth nothing.
 */
function filesToStore(files: readonly SnapshotFile[]): SnapshotFile[] {
  const hasMap = files.some(({ kind }) => kind === 'index-map');
  return files.filter(
    ({ kind }) => kind !== 'checkpoint' && (hasMap || (kind !== 'existence-checkpoint' && kind !== 'existence-filter')),
  );
}

async function backUpOther(
  parts: ChunkParts,
  file: SnapshotFile,
  checkpoint: ManifestFile | null,
): Promise<ManifestFile> {
  const { known, store } = parts;
  let same: ManifestFile | null = null;
  if (file.kind === 'index-table' || file.kind === 'bloom-filter') same = known.table(file);
  else if (file.kind === 'existence-filter' && checkpoint !== null) same = known.existenceFilter(file, checkpoint);
  if (same === null) return await backUpFile(parts, file);
  store.fileDone(same.sizeBytes);
  return same;
}

async function backUpProof(parts: ChunkParts, file: SnapshotFile): Promise<ManifestProof> {
  const length = Math.min(PROOF_HEAD_BYTES, file.sizeBytes);
  const head = toHex(await gather(parts.source.read(file.path, 0, length), length));
  const known = parts.known.proof(file, head);
  if (known === null) return { ...(await backUpFile(parts, file)), head };
  parts.store.fileDone(known.sizeBytes);
  return known;
}

async function backUpFile({ store }: ChunkParts, { path, sizeBytes, kind }: SnapshotFile): Promise<ManifestFile> {
  const { blob } = await store.store({ path, from: 0, length: sizeBytes, mayBeZeros: MOSTLY_ZEROS.has(kind) });
  store.fileDone(0);
  return { blob, sizeBytes, path };
}

/** Null without an index map. */
async function indexOf(
  { source, digests }: CreateBackupOptions,
  files: readonly SnapshotFile[],
  stored: readonly ManifestFile[],
): Promise<Manifest['index']> {
  const map = files.find(({ kind }) => kind === 'index-map');
  if (map === undefined) return null;
  const { commitCheckpoint } = parseIndexMap(
    await gather(source.read(map.path, 0, map.sizeBytes), map.sizeBytes),
    digests,
  );
  return { commitCheckpoint, files: stored };
}

/**
 * The scavenge database, when it is whole without what SQLite keeps beside it. A scavenge makes it anew where there is
 * none.
 */
function databaseOf(files: readonly ManifestFile[]): ManifestFile | null {
  const database = files.find(({ path }) => path.endsWith('.db')) ?? null;
  return files.some((file) => file !== database && file.sizeBytes > 0) ? null : database;
}

function sumOf(files: readonly { readonly sizeBytes: number }[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/**
 * A tail in more pieces than this is stored anew as one, so that a restore does not gather it from ever more objects.
 */
export const SEGMENTS_MAX = 64;

interface ChunkParts {
  readonly source: BackupSource;
  readonly repository: Repository;
  readonly store: PartStore;
  readonly known: PreviousBackups;
}

/**
 * A completed chunk: as it is known from an earlier backup that proved it, or stored as a whole. Throws `log_corrupt`
 * for one that is not as it was written.
 */
async function backUpChunk(parts: ChunkParts, file: SnapshotFile): Promise<ManifestChunk> {
  const { path, sizeBytes } = file;
  const trusted = parts.known.trustedChunk(file);
  if (trusted !== null) return done(parts, trusted);
  const footer = decodeFooter(
    path,
    await gather(parts.source.read(path, sizeBytes - FOOTER_BYTES, FOOTER_BYTES), FOOTER_BYTES),
    sizeBytes,
  );
  const md5 = toHex(footer.md5);
  const previous = parts.known.previousChunk(file, md5);
  if (previous !== null) return done(parts, previous);
  const header = decodeHeader(path, await gather(parts.source.read(path, 0, HEADER_BYTES), HEADER_BYTES));
  const { blob, fromMs, toMs } = await parts.store.store({
    path,
    from: 0,
    length: sizeBytes,
    records: { from: HEADER_BYTES, to: HEADER_BYTES + footer.physicalBytes },
  });
  parts.store.fileDone(0);
  return {
    blob,
    sizeBytes,
    path,
    startNumber: header.startNumber,
    endNumber: header.endNumber,
    isScavenged: header.isScavenged,
    md5,
    provenBlob: blob,
    fromMs,
    toMs,
  };
}

function done(parts: ChunkParts, chunk: ManifestChunk): ManifestChunk {
  parts.store.fileDone(chunk.sizeBytes);
  return chunk;
}

/**
 * The chunk that is being written: its header, and its data as segments, of which only what an earlier backup lacks is
 * stored.
 */
async function backUpTail(parts: ChunkParts, file: SnapshotFile): Promise<ManifestTail> {
  const { source, store } = parts;
  const { path, sizeBytes } = file;
  const { chunkSizeBytes } = source.snapshot;
  const bytes = await gather(source.read(path, 0, HEADER_BYTES), HEADER_BYTES);
  const number = decodeHeader(path, bytes).startNumber;
  const header = toHex(bytes);
  const start = number * chunkSizeBytes;
  const end = start + sizeBytes - HEADER_BYTES;
  if (end !== source.snapshot.checkpoints.writer)
    throw new SkuaError(
      'backup_failed',
      `${path} was listed up to position ${end}, but the log ends at ${source.snapshot.checkpoints.writer}. Repeat the backup.`,
      { path, position: end },
    );
  const known = await knownSegments(parts, path, header, start, end);
  const segments: ManifestSegment[] = known.length >= SEGMENTS_MAX ? [] : [...known];
  const from = segments.at(-1)?.to ?? start;
  if (from < end) {
    const { blob, sizeBytes: segmentBytes } = await store.store({
      path,
      from: HEADER_BYTES + from - start,
      length: end - from,
    });
    segments.push({ blob, sizeBytes: segmentBytes, from, to: end });
  }
  store.fileDone(HEADER_BYTES + from - start);
  return { number, path, header, segments };
}

async function knownSegments(
  { known, repository, source, store }: ChunkParts,
  path: string,
  header: string,
  start: number,
  end: number,
): Promise<readonly ManifestSegment[]> {
  const found = known.tail(path, header, end);
  if (found === null) return [];
  const { tail, isTrusted } = found;
  const to = tail.segments.at(-1)?.to ?? start;
  try {
    return isTrusted || (await endsAlike(repository, source, path, HEADER_BYTES + to - start, tail, store.signal))
      ? tail.segments
      : [];
  } catch (error) {
    // What can't be read there can't be built upon.
    if (error instanceof SkuaError && error.code === 'repository_damaged') return [];
    throw error;
  }
}
