import { expect, test } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { executeChunk } from '../../core/scavenge/chunk-execution.ts';
import { mergeChunks } from '../../core/scavenge/chunk-merging.ts';
import { bytesOf, findingsOf, flipPayload } from '../support/damage.ts';
import { fill, historyOf, leftovers, openWorld, runToEnd } from './control-kit.ts';
import { ID, jobContext, runSettings, statesWith, writeChunkFile } from './chunk-kit.ts';

/** A chunk with a flipped bit is never written anew: its new file would have a checksum that fits. */

const CHUNK = 4_194_304;
const FIRST = 'chunk-000000.000000';
const SECOND = 'chunk-000001.000000';
const TARGET = '00000000-0000-4000-8000-000000000011.scavenge.tmp';

async function twoChunks(events = 400): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  for (const [number, name] of [
    [0, FIRST],
    [1, SECOND],
  ] as const) {
    await writeChunkFile(
      storage,
      name,
      number,
      CHUNK,
      Array.from({ length: events }, (_, i) => ({ stream: i % 2 === 0 ? 'a' : 'b', number: i + 1, dataBytes: 3_000 })),
    );
  }
  return storage;
}

const states = () => statesWith({ a: { discardPoint: 200, maybeDiscardPoint: 200 } });
const execute = (storage: MemoryStorage, source: string, target = TARGET) =>
  executeChunk(
    { settings: runSettings(), chunkSize: CHUNK, source, target, chunkId: ID },
    jobContext(storage, { states: states() }),
  );
const merge = (storage: MemoryStorage, ...sources: string[]) =>
  mergeChunks({ chunkSize: CHUNK, sources, target: TARGET, chunkId: ID }, jobContext(storage));

test('executing a damaged chunk is refused with file and remedy, and leaves nothing', async () => {
  const storage = await twoChunks();
  await flipPayload(storage, FIRST);
  const refused = execute(storage, FIRST);
  await expect(refused).rejects.toMatchObject({ code: 'log_corrupt', data: { file: FIRST } });
  await expect(refused).rejects.toThrow(/skua verify.*from a backup/);
  expect(await storage.size(TARGET)).toBe(null);
  expect((await execute(storage, SECOND)).recordsDiscarded).toBeGreaterThan(0);
});

test('every byte of a scavenged chunk counts, whether it is executed again or merged', async () => {
  const storage = await twoChunks(40);
  const [first, second] = ['chunk-000000.000001', 'chunk-000001.000001'];
  await execute(storage, FIRST, first);
  await execute(storage, SECOND, second);
  const bytes = await bytesOf(storage, second);
  // Chunk id in the header, payload, padding, and the checksum itself.
  for (const at of [20, 1_000, bytes.length - 200, bytes.length - 1]) {
    const file = await storage.open(second, 'write');
    const [byte] = await file.read(at, 1);
    await file.writeAt(at, Uint8Array.of(byte! ^ 1));
    await expect(merge(storage, first, second), `merging, byte ${at}`).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { file: second },
    });
    await expect(execute(storage, second), `executing, byte ${at}`).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { file: second },
    });
    expect(await storage.size(TARGET)).toBe(null);
    await file.writeAt(at, Uint8Array.of(byte!));
    await file.close();
  }
  expect(await merge(storage, first, second)).toMatchObject({ bytesBefore: expect.any(Number) as number });
});

test('merging chunks that were never scavenged is refused as well', async () => {
  const storage = await twoChunks(40);
  await flipPayload(storage, SECOND);
  await expect(merge(storage, FIRST, SECOND)).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
  expect(await storage.size(TARGET)).toBe(null);
});

test('a run that has to execute a damaged chunk ends as Errored with its name, and the damage can still be found', async () => {
  const world = await openWorld();
  await fill(world.open);
  await flipPayload(world.storage, SECOND);
  const before = await bytesOf(world.storage, SECOND);
  const scavengeId = await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({
    result: 'Errored',
    error: expect.stringContaining(SECOND) as string,
  });
  expect((await historyOf(world.open, scavengeId)).at(-1)).toMatchObject({
    type: '$scavengeCompleted',
    members: { result: 'Errored', error: expect.stringContaining(SECOND) as string },
  });
  expect((await bytesOf(world.storage, SECOND)).equals(before)).toBe(true);
  // Its neighbour, with which it was to be written into one file, has been executed.
  expect(
    (await historyOf(world.open, scavengeId)).filter(({ type }) => type === '$scavengeChunksCompleted'),
  ).toMatchObject([{ members: { chunkStartNumber: 0, chunkEndNumber: 0 } }]);
  expect(await leftovers(world.storage)).toEqual([]);
  await world.open.close();
  expect(await findingsOf(world.storage)).toEqual([`${SECOND}: md5_mismatch`]);
});

test('a merge of a damaged chunk is told of in the history, and its files stay', async () => {
  const world = await openWorld({ scavenge: { mergesWhileExecuting: false } });
  await fill(world.open);
  let damaged = '';
  let sources: string[] = [];
  world.jobs.hook = async (name, args) => {
    if (name !== 'scavenge.merge-chunks' || damaged !== '') return;
    sources = args['sources'] as string[];
    damaged = sources[0]!;
    await flipPayload(world.storage, damaged);
  };
  const scavengeId = await runToEnd(world);
  const merged = (await historyOf(world.open, scavengeId)).filter(({ type }) => type === '$scavengeMergeCompleted');
  expect(merged[0]).toMatchObject({
    members: { wasMerged: false, errorMessage: expect.stringContaining(damaged) as string },
  });
  for (const name of sources) expect(await world.storage.size(name), name).not.toBe(null);
  expect(await leftovers(world.storage)).toEqual([]);
  await world.open.close();
  expect(await findingsOf(world.storage)).toEqual([`${damaged}: md5_mismatch`]);
});
