import { SkuaError } from '../../base/errors.ts';
import { guidToText } from '../../base/guid.ts';
import type { ObjectWorld } from '../../shared-log/api.ts';
import type { ObjectManifest } from '../../shared-log/format/manifest.ts';
import type { Storage } from '../../ports/storage.ts';
import { decodeMarks, MARKS_FILE, readMarksTable, writeMarksTable } from '../../streams/format/marks-table.ts';
import { ALL_MARKS, type MarkColumns, namesIn } from '../../streams/format/mark-columns.ts';
import { Redactions } from '../../streams/redactions/redactions.ts';

const ID_BYTES = 16;

/**
 * A log that began at the end of a restored copy has marks in the table of its manifests that are in no commit yet.
 * They are put beside the copy, where its opening finds them as those of a restore, before what they hide comes into
 * it. Rejects with `file_not_found` (data: key) where the manifest is no longer the newest.
 */
export async function takeWaitingMarks(
  storage: Storage,
  { objects, digests }: Pick<ObjectWorld, 'objects' | 'digests'>,
  { files, number }: ObjectManifest,
): Promise<void> {
  const key = files.find(({ name }) => name === MARKS_FILE)?.key ?? null;
  if (key === null) return;
  const bytes = await objects.get(key);
  if (bytes === null)
    throw new SkuaError('file_not_found', `The table of redactions of manifest ${number} is gone: ${key}.`, { key });
  const waiting = inNoLog(decodeMarks(key, bytes, digests));
  if (waiting.count === 0) return;
  const own = await readMarksTable(storage, MARKS_FILE, digests);
  if (own !== null) waiting.addAll(own);
  await writeMarksTable(storage, MARKS_FILE, waiting.columns(...ALL_MARKS), digests);
}

/** No mark lies at the beginning of a log: what it marks lies before it. */
function inNoLog(table: MarkColumns): Redactions {
  const marks = new Redactions();
  const names = namesIn({ keys: table.keys.filter(([, , markedAt]) => markedAt === 0) });
  const { positions, ids } = table;
  for (const [i, position] of positions.entries())
    if (table.markedAt[i] === 0 || names.has(i))
      marks.add({ position, id: guidToText(ids, i * ID_BYTES), keys: names.get(i) ?? [] }, 0);
  return marks;
}
