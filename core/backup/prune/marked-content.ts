import { equalBytes, gather, i32 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { guidToText } from '../../base/guid.ts';
import { HIT, untilHit } from '../../base/step.ts';
import { BlockCache } from '../../cache/cache.ts';
import { type Chunk, openCompleted } from '../../log/chunk/chunk.ts';
import { isRedactable, redacted } from '../../log/format/redaction.ts';
import {
  FLAG_REDACTED,
  FRAME_BYTES,
  FRAME_SOUND,
  isRecordLength,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
  takeFrame,
} from '../../log/format/records.ts';
import type { Digests } from '../../ports/digests.ts';
import type { MarkColumns } from '../../streams/api.ts';
import { namesIn } from '../../streams/format/mark-columns.ts';
import type { Redactions } from '../../streams/redactions/redactions.ts';
import { keptMarksKeys, marksOf, readKeptMarks } from '../kept-marks/kept-marks.ts';
import type { Manifest, ManifestChunk, ShippedPiece } from '../format/snapshot-manifest.ts';
import type { Repository } from '../repository/api.ts';
import { filesOfBackup, PartStorage } from '../repository/part-storage.ts';

const ID_BYTES = 16;

interface NamedMarks extends MarkColumns {
  readonly names: ReturnType<typeof namesIn>;
}

/** What one version of a part of the log has of events with marks, by their positions and ids. */
interface Held {
  /** Their content. */
  readonly content: ReadonlySet<string>;
  /** What a scavenge leaves of them under a mark. */
  readonly redacted: ReadonlySet<string>;
}

/**
 * Ids of the backups that hold the content of an event with a mark, of whatever node, where another one has what a
 * scavenge left of it. Reads the records of marked events in every version of their chunks that is there. Throws
 * `repository_damaged`: what can't be read can't be judged.
 */
export async function heldMarkedContent(
  repository: Repository,
  manifests: readonly Manifest[],
  digests: Digests,
): Promise<Set<string>> {
  const marks = await marksIn(repository, manifests, digests);
  if (marks.count === 0) return new Set();
  const chunks = new Map<string, Held>();
  const applied = new Set<string>();
  const held = new Map<string, Set<string>>();
  for (const manifest of manifests) {
    const content = new Set<string>();
    const look = new MarkLook(repository, manifest, marks);
    for (const chunk of manifest.chunks) {
      const found = chunks.get(chunk.blob) ?? (await look.chunk(chunk));
      chunks.set(chunk.blob, found);
      for (const event of found.content) content.add(event);
      for (const event of found.redacted) applied.add(event);
    }
    for (const event of await look.behind()) content.add(event);
    held.set(manifest.id, content);
  }
  return new Set([...held].filter(([, content]) => [...content].some((event) => applied.has(event))).map(([id]) => id));
}

async function marksIn(repository: Repository, manifests: readonly Manifest[], digests: Digests): Promise<Redactions> {
  const marks = await marksOf(repository, manifests, digests);
  for (const key of await keptMarksKeys(repository)) {
    const kept = await readKeptMarks(repository, key, digests);
    if (kept !== null) marks.addAll(kept);
  }
  return marks;
}

/** Looks for the records of marked events in the log of one backup. */
class MarkLook {
  readonly #repository: Repository;
  readonly #manifest: Manifest;
  readonly #marks: Redactions;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();

  constructor(repository: Repository, manifest: Manifest, marks: Redactions) {
    this.#repository = repository;
    this.#manifest = manifest;
    this.#marks = marks;
  }

  async chunk({ path, startNumber, endNumber }: ManifestChunk): Promise<Held> {
    const size = this.#manifest.chunkSizeBytes;
    const marks = this.#marksOf(startNumber * size, (endNumber + 1) * size);
    const content = new Set<string>();
    const left = new Set<string>();
    if (marks.positions.length === 0) return { content, redacted: left };
    const storage = new PartStorage(filesOfBackup(this.#repository, this.#manifest, []));
    const chunk = await openCompleted(storage, new BlockCache(0), path);
    try {
      for (const [i, position] of marks.positions.entries()) {
        if (!(await this.#isRecord(chunk, position))) continue;
        const state = this.#stateOf(marks, i);
        if (state !== null) (state === 'content' ? content : left).add(nameOf(marks, i));
      }
    } finally {
      await chunk.file.file.close();
    }
    return { content, redacted: left };
  }

  /** Of the chunk that was being written, and of what was shipped: no scavenge has been there. */
  async behind(): Promise<Set<string>> {
    const { tail, id } = this.#manifest;
    const content = new Set<string>();
    for (const segment of tail?.segments ?? [])
      await this.#raw(segment.from, segment.to, content, (from, length) =>
        gather(this.#repository.readBlob(segment, { from, length }), length),
      );
    for (const piece of await this.#pieces(id))
      await this.#raw(piece.from, piece.to, content, async (from, length) =>
        (await this.#repository.readShipped(piece)).subarray(from, from + length),
      );
    return content;
  }

  async #pieces(id: string): Promise<readonly ShippedPiece[]> {
    try {
      return await this.#repository.shipped(id, () => {});
    } catch (error) {
      // Another prune was faster.
      if (isSkuaError(error, 'backup_not_found')) return [];
      throw error;
    }
  }

  async #raw(
    start: number,
    end: number,
    content: Set<string>,
    read: (from: number, length: number) => Promise<Uint8Array>,
  ): Promise<void> {
    const marks = this.#marksOf(start, end);
    for (const [i, position] of marks.positions.entries()) {
      if (position + FRAME_BYTES > end) continue;
      const length = i32(await read(position - start, FRAME_BYTES / 2), 0);
      if (!isRecordLength(length) || position + length + FRAME_BYTES > end) continue;
      const bytes = await read(position - start, length + FRAME_BYTES);
      if (takeFrame(this.#frame, bytes, 0, length, position) !== FRAME_SOUND) continue;
      if (this.#stateOf(marks, i) === 'content') content.add(nameOf(marks, i));
    }
  }

  #marksOf(from: number, to: number): NamedMarks {
    const marks = this.#marks.columns(from, to, Number.MAX_SAFE_INTEGER);
    return { ...marks, names: namesIn(marks) };
  }

  /** In a log with another history none may begin there. */
  async #isRecord(chunk: Chunk, position: number): Promise<boolean> {
    try {
      return (await untilHit(() => chunk.readAt(position, this.#frame))) === HIT;
    } catch (error) {
      if (isSkuaError(error, 'log_corrupt')) return false;
      throw error;
    }
  }

  #stateOf(marks: NamedMarks, i: number): 'content' | 'redacted' | null {
    const frame = this.#frame;
    const fields = this.#fields;
    if (frame.type !== PREPARE) return null;
    parsePrepare(frame, fields);
    if (!equalBytes(frame.bytes, fields.eventIdAt, marks.ids, i * ID_BYTES, ID_BYTES)) return null;
    if (!isRedactable(frame, fields)) return null;
    if (redacted(frame, fields, marks.names.get(i) ?? []) !== null) return 'content';
    return (fields.flags & FLAG_REDACTED) === 0 ? null : 'redacted';
  }
}

function nameOf({ positions, ids }: MarkColumns, i: number): string {
  return `${positions[i]} ${guidToText(ids, i * ID_BYTES)}`;
}
