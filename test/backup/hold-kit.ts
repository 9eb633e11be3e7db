import type { BackupSource } from '../../core/store/source/source.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { openTestStore } from '../support/test-store.ts';
import { putFile } from '../log/kit.ts';

/** Nodes with small chunks and memtables, whose files are held, copied, and opened again. */

export const CHUNK_BYTES = 65_536;
let nextId = 0;

export function openSmall(
  storage: Storage,
  more: Partial<Parameters<typeof openTestStore>[0]> = {},
): Promise<DirectoryStore> {
  return openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES, memTableEntriesMax: 20, ...more });
}

/** Appends events of 4 kB each, one a request. */
export async function append({ store }: DirectoryStore, stream: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const id = `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`;
    await store.append(stream, ANY, [
      { id, type: 'made', isJson: false, data: new Uint8Array(4_000).fill(i), metadata: new Uint8Array(0) },
    ]);
  }
}

/** Number of the last event of a stream. */
export async function lastOf({ store }: DirectoryStore, stream: string): Promise<number> {
  return (await store.readStream(stream, { direction: 'backward', from: 'end', count: 1 })).events[0]!.number;
}

export async function contentOf(source: BackupSource, path: string): Promise<Uint8Array> {
  const file = source.snapshot.files.find((each) => each.path === path)!;
  const bytes = new Uint8Array(file.sizeBytes);
  let at = 0;
  for await (const piece of source.read(path, 0, file.sizeBytes)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  if (at !== bytes.length) throw new Error(`${path} gave ${at} of ${bytes.length} bytes`);
  return bytes;
}

/** Puts the files of a source into a storage, as they are. */
export async function copied(source: BackupSource): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  for (const { path } of source.snapshot.files) await putFile(storage, path, await contentOf(source, path));
  return storage;
}
