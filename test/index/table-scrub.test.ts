import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOBS } from '../../core/jobs/jobs.ts';
import { SCRUB_AGAIN_AFTER_MS } from '../../core/log/scrubber/scrubber.ts';
import { SCRUBBED_TABLES_NAME } from '../../core/index/tables/table-scrub.ts';
import { PROVE_TABLE_JOB, type VerifyTableArgs } from '../../core/index/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { damage } from './world.ts';

const FIRST_MS = 10_000;
const LOOK_MS = 60_000;
const PROOFS = `index/${SCRUBBED_TABLES_NAME}`;
const TABLE = /^[0-9a-f-]{36}$/;

interface Node {
  readonly open: DirectoryStore;
  readonly clock: ManualClock;
  /** Tables of the stream index that were proved in the background, with the limit of each. */
  readonly proved: string[];
  readonly warnings: string[];
  outcome: string;
}

let folder: string;
let ids: SeededIds;
let nowMs: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-table-scrub-'));
  ids = new SeededIds(11);
  nowMs = TEST_NOW_MS;
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const storageOf = (): Storage => new FilesystemStorage({ root: folder });

async function start(options: { verifyIndex?: boolean; tablesPerLevelMax?: number } = {}): Promise<Node> {
  const storage = storageOf();
  const clock = new ManualClock(nowMs, 'microtask');
  const scavengeStates = MemoryScavengeStates.of(storage);
  const inner = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates });
  const proved: string[] = [];
  const warnings: string[] = [];
  const jobs = {
    close: () => inner.close(),
    run: (name: string, args: unknown, given?: object) => {
      const { path, bytesPerSecond } = args as VerifyTableArgs;
      // Tables of attribute indexes are proved beside them, in any order.
      if (name === PROVE_TABLE_JOB && path.startsWith('index/')) proved.push(`${path} ${bytesPerSecond}`);
      return inner.run(name, args, given);
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
    verifyChunks: true,
    tablesPerLevelMax: 100,
    ...options,
  });
  const node: Node = { open, clock, proved, warnings, outcome: 'going on' };
  void open.failed.then(({ code, data }) => {
    node.outcome = `${code} ${String(data['path'])}`;
  });
  return node;
}

let nextId = 0;
async function append({ open }: Node): Promise<void> {
  for (let i = 0; i < 20; i++)
    await open.store.append(`s-${i % 3}`, ANY, [
      {
        id: `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`,
        type: 'made',
        isJson: false,
        data: new Uint8Array(8),
        metadata: new Uint8Array(0),
      },
    ]);
}

/** Time passes, and everything is done that it brings about. */
async function pass(node: Node, ms: number, until: () => boolean = () => true): Promise<void> {
  nowMs += ms;
  await node.clock.advance(ms);
  // Files are read by another thread, so turns are taken until what is expected is there, however long that takes.
  do
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  while (!until());
}

/** A directory that was stopped cleanly, whose one table was proved; gives the path of that. */
async function stopped(): Promise<string> {
  const first = await start();
  await append(first);
  await first.open.close();
  const [name] = (await storageOf().list('index')).filter((found) => TABLE.test(found));
  // A time that can be set again exactly.
  await utimes(join(folder, 'index', name!), 1_700_000_000, 1_700_000_000);
  // The table that the stop wrote is proved by the next start.
  await (await start()).open.close();
  return `index/${name!}`;
}

/** Changes a byte of a file, as a disk does: nothing else about the file is different. */
async function flip(path: string): Promise<void> {
  await damage(storageOf(), path, 140);
  await utimes(join(folder, path), 1_700_000_000, 1_700_000_000);
}

const resets = ({ warnings }: Node): number =>
  warnings.filter((message) => message.includes('The index on disk is discarded')).length;
const hasProofs = async (): Promise<boolean> => (await storageOf().list('index')).includes(SCRUBBED_TABLES_NAME);

describe('tables that a clean stop left proven', () => {
  test('are believed by the next start, which takes the list away', async () => {
    const path = await stopped();
    expect(await hasProofs()).toBe(true);
    await flip(path);
    const node = await start();
    expect(resets(node)).toBe(0);
    expect(await hasProofs()).toBe(false);
    await node.open.close();
    expect(await hasProofs()).toBe(true);
  });

  test('are verified after a crash', async () => {
    const path = await stopped();
    const running = await start();
    await flip(path);
    // What a process leaves that is killed now: its directory as it is, without what its stop would write.
    const leaves = await hasProofs();
    await running.open.close();
    await storageOf().remove(PROOFS);
    expect(leaves).toBe(false);
    const node = await start();
    expect(resets(node)).toBe(1);
    await node.open.close();
  });

  test('are verified when their file has changed', async () => {
    const path = await stopped();
    await damage(storageOf(), path, 140);
    const node = await start();
    expect(resets(node)).toBe(1);
    expect(
      (await node.open.store.readStream('s-1', { direction: 'forward', from: 0, count: 10, resolveLinks: false }))
        .events.length,
    ).toBe(7);
    await node.open.close();
  });

  test('are verified when that is asked for', async () => {
    const path = await stopped();
    await flip(path);
    await (await storageOf().create('index/.forceverify')).close();
    const node = await start();
    expect(resets(node)).toBe(1);
    await node.open.close();
  });

  test('are verified when the list was changed or damaged', async () => {
    const path = await stopped();
    await flip(path);
    await damage(storageOf(), PROOFS, 90);
    const node = await start();
    expect(node.warnings.join()).toContain(SCRUBBED_TABLES_NAME);
    expect(resets(node)).toBe(1);
    await node.open.close();
  });

  test('are verified when they were proved in the future', async () => {
    const path = await stopped();
    await flip(path);
    nowMs -= 1_000;
    const node = await start();
    expect(resets(node)).toBe(1);
    await node.open.close();
  });
});

describe('in the background', () => {
  test('a proof is renewed when it is old, and damage ends the node and is not believed again', async () => {
    const path = await stopped();
    await flip(path);
    nowMs += SCRUB_AGAIN_AFTER_MS - FIRST_MS;
    const node = await start();
    await pass(node, FIRST_MS - 1);
    expect(node.proved).toEqual([]);
    // It is read so slowly that time must pass, whenever the job looks at it.
    while (node.outcome === 'going on') await pass(node, 100);
    expect(node.proved.at(-1)).toBe(`${path} 16777216`);
    expect(node.outcome).toBe(`index_corrupt ${path}`);
    await node.open.close();
    expect(await hasProofs()).toBe(false);
    const next = await start();
    expect(resets(next)).toBe(1);
    await next.open.close();
  });

  test('a table that was written since the start is proved once', async () => {
    const node = await start();
    await append(node);
    await node.open.close();
    const next = await start();
    await append(next);
    await next.open.close();
    // Two tables, of which the start verifies both, and merges them: the merged one is new.
    const last = await start({ tablesPerLevelMax: 2 });
    await pass(last, FIRST_MS, () => last.open.status().indexMerges === 1);
    await pass(last, LOOK_MS, () => last.proved.length > 0);
    const [table] = (await storageOf().list('index')).filter((name) => TABLE.test(name));
    expect(last.proved).toEqual([`index/${table} 0`]);
    await pass(last, LOOK_MS);
    expect(last.proved.length).toBe(1);
    await last.open.close();
  });
});

test('where tables are not to be verified, nothing is proved and nothing written down', async () => {
  await stopped();
  const node = await start({ verifyIndex: false });
  await pass(node, FIRST_MS + LOOK_MS);
  expect(node.proved).toEqual([]);
  await node.open.close();
  expect(await hasProofs()).toBe(false);
});
