import { describe, expect, test } from 'vitest';
import { snapshotOfDirectory } from '../../../core/store/snapshot/snapshot.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { OverStorage } from '../../../core/memory/over-storage.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { append, CHUNK_BYTES } from '../../backup/copy-kit.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../../support/test-store.ts';

/** A directory that can't be written to, opened by code that recovers what it opens. */

describe.each(['EROFS', 'EACCES'])('where every write is refused with %s', (systemCode) => {
  /** A storage as a disk that can only be read is one. */
  function refusing(storage: Storage): Storage {
    const refuse = async (name: string): Promise<never> => {
      throw new SkuaError('io_error', `Access to ${name} was denied (${systemCode}).`, { path: name, systemCode });
    };
    return {
      list: (name) => storage.list(name),
      size: (name) => storage.size(name),
      modifiedMs: (name) => storage.modifiedMs(name),
      open: (name, access) => (access === 'read' ? storage.open(name, 'read') : refuse(name)),
      create: refuse,
      rename: refuse,
      remove: refuse,
      freeBytes: () => Promise.resolve(0),
      lock: () => refuse('skua.lock'),
    };
  }

  test('a store opens over a directory that was left in the middle, without its index or with it, and is explained, dry-run and backed up; nothing of it changes', async () => {
    for (const hasIndex of [true, false]) {
      const base = new MemoryStorage();
      const states = new MemoryScavengeStates();
      const node = await openTestStore({
        storage: base,
        chunkSizeBytes: CHUNK_BYTES,
        memTableEntriesMax: 60,
        scavengeStates: states,
      });
      await append(node, 's', 100);
      await node.close();
      // A chaser that was left behind has to be put right, and an index be made.
      if (!hasIndex) for (const name of await base.list('index')) await base.remove(`index/${name}`);
      const read = async (): Promise<Map<string, string>> => {
        const files = new Map<string, string>();
        for (const dir of ['', 'index', 'index/stream-existence', 'proofs']) {
          for (const name of await base.list(dir)) {
            const place = dir === '' ? name : `${dir}/${name}`;
            const file = await base.open(place, 'read');
            files.set(place, Buffer.from(await file.read(0, file.size)).toString('base64'));
            await file.close();
          }
        }
        return files;
      };
      const before = await read();
      const source = await snapshotOfDirectory({
        storage: new OverStorage(refusing(base), new MemoryStorage()),
        clock: new ManualClock(TEST_NOW_MS, 'microtask'),
        ids: new SeededIds(5),
        digests: nodeDigests,
        log: silentLog,
      });
      expect(source.snapshot.files.filter(({ kind }) => kind === 'chunk').length).toBeGreaterThan(0);
      await source.release();
      const over = await openTestStore({
        storage: new OverStorage(refusing(base), new MemoryStorage()),
        chunkSizeBytes: CHUNK_BYTES,
        writeEpoch: false,
        scavengeStates: new MemoryScavengeStates(),
        scavenge: { repairHistory: false },
      });
      expect(await over.scavenger.explain('s')).toMatchObject({ lastEventNumber: 99 });
      const { scavengeId } = await over.scavenger.startDryRun();
      await over.scavenger.idle();
      expect(await over.scavenger.dryRun(scavengeId)).not.toBe(null);
      await over.close();
      expect(await read()).toEqual(before);
    }
  });
});
