import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { VERIFY_CHUNK_JOB } from '../../core/log/scrub/scrub.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { DRY_RUN_JOB } from '../../core/scavenge/dry-run.ts';
import { EXPLAIN_JOB } from '../../core/scavenge/explain.ts';
import { checkErasure } from '../../core/scavenge/erasure/erasure.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { DISCARD_STEP_BYTES, GONE } from '../../infra/fs/discard.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { runSettings } from './chunk-kit.ts';
import { append, setMetadata } from './control-kit.ts';

/**
 * Whoever reads a chunk in a worker or in another process, and is held in the middle of it while a scavenge replaces it
 * and its file is cut, goes on with what has taken its place, or is told that the file is gone. Nobody takes it for
 * damage.
 */
const CHUNK_BYTES = 4 * DISCARD_STEP_BYTES;
const EVENT_BYTES = 1_000_000;
const FIRST = 'chunk-000000.000000';
/** Of the first chunk file; what lies behind it is cut before the file goes. */
const HELD_AT = 2 * DISCARD_STEP_BYTES;

/** Holds whoever reads the first chunk behind `HELD_AT` until it is let go. */
class HeldStorage extends FilesystemStorage {
  readonly #reached = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();
  get reached(): Promise<void> {
    return this.#reached.promise;
  }
  release(): void {
    this.#released.resolve();
  }

  override async open(name: string, access: 'read' | 'write'): Promise<StorageFile> {
    const file = await super.open(name, access);
    if (name !== FIRST) return file;
    const read = async (position: number, length: number, into?: Uint8Array) => {
      // The footer is read at the beginning.
      if (position + length > HELD_AT && position < CHUNK_BYTES - EVENT_BYTES) {
        this.#reached.resolve();
        await this.#released.promise;
      }
      return file.read(position, length, into);
    };
    return {
      path: file.path,
      get size() {
        return file.size;
      },
      read,
      writeAt: (...of) => file.writeAt(...of),
      truncate: (size) => file.truncate(size),
      sync: () => file.sync(),
      seal: () => file.seal(),
      close: () => file.close(),
    };
  }
}

let root = '';
let held: HeldStorage;
let open: DirectoryStore;
/** Jobs that read through `held`. */
const heldNames = new Set([EXPLAIN_JOB, DRY_RUN_JOB, VERIFY_CHUNK_JOB]);
let jobs: Jobs;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'skua-replaced-'));
  held = new HeldStorage({ root, isBlocking: true });
  const storage = new FilesystemStorage({ root });
  const scavengeStates = new MemoryScavengeStates();
  const over = (of: Storage) =>
    new InlineJobs({
      jobs: JOBS,
      storage: of,
      digests: nodeDigests,
      ids: systemIds,
      clock: systemClock,
      scavengeStates,
    });
  const [plain, holding] = [over(storage), over(held)];
  jobs = {
    run: (name, args, options) => (heldNames.has(name) ? holding : plain).run(name, args, options),
    close: async () => {
      await Promise.all([plain.close(), holding.close()]);
    },
  };
  open = await openTestStore({
    storage,
    jobs,
    scavengeStates,
    clock: systemClock,
    ids: systemIds,
    chunkSizeBytes: CHUNK_BYTES,
    verifyChunks: false,
  });
  await setMetadata(open, 'doomed', { $maxCount: 1 });
  for (let i = 0; i < 40; i++)
    await append(open, i % 2 === 0 ? 'doomed' : 'kept', 'thing', new Uint8Array(EVENT_BYTES).fill(i + 1));
});
afterEach(async () => {
  held.release();
  await open.close();
  await jobs.close();
  rmSync(root, { recursive: true, force: true });
});

/** Scavenges, and waits until the file that was replaced has been cut and is gone. */
async function replaceFirst(): Promise<void> {
  await open.scavenger.start({ threshold: -1 });
  await open.scavenger.idle();
  expect(open.scavenger.last()).toMatchObject({ result: 'Success' });
  expect(readdirSync(root)).not.toContain(FIRST);
  while (readdirSync(root).some((name) => name.endsWith(GONE))) await systemClock.yield();
}

describe('a reader that is held in a chunk which is replaced and cut', () => {
  it('explains the stream from the file that took its place', async () => {
    const explaining = open.scavenger.explain('kept');
    await held.reached;
    await replaceFirst();
    held.release();
    const explanation = await explaining;
    expect(explanation).toEqual(await open.scavenger.explain('kept'));
    expect(explanation.kept.reduce((sum, { count }) => sum + count, 0)).toBe(20);
  });

  it('explains a stream of which the scavenge has removed the rest', async () => {
    const explaining = open.scavenger.explain('doomed');
    await held.reached;
    await replaceFirst();
    held.release();
    expect(await explaining).toMatchObject({ lastEventNumber: 19, kept: [{ from: 19, to: 19, count: 1 }] });
  });

  it.each([
    [VERIFY_CHUNK_JOB, () => ({ name: FIRST })],
    [
      DRY_RUN_JOB,
      () => ({
        scavengeId: 'x',
        settings: runSettings({ position: CHUNK_BYTES }),
        files: { chunkSize: CHUNK_BYTES, chunks: [{ name: FIRST, ongoingBytes: null }], tables: [], memTables: [] },
      }),
    ],
  ])('%s, which reads it from end to end, is told that it is gone', async (name, args) => {
    const running = jobs.run(name, args()).then(
      () => 'done',
      (error: unknown) => (isSkuaError(error, 'file_not_found') ? 'gone' : error),
    );
    await held.reached;
    await replaceFirst();
    held.release();
    expect(await running).toBe('gone');
  });

  it('proves what was erased, in the files of now', async () => {
    const search = checkErasure({ storage: held, stream: 'kept' });
    const files = new Set<string>();
    const run = (async () => {
      for (;;) {
        const next = await search.next();
        if (next.done === true) return next.value;
        if (next.value.kind === 'trace') files.add(next.value.file);
      }
    })();
    await held.reached;
    await replaceFirst();
    held.release();
    await run;
    expect([...files].filter((file) => file.startsWith('chunk-000000.') && file !== FIRST)).toHaveLength(1);
  });
});
