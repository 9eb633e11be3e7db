import type { Manifest, ManifestChunk, ManifestFile } from '../backup/repository/manifest.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { decodeText, encodeText } from '../text.ts';
import type { ObjectWorld } from './api.ts';
import type { ObjectManifest } from './manifest.ts';
import { CONTROL_PREFIX } from './tick-control.ts';

export const DRAFT_KEY = `${CONTROL_PREFIX}backup`;
/** Files that a draft names at most; those beyond are read again. */
const DRAFT_FILES_MAX = 100_000;
/** Files after which the draft is written down, so that a crash costs no more than these. */
const FILES_PER_WRITE = 64;
/** A claim counts no longer than a tick can last, whatever a clock says, in milliseconds. */
const CLAIM_MS_MAX = 900_000;

interface DraftText {
  /** Id of the repository that holds the blobs. */
  readonly repository: string;
  /** Who is at it, and until when that counts: milliseconds since 1970. */
  readonly owner: string;
  readonly untilMs: number;
  readonly files: readonly DraftFile[];
}

/** A chunk or a file of the index, by the key of its object, which no other content ever has. */
interface DraftFile {
  readonly key: string;
  readonly file: ManifestFile;
}

/**
 * How far a backup has come that is made in several ticks, and who is at it: an object beside the notes to ticks. It only saves work.
 * Two ticks that both believe to have claimed it make two sound backups; a blob that it names and that is gone is found missing, and stored again.
 */
export class BackupDraft {
  readonly #world: Pick<ObjectWorld, 'objects' | 'clock'>;
  readonly #repositoryId: string;
  readonly #owner: string;
  readonly #found: DraftText | null;
  readonly #files = new Map<string, ManifestFile>();
  #untilMs = 0;
  #unwritten = 0;
  #writing: Promise<void> = Promise.resolve();

  private constructor(world: Pick<ObjectWorld, 'objects' | 'clock'>, repositoryId: string, owner: string, found: DraftText | null) {
    this.#world = world;
    this.#repositoryId = repositoryId;
    this.#owner = owner;
    this.#found = found;
    if (found?.repository === repositoryId) for (const { key, file } of found.files) this.#files.set(key, file);
  }

  static async open(world: Pick<ObjectWorld, 'objects' | 'clock'>, repositoryId: string, owner: string): Promise<BackupDraft> {
    return new BackupDraft(world, repositoryId, owner, await read(world.objects));
  }

  get count(): number { return this.#files.size; }

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
    const stored = <T extends ManifestFile>(named: readonly { readonly key: string | null; readonly name: string }[]): T[] => named.flatMap(({ key, name }) => {
      const file = key === null ? undefined : this.#files.get(key);
      return file?.path === name ? [file as T] : [];
    });
    return {
      format: 1, id: '', nodeId: storeId, createdMs: 0, cause: 'scheduled', chunkSizeBytes, checkpoints: { writer: 0, chaser: 0, epoch: -1, proposal: -1 },
      chunks: stored<ManifestChunk>(chunks), tail: null, index: { commitCheckpoint: -1, files: stored(files) }, scavengeDb: null,
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

  /** Nobody is at it any more; what is stored so far is known to the next. What can't be written is done again. */
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
    const text: DraftText = { repository: this.#repositoryId, owner: this.#owner, untilMs: this.#untilMs, files: [...this.#files].map(([key, file]) => ({ key, file })) };
    return this.#world.objects.put(DRAFT_KEY, encodeText(JSON.stringify(text)));
  }
}

async function read(objects: ObjectStore): Promise<DraftText | null> {
  const bytes = await objects.get(DRAFT_KEY);
  try {
    return bytes === null ? null : JSON.parse(decodeText(bytes)) as DraftText;
  } catch {
    // It only saves work.
    return null;
  }
}
