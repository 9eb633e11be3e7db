import { createHash } from 'node:crypto';
import type { CopyOptions, CopyReport } from '../../core/backup/copy/copy.ts';
import { copyFiles } from '../../core/backup/copy/copy.ts';
import type { CopyStep } from '../../core/backup/copy/target.ts';
import { snapshotOfDirectory } from '../../core/store/snapshot/snapshot.ts';
import type { BackupSource } from '../../core/store/source/source.ts';
import { guidFromUuidBytes, guidToText } from '../../core/base/guid.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { contentOf, copyTo, putFile } from '../log/kit.ts';
import { findingsOf } from '../support/damage.ts';

/** Copies in memory: a source that is filled step by step, its copies, and nodes started on them. */

export const CHUNK_BYTES = 65_536;
export const clock = new ManualClock(TEST_NOW_MS, 'microtask');
const FOLDERS = ['', 'index', 'index/stream-existence', 'index/scavenging'];

export function openSource(storage: Storage): Promise<DirectoryStore> {
  return openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES, memTableEntriesMax: 60 });
}

const ids = new SeededIds(77);

/** Appends `count` events of a little over 1 kB and gives their ids. */
export async function append({ store }: DirectoryStore, stream: string, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, (_, i) => ({
    id: guidToText(guidFromUuidBytes(ids.uuidBytes()), 0),
    type: 'parcel',
    isJson: false,
    data: encodeText(`${stream} ${i} `.padEnd(1_000, 'x')),
    metadata: new Uint8Array(),
  }));
  for (const event of events) await store.append(stream, ANY, [event]);
  return events.map(({ id }) => id);
}

/** Opens a source, works on it, and closes it. */
export async function withSource<T>(storage: Storage, work: (open: DirectoryStore) => Promise<T>): Promise<T> {
  const open = await openSource(storage);
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

export function stopped(storage: Storage): Promise<BackupSource> {
  return snapshotOfDirectory({ storage, clock, ids: new SeededIds(5), digests: nodeDigests, log: silentLog });
}

/** Copies a source that is given, or the stopped directory in a storage. */
export async function copy(
  from: Storage | BackupSource,
  target: Storage,
  mode: CopyOptions['mode'],
  more: Partial<CopyOptions> = {},
): Promise<CopyReport> {
  const source = 'snapshot' in from ? from : await stopped(from);
  try {
    return await copyFiles({ source, target, mode, clock, digests: nodeDigests, ...more });
  } finally {
    if (source !== from) await source.release();
  }
}

/** The steps of a copy as text, with the names of tables left out. */
export function recorder(): { readonly steps: string[]; readonly onStep: (step: CopyStep) => void } {
  const steps: string[] = [];
  return {
    steps,
    onStep: ({ do: what, path }) => {
      steps.push(`${what} ${path.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, 'GUID')}`);
    },
  };
}

/** Every file with its content. */
export async function filesOf(storage: Storage): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  for (const folder of FOLDERS) {
    for (const name of await storage.list(folder)) {
      const path = folder === '' ? name : `${folder}/${name}`;
      files.set(path, Buffer.from(await contentOf(storage, path)));
    }
  }
  return files;
}

/** Every file with the hash of its content: comparing those is quicker by far. */
export async function hashesOf(storage: Storage): Promise<Record<string, string>> {
  return Object.fromEntries(
    [...(await filesOf(storage))].map(([path, bytes]) => [path, createHash('sha1').update(bytes).digest('hex')]),
  );
}

export function clone(from: Storage, to: Storage): Promise<void> {
  return copyTo(from, to, FOLDERS);
}

/** What is wrong with a copy once it is restored as the rules say, and what its streams hold. */
export async function restored(
  target: Storage,
  streams: readonly string[],
): Promise<{
  readonly wrong: readonly string[];
  readonly ids: Readonly<Record<string, readonly string[]>>;
  readonly end: number;
}> {
  const storage = new MemoryStorage();
  await clone(target, storage);
  await putFile(storage, 'truncate.chk', await contentOf(storage, 'chaser.chk'));
  const open = await openTestStore({ storage, writeEpoch: false });
  const found: Record<string, string[]> = {};
  for (const stream of streams) found[stream] = await idsOf(open, stream);
  const end = open.status().checkpoints.writer;
  await open.close();
  return { wrong: await findingsOf(storage), ids: found, end };
}

async function idsOf({ store }: DirectoryStore, stream: string): Promise<string[]> {
  const found: string[] = [];
  for (let from = 0; ;) {
    const page = await store.readStream(stream, { direction: 'forward', from, count: 1_000, resolveLinks: false });
    found.push(...page.events.map(({ id }) => id));
    if (page.isEnd || page.events.length === 0) return found;
    from = page.nextEventNumber;
  }
}
