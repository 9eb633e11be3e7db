import { describe, expect, it } from 'vitest';
import { putI32, putI64 } from '../../core/base/bytes.ts';
import { loadIndexMap, saveIndexMap } from '../../core/index/format/index-map.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { VerifyFinding } from '../../core/integrity/verify/verify-run.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import type { VerifySummary } from '../../core/integrity/integrity.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { installFiles, SETS, unpackSet } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { contentOf, flip, patch, resize } from '../log/kit.ts';

interface Verdict {
  readonly findings: VerifyFinding[];
  readonly summary: VerifySummary;
}

async function verify(storage: Storage): Promise<Verdict> {
  const run = verifyDirectory({ storage, digests: nodeDigests, clock: new ManualClock(TEST_NOW_MS) });
  const findings: VerifyFinding[] = [];
  for (;;) {
    const next = await run.next();
    if (next.done === true) return { findings, summary: next.value };
    if (next.value.kind === 'finding') findings.push(next.value);
  }
}

async function digestOf(storage: Storage, path: string): Promise<string> {
  const file = await storage.open(path, 'read');
  const md5 = nodeDigests.md5();
  try {
    for (let at = 0; at < file.size; at += 1_048_576)
      md5.update(await file.read(at, Math.min(1_048_576, file.size - at)));
    return Buffer.from(md5.finish()).toString('hex');
  } finally {
    await file.close();
  }
}

/** MD5 of every file. */
async function everything(storage: Storage): Promise<Map<string, string>> {
  const all = new Map<string, string>();
  for (const folder of ['', 'index/', 'index/stream-existence/']) {
    for (const name of await storage.list(folder.replace(/\/$/, ''))) {
      if ((await storage.size(folder + name)) !== null) all.set(folder + name, await digestOf(storage, folder + name));
    }
  }
  return all;
}

const i32 = (value: number): Uint8Array => {
  const bytes = new Uint8Array(4);
  putI32(bytes, 0, value);
  return bytes;
};
const i64 = (value: number): Uint8Array => {
  const bytes = new Uint8Array(8);
  putI64(bytes, 0, value);
  return bytes;
};

const CHUNK_BYTES = 65_536;
const FIRST = 'chunk-000000.000000';
const SECOND = 'chunk-000001.000000';

/** A stopped directory of ours with three chunks and several index tables. */
async function ownDirectory(): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const opened = await openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES, memTableEntriesMax: 75 });
  for (let i = 0; i < 320; i++) {
    const id = `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
    await opened.store.append(`orders-${i % 7}`, -2, [
      { id, type: 'placed', isJson: false, data: new Uint8Array(300).fill(i), metadata: new Uint8Array(0) },
    ]);
  }
  await opened.close();
  return storage;
}

async function lastChunk(storage: Storage): Promise<string> {
  return (await storage.list('')).filter((name) => name.startsWith('chunk-')).at(-1)!;
}

/** Path of the largest index table. */
async function largestTable(storage: Storage): Promise<string> {
  const names = (await storage.list('index')).filter((name) => /^[0-9a-f-]{36}$/.test(name));
  const sizes = await Promise.all(names.map(async (name) => (await storage.size(`index/${name}`))!));
  return `index/${names[sizes.indexOf(Math.max(...sizes))]!}`;
}

describe('a sound directory', () => {
  it.each(SETS)('%s, recorded', async (set) => {
    const storage = new MemoryStorage();
    await installFiles(storage, unpackSet(set));
    const before = await everything(storage);
    const { findings, summary } = await verify(storage);
    expect(findings.filter((finding) => finding.severity === 'error')).toEqual([]);
    expect(summary.errors).toBe(0);
    expect(summary.events).toBeGreaterThan(0);
    expect(await everything(storage)).toEqual(before);
  });

  it('of our own, which is left as it was', async () => {
    const storage = await ownDirectory();
    const before = await everything(storage);
    const { findings, summary } = await verify(storage);
    expect(findings).toEqual([]);
    expect(summary.chunks).toBeGreaterThan(1);
    expect(summary.indexTables).toBeGreaterThan(0);
    expect(summary.indexEntries).toBeGreaterThanOrEqual(320);
    expect(await everything(storage)).toEqual(before);
  });

  it('of writes to several streams, before and after a scavenge, which keeps what it would keep of single ones', async () => {
    const storage = new MemoryStorage();
    let n = 0;
    const event = (type: string, data: Uint8Array, isJson = false) => ({
      id: `00000000-0000-4000-8000-${String(++n).padStart(12, '0')}`,
      type,
      isJson,
      data,
      metadata: new Uint8Array(0),
    });
    const open = () => openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES, memTableEntriesMax: 75 });
    const opened = await open();
    await opened.store.append('$$few', -2, [event('$metadata', new TextEncoder().encode('{"$maxCount":3}'), true)]);
    for (let i = 0; i < 150; i++) {
      const write = (stream: string) => ({
        stream,
        expectedVersion: -2,
        events: [event('placed', new Uint8Array(300).fill(i))],
      });
      await opened.store.appendToStreams([write('few'), write('all'), write('few'), write(`one-${i}`)]);
      if (i % 5 === 0) await opened.store.deleteStream(`one-${i}`, -2, i % 2 === 0 ? 'hard' : 'soft');
    }
    await opened.close();
    expect((await verify(storage)).findings).toEqual([]);
    const again = await open();
    await again.scavenger.start({ threshold: 0 });
    await again.scavenger.idle();
    const numbers = async (stream: string) =>
      (await again.store.readStream(stream, { direction: 'forward', from: 0, count: 400 })).events.map(
        ({ number }) => number,
      );
    expect(await numbers('few')).toEqual([297, 298, 299]);
    expect(await numbers('all')).toEqual(Array.from({ length: 150 }, (_, i) => i));
    const left = (await again.store.readAll({ direction: 'forward', from: 'start', count: 4_000 })).events.filter(
      ({ stream }) => stream === 'few' || stream.startsWith('one-'),
    );
    expect(left.filter(({ stream }) => stream === 'few').length).toBeLessThan(20);
    expect(left.filter(({ type }) => type === 'placed').length).toBeLessThan(150);
    await again.close();
    expect((await verify(storage)).findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  });
});

/** What is done to the directory, and the file, code and offset that must be named. */
interface Damage {
  readonly what: string;
  readonly inflict: (storage: MemoryStorage) => Promise<{ file: string; code: string; offset?: number | null }>;
}

const DAMAGES: readonly Damage[] = [
  {
    what: 'a changed byte of an event',
    inflict: async (storage) => {
      await flip(storage, FIRST, 1_000);
      return { file: FIRST, code: 'md5_mismatch', offset: (await contentOf(storage, FIRST)).length - 16 };
    },
  },
  {
    what: 'a record length that can not be',
    inflict: async (storage) => {
      const length = (await contentOf(storage, FIRST)).slice(128, 132);
      const second = 128 + new DataView(length.buffer).getInt32(0, true) + 8;
      await patch(storage, FIRST, second, i32(-5));
      return { file: FIRST, code: 'log_corrupt', offset: second };
    },
  },
  {
    what: 'a header of another chunk',
    inflict: async (storage) => {
      await patch(storage, SECOND, 6, i32(5));
      return { file: SECOND, code: 'log_corrupt', offset: 6 };
    },
  },
  {
    what: 'a header that is none',
    inflict: async (storage) => {
      await patch(storage, SECOND, 0, Uint8Array.of(9));
      return { file: SECOND, code: 'log_corrupt', offset: 0 };
    },
  },
  {
    what: 'a footer that is gone',
    inflict: async (storage) => {
      const { length } = await contentOf(storage, FIRST);
      await patch(storage, FIRST, length - 128, new Uint8Array(112));
      return { file: FIRST, code: 'log_corrupt', offset: length - 128 };
    },
  },
  {
    what: 'a completed chunk cut short',
    inflict: async (storage) => {
      await resize(storage, FIRST, 20_000);
      return { file: FIRST, code: 'log_corrupt', offset: 20_000 - 128 };
    },
  },
  {
    what: 'a missing chunk',
    inflict: async (storage) => {
      await storage.remove(FIRST);
      return { file: FIRST, code: 'chunk_missing', offset: null };
    },
  },
  {
    what: 'a chunk beyond the end',
    inflict: async (storage) => {
      const file = await storage.create('chunk-000090.000000');
      await file.writeAt(0, await contentOf(storage, FIRST));
      await file.close();
      return { file: 'chunk-000090.000000', code: 'chunk_unexpected', offset: null };
    },
  },
  {
    what: 'a last chunk that is gone',
    inflict: async (storage) => {
      const name = await lastChunk(storage);
      await storage.remove(name);
      return { file: name, code: 'chunk_missing', offset: null };
    },
  },
  {
    what: 'a hole in the last chunk',
    inflict: async (storage) => {
      const name = await lastChunk(storage);
      await patch(storage, name, 128, new Uint8Array(64));
      return { file: name, code: 'log_corrupt', offset: 128 };
    },
  },
  {
    what: 'a checkpoint of the wrong length',
    inflict: async (storage) => {
      await resize(storage, 'chaser.chk', 5);
      return { file: 'chaser.chk', code: 'checkpoint_corrupt', offset: 0 };
    },
  },
  {
    what: 'a chaser beyond the writer',
    inflict: async (storage) => {
      await patch(storage, 'chaser.chk', 0, i64(1e9));
      return { file: 'chaser.chk', code: 'checkpoint_corrupt', offset: 0 };
    },
  },
  {
    what: 'an epoch checkpoint that leads to no epoch',
    inflict: async (storage) => {
      await patch(storage, 'epoch.chk', 0, i64(77));
      return { file: 'epoch.chk', code: 'checkpoint_corrupt', offset: 0 };
    },
  },
  {
    what: 'a damaged index map',
    inflict: async (storage) => {
      await flip(storage, 'index/indexmap', 40);
      return { file: 'index/indexmap', code: 'index_corrupt' };
    },
  },
  {
    what: 'a missing index table',
    inflict: async (storage) => {
      const path = await largestTable(storage);
      await storage.remove(path);
      return { file: path, code: 'file_not_found' };
    },
  },
  {
    what: 'a changed byte of an index table',
    inflict: async (storage) => {
      const path = await largestTable(storage);
      await flip(storage, path, 128 + 16);
      return { file: path, code: 'md5_mismatch', offset: (await contentOf(storage, path)).length - 16 };
    },
  },
  {
    what: 'index entries out of order',
    inflict: async (storage) => {
      const path = await largestTable(storage);
      const content = await contentOf(storage, path);
      await patch(storage, path, 128, content.slice(128 + 24 * 60, 128 + 24 * 61));
      return { file: path, code: 'index_disorder', offset: 128 + 24 };
    },
  },
  {
    what: 'an index entry that leads elsewhere',
    inflict: async (storage) => {
      const path = await largestTable(storage);
      const content = await contentOf(storage, path);
      const position = Number(new DataView(content.buffer).getBigInt64(128 + 16, true));
      await patch(storage, path, 128 + 16, i64(position + 3));
      return { file: path, code: 'index_wrong_entry', offset: 128 };
    },
  },
  {
    what: 'a damaged bloom filter',
    inflict: async (storage) => {
      const path = `${await largestTable(storage)}.bloomfilter`;
      await flip(storage, path, 200);
      return { file: path, code: 'bloom_corrupt' };
    },
  },
];

describe('damage is found, named with file and offset, and left as it is', () => {
  it.each(DAMAGES.map((damage) => [damage.what, damage] as const))('%s', async (_, { inflict }) => {
    const storage = await ownDirectory();
    const { file, code, offset } = await inflict(storage);
    const before = await everything(storage);
    const { findings, summary } = await verify(storage);
    expect(summary.errors).toBeGreaterThan(0);
    const found = findings.filter((finding) => finding.file === file && finding.code === code);
    expect(found.length, JSON.stringify(findings, null, 1)).toBeGreaterThan(0);
    if (offset !== undefined) expect(found.map((finding) => finding.offset)).toContain(offset);
    for (const finding of findings) expect(finding.message.length).toBeGreaterThan(20);
    expect(await everything(storage)).toEqual(before);
  });

  it('an event that the index lacks', async () => {
    const storage = await ownDirectory();
    const map = (await loadIndexMap(storage, nodeDigests))!;
    const level = map.levels.findIndex((tables) => tables.length > 0);
    const levels = map.levels.map((tables, i) => (i === level ? tables.slice(0, -1) : tables));
    await saveIndexMap({ ...map, levels }, storage, nodeDigests, new SeededIds(9));
    const { findings } = await verify(storage);
    expect(findings.map((finding) => finding.code)).toContain('index_missing_event');
  });
});

describe('what no checksum covers is named, and is no fault', () => {
  const notesOf = async (
    storage: Storage,
    scavengeStates?: { check(): readonly string[] | null },
  ): Promise<string[]> => {
    const found: string[] = [];
    for await (const each of verifyDirectory({
      storage,
      digests: nodeDigests,
      clock: new ManualClock(TEST_NOW_MS),
      ...(scavengeStates && { scavengeStates }),
    })) {
      if (each.kind === 'note') found.push(`${each.code} ${each.file} ${each.offset} ${each.bytes}`);
      if (each.kind === 'finding') found.push(`${each.severity} ${each.code} ${each.file}`);
    }
    return found;
  };

  it('nothing in a directory of ours', async () => {
    expect(await notesOf(await ownDirectory())).toEqual([]);
  });

  it('the chunk being written of a directory from the reference', async () => {
    const storage = new MemoryStorage();
    await installFiles(storage, unpackSet('orders-1-before'));
    const notes = await notesOf(storage);
    expect(notes.filter((note) => note.startsWith('ongoing_unprotected'))).toEqual([
      expect.stringMatching(/^ongoing_unprotected chunk-\d{6}\.\d{6} 128 \d+$/),
    ]);
  });

  it('values in the scavenge database, and all of it where nothing checks it; its damage is an error', async () => {
    const storage = await ownDirectory();
    const path = 'index/scavenging/scavenging.db';
    await storage.create(path).then(async (file) => {
      await file.writeAt(0, new Uint8Array(4_096));
      await file.close();
    });
    expect(await notesOf(storage)).toEqual([`scavenge_database_unchecked ${path} 0 4096`]);
    expect(await notesOf(storage, { check: () => [] })).toEqual([`scavenge_database_values ${path} null null`]);
    expect(await notesOf(storage, { check: () => ['a', 'b'] })).toEqual([
      `error scavenge_database_corrupt ${path}`,
      `error scavenge_database_corrupt ${path}`,
    ]);
  });
});

describe('a directory in use', () => {
  it('is refused', async () => {
    const storage = new MemoryStorage();
    const opened = await openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES });
    await expect(verify(storage)).rejects.toMatchObject({ code: 'directory_locked' });
    await opened.close();
  });
  it('or without a database', async () => {
    await expect(verify(new MemoryStorage())).rejects.toMatchObject({ code: 'file_not_found' });
  });
});
