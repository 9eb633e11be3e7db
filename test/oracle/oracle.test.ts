import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { EventStore } from '../../core/streams/api.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { findFormatErrors } from '../support/check-directory.ts';
import { collidingHasher } from '../support/colliding-hasher.ts';
import {
  ORACLE_SETS,
  fixturePath,
  installFiles,
  installFolder,
  loadOracle,
  manifest,
  oracleTimeMs,
  unpackHistory,
  unpackSet,
} from '../support/fixtures.ts';
import type { Oracle } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { allRow, readRow, readWholeAll, readWholeStream } from '../support/oracle.ts';
import { openTestStore } from '../support/test-store.ts';
import type { TestStoreOptions } from '../support/test-store.ts';
import { IS_LONG_RUN, bySize } from '../support/run-size.ts';

/**
 * The recorded directories, read by us: the same answers as the reference database gave, event for event and position
 * for position, with the index as it came and with our own.
 */

/** Differences that are shown in full; a broken reader would otherwise print megabytes. */
const SHOWN_MAX = 5;

/** Fails with the first rows that differ. */
function expectRows(what: string, ours: readonly unknown[], theirs: readonly unknown[]): void {
  const differences: string[] = [];
  for (let i = 0; i < Math.max(ours.length, theirs.length) && differences.length < SHOWN_MAX; i++) {
    const a = JSON.stringify(ours[i]);
    const b = JSON.stringify(theirs[i]);
    if (a !== b) differences.push(`${what}, row ${i}:\n  ours   ${a}\n  theirs ${b}`);
  }
  expect(differences, `${what}: ${ours.length} rows, recorded ${theirs.length}`).toEqual([]);
}

async function expectAnswers(store: EventStore, oracle: Oracle): Promise<void> {
  const all = (await readWholeAll(store, 'forward', 1000)).map(allRow);
  expectRows('$all forward', all, oracle.all);
  const backward = (await readWholeAll(store, 'backward', 777)).map(allRow);
  expectRows('$all backward', backward.reverse(), oracle.all);
  for (const [stream, recorded] of Object.entries(oracle.reads)) {
    const forward = await readWholeStream(store, stream, 'forward', 500);
    const reverse = await readWholeStream(store, stream, 'backward', 499);
    if (!Array.isArray(recorded)) {
      expect(forward, `${stream} forward`).toEqual(recorded);
      expect(reverse, `${stream} backward`).toEqual(recorded);
      continue;
    }
    if (!Array.isArray(forward) || !Array.isArray(reverse))
      throw new Error(`${stream}: ${JSON.stringify(forward)}, recorded ${recorded.length} events`);
    expectRows(`${stream} forward`, forward.map(readRow), recorded);
    expectRows(`${stream} backward`, reverse.reverse().map(readRow), recorded);
  }
}

async function openSet(name: string, storage: Storage, options: Partial<TestStoreOptions> = {}) {
  const opened = await openTestStore({
    storage,
    clock: new ManualClock(oracleTimeMs(name), 'microtask'),
    writeEpoch: false,
    ...options,
  });
  expect(opened.chunkSizeBytes).toBe(manifest[name]!.chunkSize);
  return opened;
}

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skua-oracle-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe.each(ORACLE_SETS.filter((_, i) => i % bySize(2, 1) === 0))('%s', (name) => {
  const ways = [
    ['with the index as it came', false],
    ['with an index rebuilt from the log', true],
  ] as const;
  it.each(
    bySize<(typeof ways)[number][]>(
      [ways[ORACLE_SETS.indexOf(name) % 2]!],
      [ways[(ORACLE_SETS.indexOf(name) + 1) % 2]!],
      [...ways],
    ),
  )('answers as recorded %s', async (_, withoutIndex) => {
    const storage = new MemoryStorage();
    await installFiles(storage, unpackSet(name), { withoutIndex });
    const before = await tableNames(storage);
    const opened = await openSet(name, storage);
    if (!withoutIndex) expect(await tableNames(storage), 'the recorded index tables were used').toEqual(before);
    await expectAnswers(opened.store, loadOracle(name));
    await opened.close();
    // What closing wrote is an index of ours over a log of theirs: it must answer the same.
    const again = await openSet(name, storage);
    const all = (await readWholeAll(again.store, 'forward', 4096)).length;
    expect(all).toBe(loadOracle(name).all.length);
    await again.close();
  });
});

/** Names of the index tables, which are GUIDs. */
async function tableNames(storage: Storage): Promise<string[]> {
  return (await storage.list('index')).filter((name) => /^[0-9a-f-]{36}$/.test(name));
}

describe('hash collisions', () => {
  it.each(bySize(['transactions-2-deleted'], ['transactions-2-deleted', 'orders-2-scavenged']))(
    '%s answers as recorded when every stream has the same hash',
    async (name) => {
      const storage = new MemoryStorage();
      await installFiles(storage, unpackSet(name), { withoutIndex: true });
      const opened = await openSet(name, storage, { hasher: collidingHasher, memTableEntriesMax: 500 });
      await expectAnswers(opened.store, loadOracle(name));
      await opened.close();
    },
  );
});

describe('on the file system', () => {
  it.each(bySize(['transactions-3-scavenged'], ['orders-3-grown', 'transactions-3-scavenged', 'fresh']))(
    '%s answers as recorded',
    async (name) => {
      installFolder(folder, unpackSet(name));
      const opened = await openSet(name, new FilesystemStorage({ root: folder }));
      await expectAnswers(opened.store, loadOracle(name));
      await opened.close();
    },
  );
});

describe('writing to a recorded directory', () => {
  it.each(bySize(['crashed'], ['crashed', 'orders-5-scavenged', 'mid-3-completed', 'transactions-3-scavenged']))(
    '%s goes on: what was there stays, and the directory keeps the format',
    async (name) => {
      const storage = new MemoryStorage();
      await installFiles(storage, unpackSet(name));
      const oracle = loadOracle(name);
      const opened = await openSet(name, storage, { writeEpoch: true, memTableEntriesMax: 100 });
      const numbers = new Map<string, string[]>();
      for (let i = 0; i < 120; i++) {
        const stream = `added-${i % 7}`;
        const id = `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
        const data = new Uint8Array(4000).fill(i);
        const result = await opened.store.append(stream, (numbers.get(stream)?.length ?? 0) - 1, [
          { id, type: 'added', isJson: false, data, metadata: new Uint8Array(0) },
        ]);
        numbers.set(stream, [...(numbers.get(stream) ?? []), id]);
        expect(result.firstEventNumber).toBe(numbers.get(stream)!.length - 1);
      }
      await opened.close();
      expect(await findFormatErrors(storage)).toEqual([]);
      expect(await storage.size('skua.lock'), 'the lock is no file of the log').toBe(null);

      const again = await openSet(name, storage);
      const all = (await readWholeAll(again.store, 'forward', 1000)).map(allRow);
      expectRows('$all', all.slice(0, oracle.all.length), oracle.all);
      expect(all.slice(oracle.all.length).map((row) => row[5])).toEqual(
        Array.from({ length: 120 }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`),
      );
      for (const [stream, ids] of numbers) {
        const read = await readWholeStream(again.store, stream, 'forward', 5);
        expect(Array.isArray(read) && read.map((event) => event.id)).toEqual(ids);
      }
      for (const [stream, recorded] of Object.entries(oracle.reads)) {
        const read = await readWholeStream(again.store, stream, 'forward', 1000);
        expect(Array.isArray(read) ? read.map(readRow) : read, stream).toEqual(recorded);
      }
      await again.close();
      expect(await findFormatErrors(storage)).toEqual([]);
    },
  );
});

/** Everything that `$all` and the streams say, for comparing two openings. */
async function answersOf(store: EventStore): Promise<{ all: unknown[]; streams: Record<string, unknown> }> {
  const events = await readWholeAll(store, 'forward', 2000);
  const streams: Record<string, unknown> = {};
  for (const stream of new Set(events.map((event) => event.stream))) {
    const read = await readWholeStream(store, stream, 'forward', 1000);
    streams[stream] = Array.isArray(read) ? read.map(readRow) : read;
  }
  return { all: events.map(allRow), streams };
}

const now = Date.UTC(2026, 10, 21, 12);

describe('the interrupted scavenge', () => {
  it('opens, with either index', async () => {
    const answers = [];
    for (const withoutIndex of [false, true]) {
      const storage = new MemoryStorage();
      await installFiles(storage, unpackSet('mid-2-interrupted'), { withoutIndex });
      const opened = await openTestStore({ storage, clock: new ManualClock(now, 'microtask'), writeEpoch: false });
      answers.push(await answersOf(opened.store));
      await opened.close();
    }
    expect(answers[0]!.all.length).toBeGreaterThan(10_000);
    expect(answers[1]).toEqual(answers[0]);
  });
});

/** All 24 recorded histories lie beside the project where it was made; four of them are part of it. */
const HERE = fixturePath('histories');
const ALL_HISTORIES = process.env.SKUA_HISTORIES ?? fixturePath('../../../shared/fixtures/histories');
const archives = (at: string): string[] =>
  existsSync(at)
    ? readdirSync(at)
        .filter((name) => name.endsWith('.tar.gz'))
        .sort()
    : [];

/**
 * Where a rebuilt index knows more: a scavenge with a threshold took index entries of events that its chunks keep, and
 * later metadata asked for those events again.
 */
const MORE_IN_THE_LOG: Readonly<Record<string, readonly string[]>> = { '07.tar.gz 3-before': ['été-5'] };

/** Takes out the streams of which the rebuilt index shows older events too, and returns their names. */
function takeOutLonger(recorded: Record<string, unknown>, rebuilt: Record<string, unknown>): string[] {
  const longer = Object.keys(recorded).filter((stream) => {
    const [a, b] = [recorded[stream], rebuilt[stream]];
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      b.length > a.length &&
      JSON.stringify(b.slice(b.length - a.length)) === JSON.stringify(a)
    );
  });
  for (const stream of longer) {
    delete recorded[stream];
    delete rebuilt[stream];
  }
  return longer;
}

async function expectSameWithEitherIndex(archive: string): Promise<void> {
  const folders = unpackHistory(archive);
  expect([...folders.keys()]).toEqual(['1-before', '2-scavenged', '3-before', '4-scavenged']);
  for (const [name, files] of folders) {
    const answers = [];
    for (const withoutIndex of [false, true]) {
      const storage = new MemoryStorage();
      await installFiles(storage, files, { withoutIndex });
      const opened = await openTestStore({ storage, clock: new ManualClock(now, 'microtask'), writeEpoch: false });
      answers.push(await answersOf(opened.store));
      await opened.close();
    }
    expect(answers[0]!.all.length, name).toBeGreaterThan(100);
    const key = `${basename(archive)} ${name}`;
    expect(takeOutLonger(answers[0]!.streams, answers[1]!.streams), key).toEqual(MORE_IN_THE_LOG[key] ?? []);
    expect(answers[1], key).toEqual(answers[0]);
  }
}

describe('histories', () => {
  it.each(bySize(archives(HERE).slice(0, 2), archives(HERE)))(
    '%s reads the same with the recorded and with a rebuilt index',
    async (archive) => {
      await expectSameWithEitherIndex(join(HERE, archive));
    },
  );
  const others = archives(ALL_HISTORIES).filter((name) => !archives(HERE).includes(name));
  if (IS_LONG_RUN)
    it(`the ${others.length} others, where they are present`, async ({ skip }) => {
      if (others.length === 0) skip('The other recorded histories do not lie beside the project.');
      for (const archive of others) await expectSameWithEitherIndex(join(ALL_HISTORIES, archive));
    });
});
