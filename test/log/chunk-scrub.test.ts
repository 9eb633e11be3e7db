import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOBS } from '../../core/jobs/jobs.ts';
import { SCRUB_AGAIN_AFTER_MS, SCRUB_AGAIN_BYTES_PER_SECOND } from '../../core/log/scrubber/scrubber.ts';
import { VERIFY_CHUNK_JOB, type VerifyChunkArgs } from '../../core/log/scrub/scrub.ts';
import { SCRUBBED_CHUNKS_FILE } from '../../core/log/format/scrubbed-file.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { bytesOf, findingsOf, flipPayload } from '../support/damage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

const CHUNK_BYTES = 65_536;
const DAY_MS = 86_400_000;
const FIRST_MS = 10_000;
const LOOK_MS = 60_000;
const [FIRST, SECOND, THIRD] = ['chunk-000000.000000', 'chunk-000001.000000', 'chunk-000002.000000'] as const;

interface Node {
  readonly open: DirectoryStore;
  readonly clock: ManualClock;
  /** Chunks that were proved, in order, with the limit of each. */
  readonly proved: string[];
  readonly warnings: string[];
  outcome: string;
}

let ids: SeededIds;
beforeEach(() => {
  ids = new SeededIds(9);
});

/** Every node starts a day after the one before it. */
let today = TEST_NOW_MS;

async function start(storage: Storage, nowMs = (today += DAY_MS)): Promise<Node> {
  const clock = new ManualClock(nowMs, 'microtask');
  const scavengeStates = MemoryScavengeStates.of(storage);
  const inner = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates });
  const proved: string[] = [];
  const warnings: string[] = [];
  const jobs = {
    close: () => inner.close(),
    run: (name: string, args: unknown, options?: object) => {
      const { name: chunk, bytesPerSecond = 0 } = args as VerifyChunkArgs;
      if (name === VERIFY_CHUNK_JOB) proved.push(bytesPerSecond === 0 ? chunk : `${chunk} ${bytesPerSecond}`);
      return inner.run(name, args, options);
    },
  };
  const log: Log = {
    debug() {},
    info() {},
    error() {},
    warn: (message) => {
      warnings.push(message);
    },
  };
  const open = await openTestStore({
    storage,
    clock,
    ids,
    jobs,
    log,
    scavengeStates,
    chunkSizeBytes: CHUNK_BYTES,
    verifyChunks: true,
  });
  const node: Node = { open, clock, proved, warnings, outcome: 'going on' };
  void open.failed.then(({ code, data }) => {
    node.outcome = `${code} ${String(data['file'])}`;
  });
  return node;
}

let nextId = 0;
async function append({ open }: Pick<Node, 'open'>, count: number): Promise<void> {
  for (let i = 0; i < count; i++)
    await open.store.append('s', ANY, [
      {
        id: `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`,
        type: 'made',
        isJson: false,
        data: new Uint8Array(4_000).fill(7),
        metadata: new Uint8Array(0),
      },
    ]);
}

/** Time passes, and everything is done that it brings about. */
async function pass({ clock }: Node, ms: number): Promise<void> {
  await clock.advance(ms);
  for (let i = 0; i < 300; i++)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}

const proofsOf = (node: Node) => node.open.status().proofs!;

async function filled(storage: Storage, events = 40): Promise<void> {
  const node = await start(storage);
  await append(node, events);
  await node.open.close();
}

describe('completed chunks', () => {
  test('are proved in the background, newest first, and not again after a start', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    expect(await storage.list('')).not.toContain(SCRUBBED_CHUNKS_FILE);
    const first = await start(storage);
    const sizes = (await storage.size(FIRST))! + (await storage.size(SECOND))!;
    expect(proofsOf(first)).toEqual({ bytesUnproven: sizes, oldestProofAgeMs: null });
    await pass(first, FIRST_MS);
    expect(first.proved).toEqual([SECOND, FIRST]);
    expect(proofsOf(first)).toEqual({ bytesUnproven: 0, oldestProofAgeMs: 0 });
    // Reads and appends went on all along; what is completed meanwhile is proved too.
    await append(first, 20);
    expect(proofsOf(first).bytesUnproven).toBe(await storage.size(THIRD));
    await pass(first, LOOK_MS);
    expect(first.proved).toEqual([SECOND, FIRST, THIRD]);
    expect(proofsOf(first)).toEqual({ bytesUnproven: 0, oldestProofAgeMs: LOOK_MS });
    await first.open.close();
    expect(await storage.list('')).toContain(SCRUBBED_CHUNKS_FILE);
    expect(await findingsOf(storage)).toEqual([]);
    const second = await start(storage);
    await pass(second, FIRST_MS);
    expect(second.proved).toEqual([]);
    expect(proofsOf(second).bytesUnproven).toBe(0);
    expect(proofsOf(second).oldestProofAgeMs).toBeGreaterThan(DAY_MS - LOOK_MS);
    await second.open.close();
  });

  test('are proved again when the proof is old, slowly, oldest first', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    const first = await start(storage);
    await pass(first, FIRST_MS);
    await first.open.close();
    const second = await start(storage, today + SCRUB_AGAIN_AFTER_MS + FIRST_MS + 1);
    await pass(second, FIRST_MS);
    await pass(second, LOOK_MS);
    expect([...second.proved].sort()).toEqual([
      `${FIRST} ${SCRUB_AGAIN_BYTES_PER_SECOND}`,
      `${SECOND} ${SCRUB_AGAIN_BYTES_PER_SECOND}`,
    ]);
    expect(proofsOf(second).oldestProofAgeMs).toBeLessThanOrEqual(LOOK_MS + FIRST_MS);
    await second.open.close();
  });

  test('that changed since their proof are proved anew', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    const first = await start(storage);
    await pass(first, FIRST_MS);
    await first.open.close();
    // The same bytes, written once more.
    const bytes = await bytesOf(storage, SECOND);
    const file = await storage.open(SECOND, 'write');
    await file.writeAt(0, bytes);
    await file.close();
    const second = await start(storage);
    await pass(second, FIRST_MS);
    expect(second.proved).toEqual([SECOND]);
    await second.open.close();
  });

  test('with damage end the node, and are never taken for proved', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    await flipPayload(storage, FIRST);
    for (const round of [1, 2]) {
      const node = await start(storage);
      await pass(node, FIRST_MS);
      expect([node.outcome, round]).toEqual([`log_corrupt ${FIRST}`, round]);
      expect(proofsOf(node).bytesUnproven).toBe(await storage.size(FIRST));
      await node.open.close();
    }
  });

  test('whose damage a scavenge meets are looked at at once, whatever an earlier proof said', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    const node = await start(storage);
    await pass(node, FIRST_MS);
    expect(proofsOf(node).bytesUnproven).toBe(0);
    await flipPayload(storage, FIRST);
    await node.open.scavenger.start({ threshold: -1 });
    await node.open.scavenger.idle();
    expect(node.open.scavenger.last()).toMatchObject({ result: 'Errored' });
    expect(proofsOf(node).bytesUnproven).toBeGreaterThan(0);
    await pass(node, LOOK_MS);
    expect(node.outcome).toBe(`log_corrupt ${FIRST}`);
    await node.open.close();
  });

  test('that were rewritten are proved under their new names', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    const node = await start(storage);
    await pass(node, FIRST_MS);
    await node.open.scavenger.start({ threshold: -1 });
    await node.open.scavenger.idle();
    expect(node.open.scavenger.last()).toMatchObject({ result: 'Success' });
    expect(proofsOf(node).bytesUnproven).toBeGreaterThan(0);
    await pass(node, LOOK_MS);
    expect(proofsOf(node).bytesUnproven).toBe(0);
    await node.open.close();
    const again = await start(storage);
    await pass(again, FIRST_MS);
    expect(again.proved).toEqual([]);
    await again.open.close();
  });

  test.each([
    ['is cut short', (bytes: Uint8Array) => bytes.subarray(0, bytes.length - 5)],
    ['has another byte', (bytes: Uint8Array) => bytes.map((byte, i) => (i === bytes.length - 3 ? byte ^ 1 : byte))],
    ['is something else', () => new Uint8Array(300).fill(255)],
    ['is empty', () => new Uint8Array(0)],
  ])('are all proved anew when the file %s', async (_, change) => {
    const storage = new MemoryStorage();
    await filled(storage);
    const first = await start(storage);
    await pass(first, FIRST_MS);
    await first.open.close();
    const bytes = change(Uint8Array.from(await bytesOf(storage, SCRUBBED_CHUNKS_FILE)));
    await storage.remove(SCRUBBED_CHUNKS_FILE);
    const file = await storage.create(SCRUBBED_CHUNKS_FILE);
    await file.writeAt(0, bytes);
    await file.close();
    const second = await start(storage);
    await pass(second, FIRST_MS);
    expect(second.proved).toEqual([SECOND, FIRST]);
    expect(second.warnings.join()).toContain(SCRUBBED_CHUNKS_FILE);
    await second.open.close();
    const third = await start(storage);
    await pass(third, FIRST_MS);
    expect(third.proved).toEqual([]);
    await third.open.close();
  });

  test('are proved anew where the proof is of a time to come', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    const first = await start(storage, today + 3 * DAY_MS);
    await pass(first, FIRST_MS);
    await first.open.close();
    const second = await start(storage);
    await pass(second, FIRST_MS);
    expect(second.proved).toEqual([SECOND, FIRST]);
    await second.open.close();
  });
});

describe('on a disk', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'skua-proofs-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  test('proofs outlive a start, and not a change of the file', async () => {
    const storage = new FilesystemStorage({ root: folder });
    await filled(storage);
    const settled = async (node: Node, isDone: () => boolean): Promise<void> => {
      while (!isDone()) await pass(node, FIRST_MS / 10);
    };
    const first = await start(storage);
    await settled(first, () => proofsOf(first).bytesUnproven === 0);
    expect(proofsOf(first).bytesUnproven).toBe(0);
    await first.open.close();
    await flipPayload(storage, SECOND);
    const second = await start(storage);
    await settled(second, () => second.outcome !== 'going on');
    expect([second.proved, second.outcome]).toEqual([[SECOND], `log_corrupt ${SECOND}`]);
    await second.open.close();
  });
});
