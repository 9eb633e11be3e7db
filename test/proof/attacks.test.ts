import { beforeAll, describe, expect, it } from 'vitest';
import { BlockCache } from '../../core/cache/cache.ts';
import { i64, putI64 } from '../../core/base/bytes.ts';
import { chunkFileName, HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { openLog } from '../../core/log/log.ts';
import { FLAG_REDACTED, parsePrepare, PREPARE, PrepareFields } from '../../core/log/format/records.ts';
import { scanChunk } from '../../core/log/chunk/chunk.ts';
import { silentLog } from '../../core/ports/log.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { openHashChain } from '../../core/integrity/chain/chain.ts';
import {
  type Anchor,
  CUT,
  encodeReceiptHeader,
  receiptPath,
  decodeReceiptHeader,
  NO_LEAF,
  RECEIPT_ENTRY_BYTES,
  RECEIPT_HEADER_BYTES,
  REWRITTEN,
  VOID,
} from '../../core/integrity/format/chain-layout.ts';
import { sha256By } from '../../core/integrity/format/sha256.ts';
import { switchChunk } from '../../core/scavenge/chunk-switch.ts';
import { ChunkWriter } from '../../core/scavenge/chunk-writer.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { concat, copyOf, dataOf, fill, openProven, recordsIn, scavenge, verify, withData } from './proof-kit.ts';
import { samples, type Sample } from './tampering.ts';
import { contentOf, putFile } from '../log/kit.ts';

const sha256 = sha256By(nodeDigests);

let before: Sample;
let after: Sample;
beforeAll(async () => {
  [before, after] = await samples(700, 51);
});

const codesOf = async (storage: Storage, anchors: readonly Anchor[], isStrict = false) =>
  (await verify(storage, anchors, isStrict)).told.map(({ code }) => code);

/** Writes a receipt behind the others, as somebody could who has the disk and knows the format. */
async function forge(
  storage: MemoryStorage,
  receipt: { readonly kind: number; readonly first: number; readonly last?: number; readonly entries?: Uint8Array },
): Promise<void> {
  const number = (await storage.list('proofs')).filter((name) => name.startsWith('receipt')).length;
  const path = receiptPath(number - 1);
  const head =
    number === 0
      ? null
      : decodeReceiptHeader(sha256, path, (await contentOf(storage, path)).subarray(0, RECEIPT_HEADER_BYTES)).head;
  const entries = receipt.entries ?? new Uint8Array(0);
  const { bytes } = encodeReceiptHeader(sha256, {
    kind: receipt.kind,
    number,
    first: receipt.first,
    last: receipt.last ?? receipt.first,
    target: new Uint8Array(16),
    count: entries.length / RECEIPT_ENTRY_BYTES,
    timeMs: 1,
    entries: sha256(entries),
    before: head!,
  });
  await putFile(storage, receiptPath(number), concat(bytes, entries));
}

/** A record of a completed chunk that is no longer there afterwards, and what it was. */
async function removeOne(
  storage: MemoryStorage,
  sample: Sample,
): Promise<{ readonly position: number; readonly leaf: Uint8Array }> {
  const record = sample.records.filter(({ isCompleted, isScavenged }) => isCompleted && isScavenged)[5]!;
  const bytes = await contentOf(storage, record.file);
  const data = dataOf(bytes, record.file);
  const at = record.offset - HEADER_BYTES;
  await putFile(
    storage,
    record.file,
    withData(bytes, record.file, concat(data.subarray(0, at), data.subarray(at + record.size))),
  );
  return { position: record.position, leaf: sha256(data.subarray(at, at + record.size - 4)) };
}

describe('somebody who has the disk and knows the format', () => {
  it('removes a record and forges a receipt: told as not covered, wrong if strict', async () => {
    const storage = await copyOf(after.storage);
    const { position, leaf } = await removeOne(storage, after);
    expect(await codesOf(storage, [after.anchor])).toEqual(['removed']);
    const entry = concat(new Uint8Array(8), leaf, NO_LEAF);
    putI64(entry, 0, position);
    await forge(storage, { kind: REWRITTEN, first: 0, last: 100, entries: entry });
    expect(await verify(storage, [after.anchor])).toMatchObject({ findings: 0, uncovered: 1 });
    expect(await codesOf(storage, [after.anchor], true)).toEqual(['uncovered']);
  });

  it('puts an erased record back: found, also with a forged void receipt or a forged cut', async () => {
    const storage = await copyOf(after.storage);
    const erased = before.records.filter(
      ({ position, isCompleted }) => isCompleted && !after.records.some((record) => record.position === position),
    )[3]!;
    const record = (await contentOf(before.storage, erased.file)).slice(erased.offset, erased.offset + erased.size);
    const behind = after.records.find(({ position }) => position > erased.position)!;
    const bytes = await contentOf(storage, behind.file);
    const data = dataOf(bytes, behind.file);
    const at = behind.offset - HEADER_BYTES;
    await putFile(
      storage,
      behind.file,
      withData(bytes, behind.file, concat(data.subarray(0, at), record, data.subarray(at))),
    );
    expect(await codesOf(storage, [after.anchor])).toEqual(['added']);
    await forge(storage, { kind: VOID, first: 0 });
    await forge(storage, { kind: CUT, first: 0 });
    expect(await codesOf(storage, [after.anchor])).toEqual(['added']);
  });

  it('puts the chunk files of before the scavenge back under a higher version', async () => {
    const storage = await copyOf(after.storage);
    for (const name of ['chunk-000000.000000', 'chunk-000001.000000'])
      await putFile(storage, chunkFileName(Number(name.slice(6, 12)), 9), await contentOf(before.storage, name));
    const codes = await codesOf(storage, [after.anchor]);
    expect(codes.length).toBeGreaterThan(100);
    expect(codes).toContain('added');
    // Against the anchor of before the scavenge it is what it was, and says so.
    expect(await verify(before.storage, [before.anchor])).toMatchObject({ findings: 0 });
  });

  it('makes all proofs anew to fit changed records: the anchor is of other hashes', async () => {
    const storage = await copyOf(before.storage);
    const record = before.records[20]!;
    const file = await storage.open(record.file, 'write');
    await file.writeAt(record.offset + record.size - 12, Uint8Array.of(1, 2, 3));
    await file.close();
    for (const name of await storage.list('proofs')) if (name !== 'chain') await storage.remove(`proofs/${name}`);
    const open = await openProven(storage, { verifyChunks: false });
    await open.hashChain!.anchor();
    await open.close();
    expect(await codesOf(storage, [before.anchor])).toEqual(['chain']);
  });

  it('cuts the end off, by writer.chk, by an order for the next start, or by removing files', async () => {
    const storage = await copyOf(before.storage);
    const chk = new Uint8Array(8);
    putI64(chk, 0, before.records.at(-3)!.position);
    await putFile(storage, 'truncate.chk', chk);
    expect(await codesOf(storage, [before.anchor])).toEqual(['cut']);
    await putFile(storage, 'truncate.chk', new Uint8Array(8).fill(255));
    putI64(chk, 0, 70_000);
    await putFile(storage, 'writer.chk', chk);
    expect(await codesOf(storage, [before.anchor])).toContain('cut');
    const other = await copyOf(before.storage);
    await other.remove('chunk-000001.000000');
    expect(await codesOf(other, [before.anchor])).toContain('unreadable');
  });

  it('changes leaves files or receipts: no record is lost to doubt where the anchor alone tells, and none is let pass', async () => {
    const storage = await copyOf(before.storage);
    for (const at of [10, 30, 60, 100, 130, 191, 300]) {
      const bytes = await contentOf(before.storage, 'proofs/leaves-000000');
      bytes[at]! ^= 4;
      await putFile(storage, 'proofs/leaves-000000', bytes);
      const verdict = await verify(storage, [before.anchor]);
      expect(verdict.findings).toBe(0);
      if (at < 184 || at >= 192) expect(verdict.notes).toHaveLength(1);
    }
    for (const at of [10, 20, 80, 110, 140, 250]) {
      const other = await copyOf(after.storage);
      const bytes = await contentOf(other, 'proofs/receipt-0000000000');
      bytes[at]! ^= 4;
      await putFile(other, 'proofs/receipt-0000000000', bytes);
      expect(await codesOf(other, [after.anchor])).toContain('receipts');
    }
    const shorter = await copyOf(after.storage);
    const last = (await shorter.list('proofs')).filter((name) => name.startsWith('receipt')).at(-1)!;
    await shorter.remove(`proofs/${last}`);
    expect(await codesOf(shorter, [after.anchor])).toContain('receipts');
  });

  it('removes a record and has a covered receipt say so, or takes a receipt out: those behind it do not follow', async () => {
    const storage = await copyOf(after.storage);
    const open = await openProven(storage);
    for (const stream of ['other', 'kept', 'short']) {
      await open.store.deleteStream(stream, -2, 'hard');
      await scavenge(open);
    }
    const anchor = await open.hashChain!.anchor();
    await open.close();
    expect(anchor.receipts).toBeGreaterThan(2);
    const shorter = await copyOf(storage);
    const { position, leaf } = await removeOne(storage, {
      ...after,
      records: await recordsIn(storage, anchor.position),
    });
    const bytes = await contentOf(storage, receiptPath(0));
    const entry = concat(new Uint8Array(8), leaf, NO_LEAF);
    putI64(entry, 0, position);
    const all = [entry];
    for (let at = RECEIPT_HEADER_BYTES; at < bytes.length; at += RECEIPT_ENTRY_BYTES)
      all.push(bytes.subarray(at, at + RECEIPT_ENTRY_BYTES));
    const entries = concat(...all.sort((a, b) => i64(a, 0) - i64(b, 0)));
    const header = decodeReceiptHeader(sha256, receiptPath(0), bytes.subarray(0, RECEIPT_HEADER_BYTES));
    await putFile(
      storage,
      receiptPath(0),
      concat(
        encodeReceiptHeader(sha256, { ...header, first: 0, last: 100, count: all.length, entries: sha256(entries) })
          .bytes,
        entries,
      ),
    );
    const changed = await verify(storage, [anchor]);
    expect(changed.told.map(({ code }) => code)).toContain('receipts');
    expect(changed.notes.map(({ message }) => message)).toContainEqual(
      expect.stringContaining(`${receiptPath(1)} does not follow the receipt before it`),
    );

    await shorter.remove(receiptPath(1));
    const lacking = await verify(shorter, [anchor]);
    expect(lacking.told.map(({ code }) => code)).toContain('receipts');
    expect(lacking.notes.map(({ message }) => message)).toContainEqual(
      expect.stringContaining(`${receiptPath(2)} is not preceded by receipt 1`),
    );
  });

  it('gives anchors of another log: they hold for none', async () => {
    const { storage: other, anchor } = (await samples(300, 52))[0];
    expect(await codesOf(other, [before.anchor])).not.toEqual([]);
    expect(await codesOf(before.storage, [anchor])).not.toEqual([]);
    expect(await codesOf(before.storage, [before.anchor, { ...anchor, position: 10 }])).toContain('chain');
  });
});

describe('a redacted record', () => {
  it('keeps its place, and its receipt names what it was and what it is', async () => {
    const storage = await copyOf(before.storage);
    const world = {
      storage,
      clock: new ManualClock(1_000, 'microtask'),
      ids: new SeededIds(8),
      digests: nodeDigests,
      log: silentLog,
    };
    const cache = new BlockCache(1_000_000);
    const log = await openLog({ ...world, cache });
    const keeper = (await openHashChain(
      { ...world, jobs: new InlineJobs({ ...world, jobs: JOBS }), table: log.table },
      false,
    ))!;
    const source = log.table.chunkAt(0)!;
    const writer = await ChunkWriter.create(storage, nodeDigests, {
      path: '00000000-0000-4000-8000-000000000012.scavenge.tmp',
      chunkSize: log.chunkSize,
      startNumber: 0,
      endNumber: 0,
      chunkId: new Uint8Array(16).fill(7),
    });
    const fields = new PrepareFields();
    const redacted: number[] = [];
    await scanChunk(source, 0, async (frame) => {
      const bytes = frame.bytes.slice(frame.at - 4, frame.at + frame.length + 4);
      if (frame.type === PREPARE && redacted.length < 3) {
        parsePrepare(frame, fields);
        if (fields.dataLength > 20) {
          bytes[4 + 10 + 1]! |= FLAG_REDACTED >> 8;
          bytes.fill(0, fields.dataAt - frame.at + 4, fields.dataAt - frame.at + 4 + fields.dataLength);
          redacted.push(frame.position);
        }
      }
      await writer.addRecord(frame.position, bytes, 0, bytes.length);
    });
    await writer.finish();
    await switchChunk(
      { storage, cache, table: log.table, proofs: keeper },
      '00000000-0000-4000-8000-000000000012.scavenge.tmp',
      0,
      0,
    );
    const anchor = await keeper.anchor();
    await log.close();
    expect(await verify(storage, [before.anchor])).toMatchObject({ findings: 0, redacted: 3, uncovered: 3 });
    expect(await verify(storage, [before.anchor, anchor], true)).toMatchObject({
      findings: 0,
      redacted: 3,
      removed: 0,
      uncovered: 0,
      anchors: 2,
    });
    // What was redacted can't come back.
    await putFile(storage, chunkFileName(0, 9), await contentOf(before.storage, 'chunk-000000.000000'));
    expect(await verify(storage, [anchor], true)).toMatchObject({ findings: 3 });
    const again = await openProven(await copyOf(before.storage));
    await scavenge(again);
    await again.close();
    expect((await recordsIn(storage, redacted[0]! + 1)).at(-1)!.position).toBe(redacted[0]);
  });

  it('that a scavenge has invented is refused, with the old files in force', async () => {
    const storage = await copyOf(before.storage);
    const open = await openProven(storage);
    await fill(open, new Random(5), 10);
    await open.close();
    const world = {
      storage,
      clock: new ManualClock(1_000, 'microtask'),
      ids: new SeededIds(8),
      digests: nodeDigests,
      log: silentLog,
    };
    const cache = new BlockCache(1_000_000);
    const log = await openLog({ ...world, cache });
    const keeper = (await openHashChain(
      { ...world, jobs: new InlineJobs({ ...world, jobs: JOBS }), table: log.table },
      false,
    ))!;
    const writer = await ChunkWriter.create(storage, nodeDigests, {
      path: '00000000-0000-4000-8000-000000000013.scavenge.tmp',
      chunkSize: log.chunkSize,
      startNumber: 0,
      endNumber: 0,
      chunkId: new Uint8Array(16).fill(7),
    });
    const added = new Uint8Array(60);
    added[0] = added[56] = 52;
    putI64(added, 6, 8);
    await writer.addRecord(8, added, 0, added.length);
    await writer.finish();
    await expect(
      switchChunk(
        { storage, cache, table: log.table, proofs: keeper },
        '00000000-0000-4000-8000-000000000013.scavenge.tmp',
        0,
        0,
      ),
    ).rejects.toMatchObject({ code: 'proof_failed' });
    expect(await storage.size('00000000-0000-4000-8000-000000000013.scavenge.tmp')).toBeNull();
    expect(log.table.chunkAt(0)!.name).toBe('chunk-000000.000000');
    expect(keeper.figures.receipts).toBe(0);
    await log.close();
    expect(await verify(storage, [before.anchor])).toMatchObject({ findings: 0 });
  });
});
