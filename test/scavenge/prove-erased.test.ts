import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { guidFromText, guidFromUuidBytes, guidToText } from '../../core/base/guid.ts';
import { Hash64, streamHasher } from '../../core/base/stream-hash.ts';
import { HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { executeChunk } from '../../core/scavenge/chunk-execution.ts';
import { PatternSearch } from '../../core/scavenge/needles/needles.ts';
import {
  checkErasure,
  type ErasureFinding,
  type ErasureSummary,
  type CheckErasureOptions,
} from '../../core/scavenge/erasure/erasure.ts';
import { ANY } from '../../core/streams/api.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { installFiles, loadOracle, unpackSet } from '../support/fixtures.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { contentOf, putFile, setCheckpoint } from '../log/kit.ts';
import { event, ID, jobContext, runSettings, statesWith, writeChunkFile } from './chunk-kit.ts';

const CHUNK = 4_194_304;
const ID_TEXT = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';

function idBytes(text: string): Uint8Array {
  const out = new Uint8Array(16);
  guidFromText(text, out, 0);
  return out;
}

async function prove(
  options: CheckErasureOptions,
): Promise<{ traces: ErasureFinding[]; residues: ErasureFinding[]; summary: ErasureSummary }> {
  const findings: ErasureFinding[] = [];
  const run = checkErasure(options);
  for (;;) {
    const next = await run.next();
    if (next.done === true) {
      const [traces, residues] = [
        findings.filter(({ kind }) => kind === 'trace'),
        findings.filter(({ kind }) => kind === 'residue'),
      ];
      return { traces, residues, summary: next.value };
    }
    if (next.value.kind === 'progress') expect(next.value.bytesDone).toBeLessThanOrEqual(next.value.bytesTotal);
    else findings.push(next.value);
  }
}

const places = (findings: readonly ErasureFinding[]) => findings.map(({ file, offset }) => `${file}@${offset}`);

describe('the search for several patterns', () => {
  it('finds all that a naive one finds', () => {
    const random = new Random(3);
    for (let round = 0; round < 400; round++) {
      const alphabet = random.pick([2, 3, 20, 256]);
      const bytes = random.bytes(random.int(0, 400)).map((byte) => byte % alphabet);
      const patterns = Array.from({ length: random.int(1, 6) }, () =>
        random.bytes(random.int(2, random.pick([3, 12, 300]))).map((byte) => byte % alphabet),
      );
      const end = random.int(0, bytes.length);
      const found: string[] = [];
      new PatternSearch(patterns).each(bytes, end, (pattern, offset) => found.push(`${offset} ${pattern}`));
      const expected: string[] = [];
      for (let at = 0; at < end; at++)
        patterns.forEach((pattern, index) => {
          if (at + pattern.length <= bytes.length && pattern.every((byte, i) => bytes[at + i] === byte))
            expected.push(`${at} ${index}`);
        });
      expect(found.toSorted()).toEqual(expected.toSorted());
    }
  });
});

describe('an event', () => {
  it('is traced by its record, wherever a block ends', async () => {
    for (const fill of [0, 1_048_576 - 300, 1_048_576 - 200, 1_048_576 - 130, 1_048_576 - 60, 2_097_152 - 250]) {
      const storage = new MemoryStorage();
      const name = 'chunk-000000.000000';
      await writeChunkFile(storage, name, 0, CHUNK, [
        { stream: 'x', dataBytes: fill },
        { stream: 'some-stream', number: 41, dataBytes: 50, eventId: idBytes(ID_TEXT) },
      ]);
      const other = '00000000-0000-4000-8000-00000000000a';
      const { traces, summary } = await prove({ storage, events: [ID_TEXT.toUpperCase(), other] });
      expect(places(traces)).toEqual([`${name}@${HEADER_BYTES + event({ stream: 'x', dataBytes: fill }).length}`]);
      expect(traces[0]!.what).toContain(`${ID_TEXT}, number 41 in stream 'some-stream'`);
      expect(summary).toMatchObject({ files: 1, traces: 1, residues: 0, unknownEvents: [other] });
    }
  });

  it('is traced by its id in any file, in binary of either order and as text', async () => {
    const storage = new MemoryStorage();
    await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, [
      { stream: 'x', data: `{"$causationId":"${ID_TEXT}"}` },
    ]);
    await putFile(storage, 'index/scavenging/scavenging.db-wal', Uint8Array.from([9, 9, 9, ...idBytes(ID_TEXT)]));
    await putFile(storage, 'index/stream-existence/x', Uint8Array.from([9, ...guidFromUuidBytes(idBytes(ID_TEXT))]));
    await putFile(storage, 'index/y', new TextEncoder().encode(`ab${ID_TEXT.toUpperCase()}`));
    await putFile(storage, 'z', new TextEncoder().encode(`abc${ID_TEXT.replaceAll('-', '')}`));
    const { traces } = await prove({ storage, events: [ID_TEXT] });
    const at = Buffer.from(await contentOf(storage, 'chunk-000000.000000')).indexOf(ID_TEXT);
    expect(places(traces)).toEqual([
      `chunk-000000.000000@${at}`,
      'z@3',
      'index/y@2',
      'index/stream-existence/x@1',
      'index/scavenging/scavenging.db-wal@3',
    ]);
  });

  it('is traced in superseded and unfinished files and after the end of the log, and said to be there', async () => {
    const storage = new MemoryStorage();
    const eventId = idBytes(ID_TEXT);
    await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, [{ stream: 'a', eventId }]);
    await writeChunkFile(storage, 'chunk-000000.000001', 0, CHUNK, [{ stream: 'b' }]);
    await writeChunkFile(storage, '00000000-0000-4000-8000-000000000011.scavenge.tmp', 0, CHUNK, [
      { stream: 'a', eventId },
    ]);
    await writeChunkFile(storage, 'chunk-000001.000000', 1, CHUNK, [{ stream: 'b' }, { stream: 'a', eventId }]);
    // The ongoing chunk has no footer.
    const file = await storage.open('chunk-000001.000000', 'write');
    await file.truncate(file.size + 4_096);
    await file.close();
    await setCheckpoint(storage, 'writer.chk', CHUNK + event({ stream: 'b' }).length);
    const { traces } = await prove({ storage, events: [ID_TEXT] });
    expect(traces.map(({ file: where, what }) => [where, what.slice(what.lastIndexOf(', ') - 30)])).toEqual([
      [
        '00000000-0000-4000-8000-000000000011.scavenge.tmp',
        expect.stringContaining('unfinished work, which the next start removes'),
      ],
      ['chunk-000000.000000', expect.stringContaining('replaced, which the next start removes')],
      ['chunk-000001.000000', expect.stringMatching(/, after the end of the log$/)],
    ]);
  });

  it('must be named by its id, and no more than a thousand at a time', async () => {
    const storage = new MemoryStorage();
    await expect(prove({ storage, events: [ID_TEXT] })).rejects.toMatchObject({ code: 'file_not_found' });
    await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, []);
    await expect(prove({ storage, events: ['order-1'] })).rejects.toMatchObject({ code: 'bad_option' });
    await expect(prove({ storage, events: Array.from({ length: 1_001 }, () => ID_TEXT) })).rejects.toMatchObject({
      code: 'bad_option',
    });
    await expect(prove({ storage })).rejects.toMatchObject({ code: 'bad_option' });
  });
});

describe('a stream', () => {
  it.each([
    ['of an ordinary name', 'order-1'],
    ['of one letter', 'a'],
    ['of letters beyond ASCII', 'ünï'],
    ['with two bytes of length', 'n'.repeat(200)],
    ['of a very long name', 'n'.repeat(5_000)],
    ['that is a metastream', '$$x'],
  ])('%s leaves traces in its events and residue elsewhere', async (_what, stream) => {
    const storage = new MemoryStorage();
    const name = 'chunk-000000.000000';
    const events = [
      { stream, number: 0, dataBytes: 10 },
      { stream: `${stream}0`, number: 0 },
      { stream: `x${stream}`, number: 0 },
      { stream: `$$${stream}`, number: 0, data: '{"$maxCount":1}' },
      { stream, number: 1 },
      { stream: 'links', data: `1@${stream}` },
      { stream: 'links', data: `1@${stream}0` },
      { stream, number: 2, flags: 0x02 },
      { stream, number: 0, flags: 0x01 },
    ];
    await writeChunkFile(storage, name, 0, CHUNK, events);
    const offsets: number[] = [];
    let at = HEADER_BYTES;
    for (const input of events) {
      offsets.push(at);
      at += event(input).length;
    }
    const { traces, residues } = await prove({ storage, stream });
    expect(places(traces)).toEqual([offsets[0], offsets[8], offsets[4]].map((offset) => `${name}@${offset}`));
    expect(traces.map(({ what }) => what.slice(0, 12))).toEqual(["event 0 of '", 'an event of ', "event 1 of '"]);
    expect(traces[2]!.what).toMatch(/the last one, which a scavenge keeps .* hard-delete the stream/);
    const mention =
      new TextEncoder().encode(stream).length >= 4
        ? [`${name}@${offsets[5]! + Buffer.from(event(events[5]!)).indexOf(stream)}`]
        : [];
    expect(places(residues)).toEqual([...[offsets[3], offsets[7]].map((offset) => `${name}@${offset}`), ...mention]);
  });

  it('that was hard-deleted has no last event that is kept', async () => {
    const storage = new MemoryStorage();
    await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, [
      { stream: 'gone-1', number: 0 },
      { stream: 'gone-1', number: TOMBSTONE, flags: 0x2e },
    ]);
    const before = await prove({ storage, stream: 'gone-1' });
    expect(before.traces.map(({ what }) => what)).toEqual(["event 0 of 'gone-1'"]);
    const states = statesWith({
      'gone-1': { isTombstoned: true, discardPoint: TOMBSTONE, maybeDiscardPoint: TOMBSTONE },
    });
    await executeChunk(
      {
        settings: runSettings(),
        chunkSize: CHUNK,
        source: 'chunk-000000.000000',
        target: 'chunk-000000.000001',
        chunkId: ID,
      },
      jobContext(storage, { states }),
    );
    await storage.remove('chunk-000000.000000');
    const after = await prove({ storage, stream: 'gone-1' });
    expect(after.traces).toEqual([]);
    expect(after.residues.map(({ what }) => what)).toEqual(["the tombstone of 'gone-1'"]);
  });

  it('is found in index tables by its hash, and in the scavenge database by hash and name', async () => {
    const root = mkdtempSync(join(tmpdir(), 'skua-prove-'));
    try {
      const storage = new FilesystemStorage({ root });
      const store = await openTestStore({ storage, chunkSizeBytes: 1_048_576 });
      const ids = new SeededIds(8);
      for (const stream of ['order-1', 'order-10', 'order-1', 'order-2']) {
        await store.store.append(stream, ANY, [
          {
            type: 't',
            id: guidToText(ids.uuidBytes(), 0),
            isJson: true,
            data: new TextEncoder().encode('{}'),
            metadata: new Uint8Array(0),
          },
        ]);
      }
      await store.close();
      const state = new SqliteScavengeStates({ indexRoot: storage.indexRoot }).open({
        pageSizeBytes: 16_384,
        cacheBytes: 1_048_576,
        hashUsersCacheEntries: 100,
      });
      state.begin();
      const hash = new Hash64();
      for (const stream of ['order-10', 'order-1', 'order-100', 'order-2', '$$order-1']) {
        streamHasher.hash(stream, hash);
        state.register(stream, hash.hi, hash.lo);
      }
      state.setMetastream('$$order-1', hash.hi, hash.lo, { isTombstoned: false, discardPoint: 1 });
      state.commit({ point: { position: 0, eventNumber: 0, effectiveNowMs: 0, threshold: 0 }, stage: 'Done' });
      const whileOpen = await prove({ storage, stream: 'order-1' });
      state.close();
      for (const { traces, residues } of [whileOpen, await prove({ storage, stream: 'order-1' })]) {
        expect(traces.length).toBe(2);
        const told = residues.map(({ file, what }) => `${file.replace(/[0-9a-f-]{36}/, 'table')}: ${what}`);
        expect(told[0]).toBe("index/table: 2 index entries with the hash of 'order-1'");
        expect(told.slice(1).join('\n')).toMatch(
          /scavenging\.db(-wal)?: [3-9] places in the scavenge database with the hash/,
        );
        expect(told.slice(1).join('\n')).toMatch(
          /scavenging\.db(-wal)?: the name 'order-1', (once|[1-4] times) in the scavenge database/,
        );
      }
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });

  it('gives up listing, not counting', async () => {
    const storage = new MemoryStorage();
    await writeChunkFile(
      storage,
      'chunk-000000.000000',
      0,
      CHUNK,
      Array.from({ length: 50 }, (_, number) => ({ stream: 'order-1', number })),
    );
    const { traces, summary } = await prove({ storage, stream: 'order-1', findingsMax: 10 });
    expect(traces.length).toBe(10);
    expect(summary.traces).toBe(50);
  });
});

describe('beside a running node', () => {
  it('changes nothing, needs no lock, and follows files that are replaced meanwhile', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, [{ stream: 'a', eventId: idBytes(ID_TEXT) }]);
    await writeChunkFile(storage, 'chunk-000001.000000', 1, CHUNK, [{ stream: 'a', eventId: idBytes(ID_TEXT) }]);
    const lock = await storage.lock();
    const { operations } = storage;
    const run = checkErasure({ storage, events: [ID_TEXT] });
    const seen: string[] = [];
    let isReplaced = false;
    for await (const item of run) {
      if (item.kind !== 'progress') seen.push(item.file);
      if (isReplaced) continue;
      // A scavenge puts the second chunk into a new file before the search comes to it.
      isReplaced = true;
      expect(storage.operations).toBe(operations);
      await storage.rename('chunk-000001.000000', 'chunk-000001.000001');
    }
    expect(seen).toEqual(['chunk-000000.000000', 'chunk-000001.000001']);
    expect(storage.operations).toBe(operations + 1);
    await lock.release();
  });
});

describe('recorded directories', () => {
  it('hold no trace of what the reference has scavenged, and one of all that is left', async () => {
    const storage: Storage = new MemoryStorage();
    await installFiles(storage, unpackSet('orders-2-scavenged'));
    const left = new Map(loadOracle('orders-2-scavenged').all.map((row) => [row[5], row]));
    const gone = loadOracle('orders-1-before').all.filter((row) => !left.has(row[5]));
    expect(gone.length).toBeGreaterThan(100);
    for (let from = 0; from < gone.length; from += 1_000) {
      const { traces } = await prove({ storage, events: gone.slice(from, from + 1_000).map((row) => row[5]) });
      expect(traces).toEqual([]);
    }
    const some = [...left.values()].filter((row) => row[2].startsWith('order')).slice(0, 500);
    const { traces } = await prove({ storage, events: some.map((row) => row[5]) });
    expect(
      new Set(traces.filter(({ what }) => what.startsWith('the record')).map(({ what }) => what.slice(20, 56))),
    ).toEqual(new Set(some.map((row) => row[5])));
  });

  it('hold the events of a stream exactly where the oracle says', async () => {
    const storage = new MemoryStorage();
    await installFiles(storage, unpackSet('orders-1-before'));
    const rows = loadOracle('orders-1-before').all;
    for (const stream of new Set(
      rows
        .map((row) => row[2])
        .filter((name) => !name.startsWith('$'))
        .slice(0, 200),
    )) {
      const { summary, residues } = await prove({ storage, stream, findingsMax: 5 });
      const own = rows.filter((row) => row[2] === stream);
      const tombstones = own.filter((row) => row[4] === '$streamDeleted').length;
      expect(summary.traces, stream).toBe(own.length - tombstones);
      expect(residues.length, stream).toBeGreaterThan(0);
    }
  });
});

it('ids in both orders are told back as they were given', () => {
  expect(guidToText(idBytes(ID_TEXT), 0)).toBe(ID_TEXT);
});
