import { equalBytes, gather } from '../../base/bytes.ts';
import type { Repository } from '../repository/api.ts';
import { isProven } from '../format/snapshot-manifest.ts';
import type {
  Manifest,
  ManifestChunk,
  ManifestFile,
  ManifestProof,
  ManifestTail,
} from '../format/snapshot-manifest.ts';
import type { BackupSource, SnapshotFile } from '../../store/api.ts';

/** Bytes of a tail that are compared with what an earlier backup holds of it. */
const COMPARED_BYTES = 65_536;

/**
 * What earlier backups of the same node have stored already. `trusted` was made by this process, of this directory:
 * since then nothing but the node has changed it, and a node gives a changed chunk or table another name. `previous` is
 * the newest in the repository, made by any process: a chunk of the same name is the same only when its MD5 says so.
 */
export class PreviousBackups {
  readonly #trusted: Manifest | null;
  readonly #previous: Manifest | null;
  readonly #gone: ReadonlySet<string>;

  /** Blobs in `gone` turned out to be missing. */
  constructor(trusted: Manifest | null, previous: Manifest | null, gone: ReadonlySet<string>) {
    this.#trusted = trusted;
    this.#previous = previous;
    this.#gone = gone;
  }

  get all(): readonly Manifest[] {
    return [this.#trusted, this.#previous].filter((manifest) => manifest !== null);
  }

  trustedChunk(file: SnapshotFile): ManifestChunk | null {
    return this.#proven(this.#trusted?.chunks, file);
  }

  /** `md5` is what the footer of the file says. */
  previousChunk(file: SnapshotFile, md5: string): ManifestChunk | null {
    const chunk = this.#proven(this.#previous?.chunks, file);
    return chunk?.md5 === md5 ? chunk : null;
  }

  /** What was never proved is read once more, and stored only where that gives another blob. */
  #proven(chunks: readonly ManifestChunk[] | undefined, file: SnapshotFile): ManifestChunk | null {
    const chunk = this.#same(chunks, file);
    return chunk !== null && isProven(chunk) ? chunk : null;
  }

  /** Tables and bloom filters have the names of GUIDs: the same name is the same content. */
  table(file: SnapshotFile): ManifestFile | null {
    return this.#same(this.#trusted?.index?.files, file) ?? this.#same(this.#previous?.index?.files, file);
  }

  /** The existence filter that was backed up with this very checkpoint: what it knows up to there is enough. */
  existenceFilter(file: SnapshotFile, checkpoint: ManifestFile): ManifestFile | null {
    for (const { index } of this.all) {
      const filter = this.#same(index?.files, file);
      if (
        filter !== null &&
        index!.files.some((other) => other.path === checkpoint.path && other.blob === checkpoint.blob)
      )
        return filter;
    }
    return null;
  }

  /** What a proof begins with names the hash of the rest. */
  proof(file: SnapshotFile, head: string): ManifestProof | null {
    for (const { proofs } of this.all) {
      const proof = this.#same(proofs, file);
      if (proof?.head === head) return proof;
    }
    return null;
  }

  #same<T extends ManifestFile>(files: readonly T[] | undefined, { path, sizeBytes }: SnapshotFile): T | null {
    const file = files?.find((other) => other.path === path);
    return file?.sizeBytes === sizeBytes && !this.#gone.has(file.blob) ? file : null;
  }

  /** The tail of the same chunk, as far as it reaches to `end` at most; its content still has to be compared. */
  tail(path: string, header: string, end: number): { readonly tail: ManifestTail; readonly isTrusted: boolean } | null {
    for (const manifest of this.all) {
      const { tail } = manifest;
      if (tail === null || tail.path !== path || tail.header !== header || (tail.segments.at(-1)?.to ?? 0) > end)
        continue;
      if (!tail.segments.some(({ blob }) => this.#gone.has(blob)))
        return { tail, isTrusted: manifest === this.#trusted };
    }
    return null;
  }
}

/**
 * Whether the last bytes of a backed up tail are still where they were. A log that was cut and has grown again has
 * other ones there: its records name their positions and carry random ids.
 */
export async function endsAlike(
  repository: Repository,
  source: BackupSource,
  path: string,
  offset: number,
  tail: ManifestTail,
  signal?: AbortSignal,
): Promise<boolean> {
  const last = tail.segments.at(-1);
  if (last === undefined) return true;
  const length = Math.min(COMPARED_BYTES, last.sizeBytes);
  const stored = await gather(repository.readBlob(last, { from: last.sizeBytes - length, length }, signal), length);
  const now = await gather(source.read(path, offset - length, length), length);
  return equalBytes(stored, 0, now, 0, length);
}
