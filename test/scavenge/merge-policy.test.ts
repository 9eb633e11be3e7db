import { describe, expect, it } from 'vitest';
import { isWorthCopying, mergeGroups } from '../../core/scavenge/merge-policy.ts';
import { Random } from '../support/random.ts';

/** Which neighbours a run merges, and what many runs write for it. */

describe('groups of one pass that merges always', () => {
  const chunks = (...sizes: number[]) => sizes.map((dataBytes, i) => ({ startNumber: i, endNumber: i, dataBytes }));
  const groups = (given: { startNumber: number; endNumber: number; dataBytes: number }[]) =>
    mergeGroups(given, { chunkSize: 100, always: true }).map((group) => group.map((chunk) => chunk.startNumber));

  it('takes neighbours as long as they fit one chunk', () => {
    expect(groups(chunks(50, 50, 50, 50, 1))).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(groups(chunks(60, 50, 50, 0, 0, 1))).toEqual([[1, 2, 3, 4]]);
    expect(groups(chunks(100, 100, 100))).toEqual([]);
    expect(groups(chunks(100, 0, 100, 0))).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(groups(chunks(120, 10, 10))).toEqual([[1, 2]]);
    expect(groups(chunks(5))).toEqual([]);
    expect(groups([])).toEqual([]);
  });

  it('takes chunks that were merged before, and no two with a gap between them', () => {
    expect(
      groups([
        { startNumber: 0, endNumber: 3, dataBytes: 10 },
        { startNumber: 4, endNumber: 4, dataBytes: 10 },
      ]),
    ).toEqual([[0, 4]]);
    expect(
      groups([
        { startNumber: 0, endNumber: 0, dataBytes: 10 },
        { startNumber: 2, endNumber: 2, dataBytes: 10 },
        { startNumber: 3, endNumber: 3, dataBytes: 10 },
      ]),
    ).toEqual([[2, 3]]);
  });
});

describe('groups of one pass', () => {
  const groups = (...sizes: number[]) =>
    mergeGroups(
      sizes.map((dataBytes, i) => ({ startNumber: i, endNumber: i, dataBytes })),
      { chunkSize: 100, always: false },
    ).map((group) => group.map((chunk) => chunk.startNumber));

  it('are all that fit one file, once a chunk follows that does not', () => {
    expect(groups(50, 50, 50, 50, 1)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(groups(80, 1, 15, 90)).toEqual([[0, 1, 2]]);
  });

  it('leave the last file as it is beside what is less than a quarter of it', () => {
    expect(groups(80, 19)).toEqual([]);
    expect(groups(80, 20)).toEqual([[0, 1]]);
    expect(groups(80, 15, 3)).toEqual([]);
    expect(groups(80, 15, 5)).toEqual([[0, 1, 2]]);
    expect(groups(80, 1, 1)).toEqual([[1, 2]]);
    expect(groups(80, 0)).toEqual([]);
    expect(groups(80, 0, 0)).toEqual([[1, 2]]);
  });

  it('take what is small before something larger', () => {
    expect(groups(1, 80)).toEqual([[0, 1]]);
    expect(groups(60, 1, 30)).toEqual([[0, 1, 2]]);
    expect(groups(5)).toEqual([]);
    expect(groups()).toEqual([]);
  });
});

describe('many runs, each behind a chunk of its own', () => {
  const CHUNK = 1_048_576;
  const SIZES: Readonly<Record<string, (random: Random, run: number) => number>> = {
    'of the same size': () => 900,
    'idle and busy': (_, run) => (run % 7 === 6 ? 300_000 : 900),
    'large and small in turn': (_, run) => (run % 2 === 0 ? 90_000 : 700),
    'of any size': (random) => Math.floor(2 ** (random.int(0, 20_000) / 1_000)),
    'smaller and smaller': (_, run) => Math.max(1, CHUNK >> (run % 20)),
    'mostly empty': (random) => (random.chance(0.8) ? 0 : random.int(1, 50_000)),
  };

  interface File {
    readonly startNumber: number;
    readonly endNumber: number;
    readonly dataBytes: number;
    /** Chunks that came by themselves, and how often each was written anew. */
    readonly arrived: { readonly bytes: number; times: number }[];
  }

  it.each(Object.entries(SIZES))('write each byte few times, and leave few files (%s)', (_, sizeOf) => {
    for (let seed = 0; seed < 8; seed++) {
      const random = new Random(seed);
      let files: File[] = [];
      let totalBytes = 0;
      let smallest = CHUNK;
      for (let run = 0; run < 400; run++) {
        const bytes = sizeOf(random, run);
        totalBytes += bytes;
        if (bytes > 0) smallest = Math.min(smallest, bytes);
        files.push({ startNumber: run, endNumber: run, dataBytes: bytes, arrived: [{ bytes, times: 0 }] });
        files = mergedFiles(files);
        expect(mergeGroups(files, { chunkSize: CHUNK, always: false })).toEqual([]);
        const openMax = 2 + Math.log(CHUNK / smallest) / Math.log(4);
        expect(files.length).toBeLessThanOrEqual((2 * totalBytes) / CHUNK + 1 + openMax);
      }
      for (const { bytes, times } of files.flatMap(({ arrived }) => arrived)) {
        if (bytes > 0) expect(times).toBeLessThanOrEqual(2 + Math.log(CHUNK / bytes) / Math.log(1.25));
      }
      const written = files.flatMap(({ arrived }) => arrived).reduce((sum, { bytes, times }) => sum + bytes * times, 0);
      expect(written).toBeLessThanOrEqual(totalBytes * (2 + Math.log(CHUNK / smallest) / Math.log(1.25)));
    }
  });

  /** What one run makes of the files. */
  function mergedFiles(files: readonly File[]): File[] {
    const out = [...files];
    for (const group of mergeGroups(files, { chunkSize: CHUNK, always: false })) {
      const arrived = group.flatMap((file) => file.arrived);
      for (const one of arrived) one.times++;
      out.splice(out.indexOf(group[0]!), group.length, {
        startNumber: group[0]!.startNumber,
        endNumber: group.at(-1)!.endNumber,
        dataBytes: group.reduce((sum, file) => sum + file.dataBytes, 0),
        arrived,
      });
    }
    return out;
  }

  it('write nothing anew that is more than four times as large', () => {
    expect(isWorthCopying(4, 1)).toBe(true);
    expect(isWorthCopying(5, 1)).toBe(false);
    expect(isWorthCopying(0, 0)).toBe(true);
  });
});
