import { encodeText } from '../../core/base/text.ts';
import type { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { ANY, type StoredEvent } from '../../core/streams/api.ts';
import { redact, type RedactRequest } from '../../core/streams/redact/redact.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openSmall } from './hold-kit.ts';

/** Logs with an event that is redacted after a backup of it was made. */

export const MARKER = 'M4RK3R-of-32-bytes-222222222222!';
export const SECRET = 2;
const ids = new SeededIds(91);

export function idOf(n: number): string {
  return `dddddddd-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

export async function write({ store }: DirectoryStore, n: number, text: string, stream = 'orders'): Promise<void> {
  await store.append(stream, ANY, [
    {
      id: idOf(n),
      type: 'paid',
      isJson: true,
      data: encodeText(`{"card":"${text}"}`),
      metadata: encodeText('{"$correlationId":"c","who":"ann"}'),
    },
  ]);
}

/** Four events in a stream, of which one has the marker. */
export async function writeOrders(open: DirectoryStore, firstId = 0): Promise<void> {
  for (let n = 0; n < 4; n++) await write(open, firstId + n, n === SECRET ? MARKER : `${n}`);
}

export function redactSecret({ store }: DirectoryStore, more: Partial<RedactRequest> = {}): ReturnType<typeof redact> {
  return redact(store, ids, 'ann', { stream: 'orders', numbers: [SECRET], reason: 'a card number', ...more });
}

/** Opens a directory, does the work, and closes it again. */
export async function within<T>(
  storage: Storage,
  work: (open: DirectoryStore) => Promise<T>,
  more: Parameters<typeof openSmall>[1] = {},
): Promise<T> {
  const open = await openSmall(storage, more);
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

/** What a reader sees of each of the orders. */
export async function orders({ store }: DirectoryStore): Promise<string[]> {
  const { events } = await store.readStream('orders', { direction: 'forward', from: 0, count: 100 });
  return events.map(shown);
}

function shown({ isRedacted, data, metadata }: StoredEvent): string {
  return `${isRedacted ? 'redacted ' : ''}${Buffer.from(data).toString()}${isRedacted ? Buffer.from(metadata).toString() : ''}`;
}

export const WHOLE = ['{"card":"0"}', '{"card":"1"}', `{"card":"${MARKER}"}`, '{"card":"3"}'];
export const EMPTY = WHOLE.with(SECRET, 'redacted {"$correlationId":"c"}');

/** Names of the files that hold the marker. */
export async function filesWithMarker(storage: Storage): Promise<string[]> {
  const found: string[] = [];
  for (const folder of ['', 'index', 'index/stream-existence', 'proofs'])
    for (const name of await storage.list(folder)) {
      const bytes = await bytesIn(storage, folder === '' ? name : `${folder}/${name}`);
      if (Buffer.from(bytes).includes(MARKER)) found.push(name);
    }
  return found;
}

export async function bytesIn(storage: Storage | MemoryStorage, path: string): Promise<Uint8Array> {
  const file = await storage.open(path, 'read');
  try {
    return (await file.read(0, file.size)).slice();
  } finally {
    await file.close();
  }
}
