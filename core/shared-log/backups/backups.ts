import { createBackup } from '../../backup/create/create.ts';
import { draftFileShape } from '../../backup/format/manifest-shape.ts';
import { madeMsOf } from '../../backup/format/snapshot-manifest.ts';
import type { Manifest, ManifestChunk, ManifestFile } from '../../backup/format/snapshot-manifest.ts';
import { pruneRepository } from '../../backup/prune/prune.ts';
import type { Repository } from '../../backup/repository/api.ts';
import type { Retention } from '../../backup/api.ts';
import type { BackupSource, SnapshotFile } from '../../store/api.ts';
import { isSkuaError } from '../../base/errors.ts';
import { OBJECT_KEY_LENGTH_MAX } from '../../ports/object-store.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { listOf, moment, record, uuid, words } from '../../base/shape.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { ObjectLogOptions, ObjectWorld } from '../api.ts';
import { newUuid } from '../format/object-keys.ts';
import { newestManifest, type ObjectManifest } from '../format/manifest.ts';
import { objectSource, type ObjectSource, type TemporaryStorage } from '../overlay/overlay.ts';
import { CONTROL_PREFIX } from '../control/control.ts';

/** With less time than this left nothing is begun. */
const BEGIN_MS_MIN = 3_000;
/** Kept for writing down how far it came. */
const END_MS = 1_500;
/**
 * A single file must fit a tick. Chunks do; an index with a larger table is left out, and built anew by whoever
 * restores the backup.
 */
const INDEX_FILE_BYTES_MAX = 1_073_741_824;
const INDEX_KINDS: ReadonlySet<SnapshotFile['kind']> = new Set(['index-map', 'index-table', 'bloom-filter']);

interface TickBackupParts {
  readonly world: ObjectWorld;
  readonly options: ObjectLogOptions;
  /** Opens the repository, which is closed again after use. */
  readonly repository: () => Promise<Repository>;
  /** Milliseconds from one backup to the next. */
  readonly everyMs: number;
  /** Null where all backups are kept. */
  readonly keep: Retention | null;
  /** 0 for no limit. */
  readonly throttleBytesPerSecond: number;
  readonly parallel: number;
  readonly newTemporaryStorage: () => Promise<TemporaryStorage>;
}

/**
 * `goes-on`: the time was up, and the next tick goes on. `elsewhere`: another tick is at it. `empty`: there is nothing
 * to back up yet.
 */
type TickBackupOutcome = 'not-due' | 'empty' | 'elsewhere' | 'goes-on' | 'made';

/**
 * The backups that ticks make of a store on object storage, one whenever the newest in the repository is old enough.
 * What a tick can't finish the next one goes on with: blobs stay in the repository, and a draft in the store says which
 * files they hold, so that these are not read again. A crash anywhere leaves blobs and a draft; a backup exists when
 * its manifest does.
 */
export class TickBackups {
  readonly #parts: TickBackupParts;
  /** Of this process, in the draft: its own claim does not keep it away. */
  readonly #owner: string;
  /** When the newest backup that is known of was taken: the repository is not asked before the next one is due. */
  #newestMs = -Infinity;

  constructor(parts: TickBackupParts) {
    this.#parts = parts;
    this.#owner = newUuid(parts.world.ids);
  }

  /**
   * Does what is due until the deadline, by the monotonic clock. Rejects with what the repository or the store throws;
   * the next call goes on.
   */
  async ship(deadlineMs: number): Promise<TickBackupOutcome> {
    const { world, repository: open } = this.#parts;
    if (!this.#isDue()) return 'not-due';
    if (deadlineMs - world.clock.monotonicMs() < BEGIN_MS_MIN) return 'goes-on';
    const manifest = await newestManifest(world.objects, world.digests);
    if (manifest === null) return 'empty';
    const repository = await open();
    try {
      // Another process may have made one.
      const newest = await repository.newestOf(manifest.storeId);
      this.#newestMs = newest === null ? -Infinity : madeMsOf(newest);
      return this.#isDue() ? await this.#claim(repository, deadlineMs) : 'not-due';
    } finally {
      await repository.close();
    }
  }

  #isDue(): boolean {
    const ageMs = this.#parts.world.clock.nowMs() - this.#newestMs;
    // A backup of tomorrow comes of a clock that has been set back.
    return ageMs >= this.#parts.everyMs || ageMs < -this.#parts.everyMs;
  }

  async #claim(repository: Repository, deadlineMs: number): Promise<TickBackupOutcome> {
    const { world } = this.#parts;
    const draft = await BackupDraft.open(world, repository.info.id, this.#owner);
    if (!(await draft.claim(deadlineMs - world.clock.monotonicMs()))) return 'elsewhere';
    try {
      const made = await this.#make(repository, draft, deadlineMs);
      if (made === null) {
        await draft.remove();
        return 'empty';
      }
      this.#newestMs = madeMsOf(made);
    } catch (error) {
      await draft.release();
      if (!isSkuaError(error, 'aborted')) throw error;
      world.log.info('a backup continues with the next tick', {
        repository: repository.place,
        filesStored: draft.count,
      });
      return 'goes-on';
    }
    await draft.remove();
    await this.#prune(repository, deadlineMs);
    return 'made';
  }

  /** Null when the log is empty. Rejects with `aborted` when the time is up. */
  async #make(repository: Repository, draft: BackupDraft, deadlineMs: number): Promise<Manifest | null> {
    const { world, options, newTemporaryStorage } = this.#parts;
    const temporary = await newTemporaryStorage();
    try {
      const source = await objectSource(world, options, temporary.storage);
      try {
        return source.snapshot.checkpoints.writer === 0
          ? null
          : await this.#create(source, repository, draft, deadlineMs);
      } finally {
        await source.release();
      }
    } finally {
      await temporary.remove();
    }
  }

  async #create(
    source: ObjectSource,
    repository: Repository,
    draft: BackupDraft,
    deadlineMs: number,
  ): Promise<Manifest> {
    const {
      world: { clock, ids, digests, log },
      parallel,
      throttleBytesPerSecond,
    } = this.#parts;
    const { signal, look } = this.#until(deadlineMs - END_MS);
    const keys = keysByName(source.manifest);
    const { manifest, report } = await createBackup({
      repository,
      clock,
      ids,
      digests,
      parallel,
      throttleBytesPerSecond,
      signal,
      cause: 'scheduled',
      source: withoutLargeIndex(source),
      known: draft.known(source.manifest),
      onProgress: look,
      onFile: (file) => draft.add(file, keys.get(file.path)),
    });
    log.info('a backup has completed', {
      backupId: manifest.id,
      repository: repository.place,
      logEnd: manifest.checkpoints.writer,
      sizeBytes: report.sizeBytes,
      bytesStored: report.bytesStored,
    });
    return manifest;
  }

  /** A signal that ends what it is given to when the time is up, which is looked at with every piece that is done. */
  #until(untilMs: number): { readonly signal: AbortSignal; readonly look: () => void } {
    const ending = new AbortController();
    const { clock } = this.#parts.world;
    const look = (): void => {
      if (clock.monotonicMs() >= untilMs) ending.abort();
    };
    look();
    return { signal: ending.signal, look };
  }

  /** The backup is there: what could not be removed is removed after the next one. */
  async #prune(repository: Repository, deadlineMs: number): Promise<void> {
    const {
      world: { clock, ids, digests, log },
      keep,
    } = this.#parts;
    if (keep === null) return;
    const { signal, look } = this.#until(deadlineMs - END_MS);
    try {
      const options = { repository, keep, clock, ids, digests, signal, onProgress: look };
      const { removed, kept } = await pruneRepository(options);
      log.info('expired backups were removed', { removed: removed.length, kept: kept.length });
    } catch (error) {
      log.warn('old backups could not be removed from the repository; the next backup tries again', {
        repository: repository.place,
        error,
      });
    }
  }
}

/** Keys of the objects by the names of their files. */
function keysByName({ chunks, files }: ObjectManifest): ReadonlyMap<string, string> {
  const keys = new Map(chunks.map(({ name, key }) => [name, key]));
  for (const { name, key } of files) if (key !== null) keys.set(name, key);
  return keys;
}

function withoutLargeIndex(source: BackupSource): BackupSource {
  const { snapshot } = source;
  if (!snapshot.files.some(({ kind, sizeBytes }) => INDEX_KINDS.has(kind) && sizeBytes > INDEX_FILE_BYTES_MAX))
    return source;
  return {
    snapshot: { ...snapshot, files: snapshot.files.filter(({ kind }) => !INDEX_KINDS.has(kind)) },
    read: (...args) => source.read(...args),
    release: () => source.release(),
  };
}

const DRAFT_KEY = `${CONTROL_PREFIX}backup`;
/** Files that a draft names at most; those beyond are read again. */
const DRAFT_FILES_MAX = 100_000;
/** Files after which the draft is written down, so that a crash costs no more than these. */
const FILES_PER_WRITE = 64;
/** A claim counts no longer than a tick can last, whatever a clock says, in milliseconds. */
const CLAIM_MS_MAX = 900_000;

interface DraftText {
  /** Id of the repository that holds the blobs. */
  readonly repository: string;
  /** Which process is at it, and until when that counts: milliseconds since 1970. */
  readonly owner: string;
  readonly untilMs: number;
  readonly files: readonly DraftFile[];
}

/** A chunk or a file of the index, by the key of its object, which no other content ever has. */
interface DraftFile {
  readonly key: string;
  readonly file: ManifestFile;
}

const draftShape = record<DraftText>({
  repository: uuid,
  owner: uuid,
  untilMs: moment,
  files: listOf(record<DraftFile>({ key: words(OBJECT_KEY_LENGTH_MAX), file: draftFileShape }), DRAFT_FILES_MAX),
});

/**
 * How far a backup has come that is made in several ticks, and which process is at it: an object beside the notes to
 * ticks. It only saves work. Two ticks that both believe to have claimed it make two sound backups; a blob that it
 * names and that is gone is found missing, and stored again.
 */
class BackupDraft {
  readonly #world: Pick<ObjectWorld, 'objects' | 'clock'>;
  readonly #repositoryId: string;
  readonly #owner: string;
  readonly #found: DraftText | null;
  readonly #files = new Map<string, ManifestFile>();
  #untilMs = 0;
  #unwritten = 0;
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    world: Pick<ObjectWorld, 'objects' | 'clock'>,
    repositoryId: string,
    owner: string,
    found: DraftText | null,
  ) {
    this.#world = world;
    this.#repositoryId = repositoryId;
    this.#owner = owner;
    this.#found = found;
    if (found?.repository === repositoryId) for (const { key, file } of found.files) this.#files.set(key, file);
  }

  static async open(
    world: Pick<ObjectWorld, 'objects' | 'clock'>,
    repositoryId: string,
    owner: string,
  ): Promise<BackupDraft> {
    return new BackupDraft(world, repositoryId, owner, await read(world.objects));
  }

  get count(): number {
    return this.#files.size;
  }

  /** Says that this process is at it for so long; false when another one is. */
  async claim(ms: number): Promise<boolean> {
    const nowMs = this.#world.clock.nowMs();
    const leftMs = (this.#found?.untilMs ?? 0) - nowMs;
    if (this.#found !== null && this.#found.owner !== this.#owner && leftMs > 0 && leftMs <= CLAIM_MS_MAX) return false;
    this.#untilMs = Math.floor(nowMs + Math.min(ms, CLAIM_MS_MAX));
    await this.#write();
    return true;
  }

  /** What is stored already of the files of this manifest, in the form of a backup. */
  known({ storeId, chunkSizeBytes, chunks, files }: ObjectManifest): Manifest {
    const stored = <T extends ManifestFile>(
      named: readonly { readonly key: string | null; readonly name: string }[],
    ): T[] =>
      named.flatMap(({ key, name }) => {
        const file = key === null ? undefined : this.#files.get(key);
        return file?.path === name ? [file as T] : [];
      });
    return {
      format: 1,
      id: '',
      nodeId: storeId,
      createdMs: 0,
      cause: 'scheduled',
      chunkSizeBytes,
      checkpoints: { writer: 0, chaser: 0, epoch: -1, proposal: -1 },
      chunks: stored<ManifestChunk>(chunks),
      tail: null,
      index: { commitCheckpoint: -1, files: stored(files) },
      scavengeDb: null,
    };
  }

  /** The file, whose object has this key, is in the repository. One without an object may come to be another file. */
  add(file: ManifestFile, key: string | undefined): void {
    if (key === undefined || this.#files.has(key) || this.#files.size >= DRAFT_FILES_MAX) return;
    this.#files.set(key, file);
    if (++this.#unwritten < FILES_PER_WRITE) return;
    this.#unwritten = 0;
    this.#writing = this.#writing.then(() => this.#write()).catch(() => {});
  }

  /** No process is at it any more; what is stored so far is known to the next. What can't be written is done again. */
  async release(): Promise<void> {
    await this.#writing;
    this.#untilMs = 0;
    await this.#write().catch(() => {});
  }

  /** It is done. A draft that stays behind names files that are stored. */
  async remove(): Promise<void> {
    await this.#writing;
    await this.#world.objects.remove([DRAFT_KEY]).catch(() => {});
  }

  #write(): Promise<void> {
    const text: DraftText = {
      repository: this.#repositoryId,
      owner: this.#owner,
      untilMs: this.#untilMs,
      files: [...this.#files].map(([key, file]) => ({ key, file })),
    };
    return this.#world.objects.put(DRAFT_KEY, encodeText(JSON.stringify(text)));
  }
}

async function read(objects: ObjectStore): Promise<DraftText | null> {
  const bytes = await objects.get(DRAFT_KEY);
  try {
    const draft: unknown = bytes === null ? null : JSON.parse(decodeText(bytes));
    return draft === null || draftShape(draft, '') !== null ? null : (draft as DraftText);
  } catch {
    // It only saves work.
    return null;
  }
}
