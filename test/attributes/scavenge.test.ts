import { describe, expect, it } from 'vitest';
import { encodeText } from '../../core/base/text.ts';
import { readBatches } from '../../core/index/format/table-scan.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { type Log, silentLog } from '../../core/ports/log.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { ScavengeStates } from '../../core/ports/scavenge-state.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY, type NewEvent } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { contentOf, putFile } from '../log/kit.ts';
import { HookedJobs } from '../scavenge/control-kit.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { isCrash } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { findingsOf } from '../support/damage.ts';
import { naive, newEvent, openIndexed, positionsOf, set } from './world.ts';

const DATA = encodeText(JSON.stringify({ text: 'x'.repeat(2_500) }));
const SMALL = { memTableEntriesMax: 40, tablesPerLevelMax: 2 };

interface World {
  readonly storage: Storage;
  readonly jobs: HookedJobs;
  readonly open: DirectoryStore;
}

async function openWorld(
  storage: Storage,
  states: ScavengeStates = new MemoryScavengeStates(),
  seed = 1,
  log: Log = silentLog,
): Promise<World> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(seed);
  const jobs = new HookedJobs(
    new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates: states }),
  );
  const open = await openIndexed({ storage, clock, ids, jobs, log, scavengeStates: states, attributes: SMALL });
  return { storage, jobs, open };
}

async function append(open: DirectoryStore, stream: string, ...events: NewEvent[]): Promise<void> {
  await open.store.append(
    stream,
    ANY,
    events.map((event) => ({ ...event, data: DATA })),
  );
}

async function setMetadata(open: DirectoryStore, stream: string, metadata: object): Promise<void> {
  const data = encodeText(JSON.stringify(metadata));
  await open.store.append(`$$${stream}`, ANY, [{ ...newEvent('$metadata'), data }]);
}

/** Every other event is of a stream that keeps one. */
async function fill(open: DirectoryStore, events: number): Promise<void> {
  await setMetadata(open, 'doomed-1', { $maxCount: 1 });
  for (let n = 0; n < events; n++)
    await append(
      open,
      n % 2 === 0 ? 'doomed-1' : 'kept-1',
      newEvent(`type-${n % 3}`, { $correlationId: `c-${n % 4}`, $tags: [`t-${n % 2}`, `u-${n % 5}`] }),
    );
}

async function scavenge({ open }: Pick<World, 'open'>): Promise<void> {
  await open.scavenger.start();
  await open.scavenger.idle();
  expect(open.scavenger.last()).toMatchObject({ result: 'Success', error: null });
}

/** Where the log begins to be one that the last scavenge has not seen. */
async function pointOf({ store }: DirectoryStore): Promise<number> {
  const { events } = await store.readStream('$scavengePoints', { direction: 'backward', from: 'end', count: 1 });
  return events[0]!.position;
}

/**
 * What is wrong: entries of tables that name no record before the point, and living events that are not found. An event
 * that a scavenge has emptied has entries, and no reader sees it.
 */
async function wrongAfter({ storage, open }: World): Promise<string[]> {
  const wrong: string[] = [];
  const records = new Set((await readRawLog(storage)).map(({ position }) => position));
  const point = await pointOf(open);
  for (const { name, tables } of open.attributes!.open) {
    const release = await tables.holdMerges();
    for (const { file } of tables.tables())
      for await (const { positions, count } of readBatches(storage, file))
        for (let i = 0; i < count; i++)
          if (positions[i]! < point && !records.has(positions[i]!)) wrong.push(`${name} names ${positions[i]}`);
    release();
    const entries = open.attributes!.of(name)!;
    for (const [key, positions] of await naive(open, name, entries.coveredTo)) {
      const have = new Set(await positionsOf(entries, key));
      for (const position of positions) if (!have.has(position)) wrong.push(`${name} lacks ${key} at ${position}`);
    }
  }
  return wrong;
}

describe('a scavenge of a log with attribute indexes', () => {
  it('leaves no entry of a record that is gone, and all others', async () => {
    const world = await openWorld(new MemoryStorage());
    const { open, storage } = world;
    await set(open.store, { correlations: true, tags: true });
    await fill(open, 120);
    await open.attributes!.idle();
    const before = open.status().attributes.map(({ entries }) => entries);
    await scavenge(world);
    expect(world.jobs.ran.filter((name) => name === 'scavenge.execute-positions-table').length).toBeGreaterThan(5);
    expect(await wrongAfter(world)).toEqual([]);
    // Of 60 doomed events one has stayed, each with an entry for category, type and correlation, and two tags.
    const after = open.status().attributes.map(({ entries }) => entries);
    expect(before[1]! - after[1]!).toBe(59);
    expect(before[2]! - after[2]!).toBe(118);
    await open.close();
    expect(await findingsOf(storage)).toEqual([]);
  });

  it('costs no job while no chunk is scavenged', async () => {
    const world = await openWorld(new MemoryStorage());
    await append(world.open, 'kept-1', newEvent('thing'));
    await scavenge(world);
    expect(world.jobs.ran).toContain('scavenge.execute-table');
    expect(world.jobs.ran).not.toContain('scavenge.execute-positions-table');
    await world.open.close();
  });

  it.each(seedsFrom(1, bySize(4, 12, 100)))(
    'finds every living event and no other after random histories (seed %i)',
    async (seed) => {
      const random = new Random(seed);
      const storage = new MemoryStorage();
      const states = new MemoryScavengeStates();
      let world = await openWorld(storage, states, seed);
      await set(world.open.store, { correlations: random.chance(0.5), tags: random.chance(0.5) });
      for (let round = 0; round < 4; round++) {
        for (let n = random.int(10, 50); n > 0; n--) await doSome(world.open, random);
        await world.open.attributes!.idle();
        if (random.chance(0.4)) {
          await world.open.close();
          world = await openWorld(storage, states, seed * 10 + round);
        }
        await scavenge(world);
        expect(await wrongAfter(world)).toEqual([]);
      }
      await world.open.close();
      expect(await findingsOf(storage)).toEqual([]);
    },
  );
});

async function doSome(open: DirectoryStore, random: Random): Promise<void> {
  const stream = `${random.pick(['order', 'cart', 'plain'])}-${random.int(0, 3)}`;
  if (random.chance(0.06)) return open.store.deleteStream(stream, ANY, 'soft').then(noted, refused);
  if (random.chance(0.03)) return open.store.deleteStream(stream, ANY, 'hard').then(noted, refused);
  if (random.chance(0.08))
    return setMetadata(
      open,
      stream,
      random.pick([{ $maxCount: random.int(1, 5) }, { $tb: random.int(0, 9) }, {}]),
    ).catch(refused);
  const events = Array.from({ length: random.int(1, 3) }, () =>
    newEvent(
      `type-${random.int(0, 4)}`,
      random.pick([null, { $correlationId: `c-${random.int(0, 5)}` }, { $tags: [`t-${random.int(0, 3)}`, 'all'] }]),
    ),
  );
  await append(open, stream, ...events).catch(refused);
}

function noted(): void {}

function refused(error: unknown): void {
  if (!['stream_deleted', 'stream_not_found', 'wrong_expected_version'].includes((error as { code: string }).code))
    throw error;
}

describe('an attribute index that changes while a scavenge is at it', () => {
  it('may be switched off: the run goes on, and its folder goes', async () => {
    const world = await openWorld(new MemoryStorage());
    const { open, storage, jobs } = world;
    await set(open.store, { tags: true });
    await fill(open, 60);
    await open.attributes!.idle();
    jobs.hook = async (name, args, nth) => {
      if (name !== 'scavenge.execute-positions-table' || nth !== 1) return;
      expect(args['source']).toMatch(/^attributes\/names\//);
      await set(open.store, { names: false, tags: true });
      await open.attributes!.idle();
    };
    await scavenge(world);
    expect(await storage.list('attributes/names')).toEqual([]);
    expect(await wrongAfter(world)).toEqual([]);
    await open.close();
  });

  it('is given up and built anew where a table is damaged', async () => {
    const world = await openWorld(new MemoryStorage());
    const { open, storage, jobs } = world;
    await fill(open, 60);
    await open.attributes!.idle();
    jobs.hook = async (name, args, nth) => {
      if (name !== 'scavenge.execute-positions-table' || nth !== 1) return;
      const path = args['source'] as string;
      await putFile(storage, path, (await contentOf(storage, path)).subarray(0, 300));
    };
    await scavenge(world);
    await open.attributes!.idle();
    expect(open.status().attributes[0]).toMatchObject({ state: 'live' });
    expect(await wrongAfter(world)).toEqual([]);
    await open.close();
    expect(await findingsOf(storage)).toEqual([]);
  });
});

it('what an attribute index can not write of its memory stays until a later run, and fails none', async () => {
  const storage = new FaultyStorage();
  const warnings: string[] = [];
  const world = await openWorld(storage, new MemoryScavengeStates(), 1, {
    ...silentLog,
    warn: (message) => warnings.push(message),
  });
  const { open } = world;
  await set(open.store, { names: false, correlations: true });
  // Fewer than fill a memtable.
  await fill(open, 34);
  await open.attributes!.idle();
  storage.failWhen((op, path) => (op === 'create' && path.startsWith('attributes/') ? 'disk_full' : undefined));
  await scavenge(world);
  expect(warnings.filter((message) => message.includes('could not be written'))).toHaveLength(1);
  expect(open.status().attributes[1]).toMatchObject({ state: 'live', entries: 34 });
  storage.failWhen(undefined);
  await scavenge(world);
  expect(await wrongAfter(world)).toEqual([]);
  expect(open.status().attributes[1]).toMatchObject({ state: 'live', entries: 18 });
  await open.close();
});

describe('attribute indexes that are scavenged when the power fails', () => {
  async function prepared(storage: FaultyStorage, log: Log): Promise<{ world: World; states: ScavengeStates }> {
    const states = new MemoryScavengeStates();
    const world = await openWorld(storage, states, 1, log);
    await set(world.open.store, { tags: true });
    await fill(world.open, 40);
    await world.open.attributes!.idle();
    return { world, states };
  }

  it('have every living event after a crash at any call, and nothing else once the run has ended', async () => {
    const dry = new FaultyStorage();
    let [first, last] = [0, 0];
    const log: Log = {
      ...silentLog,
      info: (message) => {
        if (message.includes('Phase started: Index execution')) first = dry.operations;
        if (message.includes('Phase completed: Index execution')) last = dry.operations;
      },
    };
    const { world: undisturbed } = await prepared(dry, log);
    await scavenge(undisturbed);
    await undisturbed.open.close();
    expect(last - first).toBeGreaterThan(60);
    for (let n = first + 1; n <= last; n += bySize(9, 2, 1)) {
      const storage = new FaultyStorage();
      const { world, states } = await prepared(storage, silentLog);
      storage.crashAt(n);
      try {
        await world.open.scavenger.start();
        await world.open.scavenger.idle();
        await world.open.close();
      } catch (error) {
        if (!isCrash(error) && !storage.isCrashed) throw error;
        await world.open.close().catch(() => {});
      }
      for (const mode of ['drop', 'partial', 'clean'] as const) {
        const after = storage.restart(mode, n);
        const warnings: string[] = [];
        // The database goes on with the first only; without it a run removes the same.
        const again = await openWorld(after, mode === 'drop' ? states : new MemoryScavengeStates(), 1_000 + n, {
          ...silentLog,
          warn: (message) => warnings.push(message),
        });
        expect(warnings.filter((message) => message.includes('discarded'))).toEqual([]);
        const lacks = (await wrongAfter(again)).filter((what) => what.includes('lacks'));
        expect(lacks, `operation ${n}, ${mode}`).toEqual([]);
        for (const { name, tables } of again.open.attributes!.open)
          expect(
            (await after.list(`attributes/${name}`)).filter((file) => file !== 'indexmap' && !file.endsWith('filter')),
          ).toHaveLength(tables.tables().length);
        await scavenge(again);
        expect(await wrongAfter(again), `operation ${n}, ${mode}`).toEqual([]);
        await again.open.close();
        expect([...after.violations, ...storage.violations]).toEqual([]);
      }
    }
  });
});
