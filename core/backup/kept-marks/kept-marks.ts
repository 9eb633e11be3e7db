import { decodeBase64, encodeBase64 } from '../../base/base64.ts';
import { gather } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { guidToText } from '../../base/guid.ts';
import { record, words } from '../../base/shape.ts';
import { streamHasher } from '../../base/stream-hash.ts';
import type { Digests } from '../../ports/digests.ts';
import { isInLog } from '../../store/restored-marks/restored-marks.ts';
import { ReadRecords } from '../../streams/committed/committed.ts';
import { decodeMarks, encodeMarks } from '../../streams/format/marks-table.ts';
import { ALL_MARKS, type MarkColumns, namesIn } from '../../streams/format/mark-columns.ts';
import { Redactions } from '../../streams/redactions/redactions.ts';
import { KEPT_MARKS } from '../format/repository-keys.ts';
import type { BlobRef, Manifest } from '../format/snapshot-manifest.ts';
import type { Repository } from '../repository/api.ts';

/**
 * Marks of redaction outlive the backups of a node that is forgotten: other backups may hold the events, and what was
 * redacted never shows again. They lie in a document of the node's, and no blob, so that no prune takes them away.
 */

const ID_BYTES = 16;
const MARKS_TEXT_MAX = 400_000_000;

interface KeptMarks {
  /** A table of marks in base64. */
  readonly marks: string;
}
export const keptMarksShape = record<KeptMarks>({ marks: words(MARKS_TEXT_MAX) });

/** Keys of the documents that there are. */
export async function keptMarksKeys(repository: Repository): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of repository.objectsOf(KEPT_MARKS)) keys.push(key);
  return keys;
}

/** Null for one that is gone. Throws `repository_damaged` and `log_corrupt`. */
export async function readKeptMarks(
  repository: Repository,
  key: string,
  digests: Digests,
): Promise<MarkColumns | null> {
  const kept = await repository.readObject(key, keptMarksShape);
  if (kept === null) return null;
  return decodeMarks(key, decodeBase64(kept.marks) ?? new Uint8Array(0), digests);
}

interface ForgottenParts {
  readonly repository: Repository;
  readonly digests: Digests;
  readonly nodeId: string;
  readonly manifests: readonly Manifest[];
}

/**
 * The marks that only the backups of this node know, in their tables or in what was shipped behind them; null where
 * there are none. Throws `repository_damaged` and `log_corrupt` for a table that can't be read; of what was shipped
 * nothing more than that is known.
 */
export async function marksOfForgotten(parts: ForgottenParts): Promise<MarkColumns | null> {
  const { repository, digests, nodeId, manifests } = parts;
  const own = manifests.filter((manifest) => manifest.nodeId === nodeId);
  const marks = await marksOf(repository, own, digests);
  const records = new ReadRecords(streamHasher);
  for (const { id } of own)
    for (const piece of await piecesOf(repository, id))
      if (piece.hasMarks === true)
        for (const { mark } of records.read(await repository.readShipped(piece), piece.from).marks) marks.add(mark, 0);
  // Read last: another prune that has removed what was shipped has written before what that held.
  const before = await readKeptMarks(repository, `${KEPT_MARKS.prefix}${nodeId}`, digests);
  if (before !== null) marks.addAll(before);
  if (marks.count === 0) return null;
  const others = manifests.filter((manifest) => manifest.nodeId !== nodeId);
  const missing = without(marks.columns(...ALL_MARKS), await marksOf(repository, others, digests));
  return missing.count === 0 ? null : missing.columns(...ALL_MARKS);
}

export async function keepMarks({ repository, digests, nodeId }: ForgottenParts, marks: MarkColumns): Promise<void> {
  const text: KeptMarks = { marks: encodeBase64(encodeMarks(marks, digests)) };
  await repository.writeObject(`${KEPT_MARKS.prefix}${nodeId}`, text);
}

/** What the tables of these backups mark. Throws `repository_damaged` and `log_corrupt`. */
export async function marksOf(
  repository: Repository,
  manifests: readonly Manifest[],
  digests: Digests,
): Promise<Redactions> {
  const tables = new Map<string, BlobRef>();
  for (const { redactions } of manifests) if (redactions !== undefined) tables.set(redactions.blob, redactions);
  const marks = new Redactions();
  for (const table of tables.values()) {
    const bytes = await gather(repository.readBlob(table), table.sizeBytes);
    marks.addAll(decodeMarks(repository.blobKey(table.blob), bytes, digests));
  }
  return marks;
}

async function piecesOf(repository: Repository, id: string): ReturnType<Repository['shipped']> {
  try {
    return await repository.shipped(id, () => {});
  } catch (error) {
    // Another prune was faster.
    if (isSkuaError(error, 'backup_not_found')) return [];
    throw error;
  }
}

function without(marks: MarkColumns, known: Redactions): Redactions {
  const missing = new Redactions();
  const names = namesIn(marks);
  for (const [i, position] of marks.positions.entries()) {
    const mark = { position, id: guidToText(marks.ids, i * ID_BYTES), keys: names.get(i) ?? [] };
    if (!isInLog(known, mark)) missing.add(mark, 0);
  }
  return missing;
}
