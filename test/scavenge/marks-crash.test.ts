import { expect, test } from 'vitest';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { redact } from '../../core/streams/redact/redact.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { codeOf } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { bySize } from '../support/run-size.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { HASHERS } from './hashers.ts';
import { filesWith, linkTo, MARKER, paid, readEveryWay, type Ways } from './marks-kit.ts';
import { checkClosed } from './random-check.ts';

/**
 * The power fails at any storage operation of a life in which events are redacted, the store is opened again,
 * scavenged, redacted once more, and scavenged again.
 */

const EVERY = bySize(23, 7, 1);
const MODES = ['drop', 'keep', 'partial', 'clean'] as const;
const CHUNK_BYTES = 65_536;
const STREAMS = ['orders', 'other', 'links'];
/** Of `orders`, all with the marker. The last is the last event of its stream. */
const SECRET = [2, 5, 11];
const BY_ID = 5;
const LAST = 11;

const idOf = (n: number): string => `dddddddd-0000-4000-8000-${String(n).padStart(12, '0')}`;

interface Disk {
  readonly storage: FaultyStorage;
  readonly states: MemoryScavengeStates;
}

/** What requests of a life have been answered; what was asked for last may have taken effect, too. */
interface Told {
  readonly redacted: Set<number>;
  /** The second mark, which names metadata. */
  hasNamed: boolean;
  runs: number;
}

function open({ storage, states }: Disk, seed: number): Promise<DirectoryStore> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(seed);
  const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates: states });
  return openTestStore({
    storage,
    clock,
    ids,
    jobs,
    scavengeStates: states,
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: 20,
    verifyChunks: false,
  });
}

async function filled(): Promise<Disk> {
  const disk = { storage: new FaultyStorage({ seed: 9, reads: 'async' }), states: new MemoryScavengeStates() };
  const opened = await open(disk, 1);
  const { store } = opened;
  for (let n = 0; n < 12; n++) {
    await store.append('orders', ANY, [paid(idOf(n), SECRET.includes(n) ? MARKER : `harmless ${n}`)]);
    await store.append('other', ANY, [paid(idOf(100 + n), 'x'.repeat(6_000))]);
    await store.append('links', ANY, [linkTo(idOf(200 + n), 'orders', n)]);
  }
  await opened.close();
  return disk;
}

/** All of it, or up to the power loss. */
async function live(disk: Disk, seed: number, told: Told): Promise<void> {
  const ids = new SeededIds(seed + 1);
  const mark = async ({ store }: DirectoryStore, over: { numbers?: number[]; ids?: string[]; metadata?: string[] }) =>
    (await redact(store, ids, 'ann', { stream: 'orders', reason: 'a card', ...over })).events;
  try {
    let opened = await open(disk, seed);
    for (const { number } of await mark(opened, { numbers: [2, LAST] })) told.redacted.add(number);
    for (const { number } of await mark(opened, { ids: [idOf(BY_ID)] })) told.redacted.add(number);
    await opened.close();
    opened = await open(disk, seed + 2);
    await run(opened);
    await mark(opened, { numbers: [2], metadata: ['$correlationId'] });
    told.hasNamed = true;
    await run(opened);
    await opened.close();
  } catch (error) {
    if (!disk.storage.isCrashed || codeOf(error) === null) throw error;
  }

  async function run({ scavenger }: DirectoryStore): Promise<void> {
    await scavenger.start({ threads: 1 });
    await scavenger.idle();
    if (!disk.storage.isCrashed) expect(scavenger.last()).toMatchObject({ result: 'Success' });
    told.runs++;
  }
}

/** What is wrong with what readers see, in view of what they saw before anything was redacted. */
function compare(before: Ways, after: Ways, told: Told, isOver: boolean): string[] {
  const wrong: string[] = [];
  for (const [way, contents] of before) {
    const now = after.get(way)!;
    if (now.size !== contents.size) wrong.push(`${way} shows ${now.size} events, and before ${contents.size}`);
    for (const [key, content] of contents) {
      const number = /^(\d+)@orders$/.exec(key) === null ? -1 : Number.parseInt(key, 10);
      const id = idOf(number);
      const empty = `redacted  {"$correlationId":"c-${id}","$causationId":"x"}`;
      const named = 'redacted  {"$causationId":"x"}';
      const may = new Set<string>();
      if (!SECRET.includes(number)) may.add(content);
      else {
        if (!told.redacted.has(number)) may.add(content);
        if (number !== 2 || !told.hasNamed) may.add(empty);
        if (number === 2 && (told.hasNamed || told.runs > 0)) may.add(named);
        if (isOver) may.delete(content);
      }
      if (!may.has(now.get(key) ?? 'nothing')) wrong.push(`${way} shows ${key} as ${now.get(key)}`);
    }
  }
  return wrong;
}

test('what was acknowledged as redacted stays so, and in the end no file has it', async () => {
  const base = await filled();
  const copyOf = ({ storage, states }: Disk, mode: (typeof MODES)[number] = 'keep', seed = 1): Disk => ({
    storage: storage.restart(mode, seed),
    states: states.restart(0),
  });
  const reading = await open(copyOf(base), 3);
  const before = await readEveryWay(reading.store, STREAMS, 'links');
  await reading.close();
  expect(await filesWith(copyOf(base).storage, MARKER)).not.toEqual([]);
  const whole = copyOf(base);
  await live(whole, 10, { redacted: new Set(), hasNamed: false, runs: 0 });
  const { operations } = whole.storage;
  expect(operations).toBeGreaterThan(100);
  for (let n = 1; n <= operations; n += EVERY) {
    const told: Told = { redacted: new Set(), hasNamed: false, runs: 0 };
    const disk = copyOf(base);
    disk.storage.crashAt(n);
    await live(disk, 10, told);
    const left = copyOf(disk, MODES[n % 4]!, n);
    // Of every third the scavenge database is gone, too.
    const after = n % 3 === 0 ? { ...left, states: new MemoryScavengeStates() } : left;
    const opened = await open(after, 1_000 + n);
    expect(compare(before, await readEveryWay(opened.store, STREAMS, 'links'), told, false), `at ${n}`).toEqual([]);
    await opened.close();
    await live(after, 2_000 + n, told);
    const last = await open(after, 3_000 + n);
    expect(compare(before, await readEveryWay(last.store, STREAMS, 'links'), told, true), `at ${n}`).toEqual([]);
    await last.close();
    expect(await filesWith(after.storage, MARKER), `at ${n}`).toEqual([]);
    expect([...(await checkClosed(after.storage, HASHERS.plain)), ...after.storage.violations]).toEqual([]);
  }
});
