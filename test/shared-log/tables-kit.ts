import {
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  parseChunkFileNames,
  takeInventory,
} from '../../core/log/format/chunk-format.ts';
import { readHeader } from '../../core/log/format/chunk-files.ts';
import { i64 } from '../../core/base/bytes.ts';
import { newFileKey } from '../../core/shared-log/format/object-keys.ts';
import {
  type ObjectChunk,
  type ObjectFile,
  type ObjectManifest,
  type ObjectOngoing,
  createManifest,
} from '../../core/shared-log/format/manifest.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { decodeText } from '../../core/base/text.ts';
import type { Run, RunOptions, World } from '../scavenge/notation-world.ts';
import { readWholeStream } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { exportDirectory, runTick, worldOf } from './tick-kit.ts';
import { contentOf, copyTo } from '../log/kit.ts';

const STORE_ID = '00000000-0000-4000-8000-000000000000';

/**
 * Runs a scavenge on object storage: the directory becomes objects, a tick does the run, and what it left becomes the
 * directory.
 */
export async function runOnObjects(world: World, options: RunOptions): Promise<Omit<Run, 'jobs' | 'committed'>> {
  const { unsafe = false, merging = false, ...request } = options;
  // A node brings the index up to the log, and writes it.
  await (await world.open()).close();
  const objects = new MemoryObjects();
  const place = worldOf(objects, world.clock, 31);
  const chunkSize = world.log.chunkSize;
  await importDirectory(world.storage, objects, chunkSize);
  const { scavengeId } = await startScavenge(place, { syncOnly: true, ...request });
  const { scavenge } = await runTick(place, {
    options: { chunkSizeBytes: chunkSize },
    hasher: world.hasher,
    scavengeStates: world.states,
    settings: {
      scavenge: {
        disableMerging: !merging,
        mergesAlways: true,
        unsafeIgnoreHardDelete: unsafe,
        keepsDeletedData: true,
      },
    },
  });
  const reader = await openObjectStore(place);
  const history = await readWholeStream(reader.store, `$scavenges-${scavengeId}`, 'forward', 1_000);
  await reader.close();
  await replaceFiles(world.storage, await exportDirectory(objects));
  return {
    scavengeId,
    last: { scavengeId, result: scavenge!.result as 'Success', error: scavenge!.error },
    history:
      'error' in history
        ? []
        : history.map(({ type, data }) => ({ type, data: JSON.parse(decodeText(data)) as Record<string, unknown> })),
  };
}

/** Makes objects of the data directory of a stopped node. */
async function importDirectory(storage: Storage, objects: ObjectStore, chunkSizeBytes: number): Promise<void> {
  const ids = new SeededIds(32);
  const upload = async (name: string, from = 0, to = Infinity): Promise<{ key: string; sizeBytes: number }> => {
    const bytes = (await contentOf(storage, name)).slice(from, to);
    const key = newFileKey(ids);
    await objects.put(key, bytes);
    return { key, sizeBytes: bytes.length };
  };
  const logEnd = i64(await contentOf(storage, 'writer.chk'), 0);
  const { latest } = await takeInventory(
    parseChunkFileNames(await storage.list('')),
    -1,
    async (file) => (await readHeader(storage, file.name)).endNumber,
  );
  const chunks: ObjectChunk[] = [];
  let ongoing: ObjectOngoing | null = null;
  for (const {
    file: { name, number },
  } of latest) {
    const bytes = await contentOf(storage, name);
    if (logEnd < (number + 1) * chunkSizeBytes) {
      const local = logEnd - number * chunkSizeBytes;
      const header = Buffer.from(bytes.subarray(0, HEADER_BYTES)).toString('hex');
      if (local > 0)
        ongoing = {
          name,
          number,
          header,
          segments: [
            {
              key: (await upload(name, HEADER_BYTES, HEADER_BYTES + local)).key,
              from: number * chunkSizeBytes,
              to: logEnd,
            },
          ],
        };
      continue;
    }
    const { startNumber, endNumber, isScavenged } = decodeHeader(name, bytes);
    const { physicalBytes, logicalBytes, mapBytes, mapEntryBytes } = decodeFooter(
      name,
      bytes.subarray(bytes.length - FOOTER_BYTES),
      bytes.length,
    );
    chunks.push({
      name,
      ...(await upload(name)),
      startNumber,
      endNumber,
      isScavenged,
      physicalBytes,
      logicalBytes,
      mapBytes,
      mapEntryBytes,
    });
  }
  const files: ObjectFile[] = [];
  // What a clean stop has proved is of a directory alone.
  for (const name of await storage.list('index'))
    if (name !== 'proven-tables') files.push({ name: `index/${name}`, ...(await upload(`index/${name}`)) });
  const manifest: ObjectManifest = {
    format: 1,
    number: 1,
    storeId: STORE_ID,
    writtenMs: 0,
    chunkSizeBytes,
    boundary: 1,
    logEnd,
    endsChunk: false,
    chunks,
    ongoing,
    files,
    dropped: [],
    scavenge: null,
  };
  const world = worldOf(
    objects,
    { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {}, yield: async () => {} },
    33,
  );
  await createManifest(world, manifest);
}

async function replaceFiles(storage: Storage, by: Storage): Promise<void> {
  for (const folder of ['', 'index']) {
    const prefix = folder === '' ? '' : `${folder}/`;
    for (const name of await storage.list(folder)) await storage.remove(prefix + name);
  }
  await copyTo(by, storage, ['', 'index']);
}
