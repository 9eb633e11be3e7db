import type { Storage } from '../../core/ports/storage.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { verifyProof } from '../../core/integrity/verify-chain/verify-chain.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import type { Anchor } from '../../core/integrity/format/chain-layout.ts';
import { Random } from '../support/random.ts';
import { HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { concat, copyOf, dataOf, fill, type Framed, openProven, recordsIn, scavenge, withData } from './proof-kit.ts';
import { contentOf, flip, putFile } from '../log/kit.ts';

/** A directory of many small chunks, before a scavenge and behind one that merged, each with its newest anchor. */
export interface Sample {
  readonly name: string;
  readonly storage: MemoryStorage;
  readonly anchor: Anchor;
  readonly records: readonly Framed[];
}

export async function samples(events: number, seed: number): Promise<readonly [Sample, Sample]> {
  const storage = new MemoryStorage();
  const open = await openProven(storage);
  const random = new Random(seed);
  await fill(open, random, events);
  const first = await open.hashChain!.anchor();
  const before = await copyOf(storage);
  await open.store.deleteStream('gone', -2, 'hard');
  await scavenge(open);
  await fill(open, random, Math.floor(events / 10), ['kept', 'short']);
  const second = await open.hashChain!.anchor();
  await open.close();
  const of = async (name: string, where: MemoryStorage, anchor: Anchor): Promise<Sample> => ({
    name,
    storage: where,
    anchor,
    records: await recordsIn(where, anchor.position),
  });
  return [await of('unscavenged', before, first), await of('scavenged and merged', storage, second)];
}

type Change = (
  data: Uint8Array,
  record: { readonly at: number; readonly end: number },
  random: Random,
) => Uint8Array | null;

/** What is done to a record's file, by kind; null where it can't be done to this one. */
const CHANGES: Readonly<Record<string, Change>> = {
  removed: (data, { at, end }) => concat(data.subarray(0, at), data.subarray(end)),
  doubled: (data, { at, end }) => concat(data.subarray(0, end), data.subarray(at, end), data.subarray(end)),
  'moved to the front': (data, { at, end }) =>
    at === 0 ? null : concat(data.subarray(at, end), data.subarray(0, at), data.subarray(end)),
  'moved to the end': (data, { at, end }) =>
    end === data.length ? null : concat(data.subarray(0, at), data.subarray(end), data.subarray(at, end)),
  'added with another position': (data, { at, end }, random) => {
    const copy = data.slice(at, end);
    // The position that the payload names, and what it says: as if it had always been there.
    copy[6] = (copy[6]! + random.int(1, 3) * 4) & 0xff;
    copy[copy.length - 6] = (copy[copy.length - 6]! + 1) & 0xff;
    return concat(data.subarray(0, end), copy, data.subarray(end));
  },
};

/** Behind the last record that an anchor covers they add what may well have been written since. */
const ADDS: ReadonlySet<string> = new Set(['doubled', 'added with another position']);

/** The changes of which the verifier says nothing, for each record and each change. */
export async function unnoticed(
  { storage, anchor, records }: Sample,
  random: Random,
  options: { readonly share: number; readonly isOneEach?: boolean },
): Promise<string[]> {
  const missed: string[] = [];
  for (const record of records) {
    if (!random.chance(options.share)) continue;
    const { file } = record;
    const bytes = await contentOf(storage, file);
    const all = Object.entries(CHANGES);
    for (const [name, change] of options.isOneEach === true ? [random.pick(all)] : all) {
      const data = change(
        dataOf(bytes, file),
        { at: record.offset - HEADER_BYTES, end: record.offset - HEADER_BYTES + record.size },
        random,
      );
      if (data === null || (record === records.at(-1) && ADDS.has(name))) continue;
      await putFile(
        storage,
        file,
        withData(bytes, file, record.isCompleted ? data : data.subarray(0, bytes.length - HEADER_BYTES)),
      );
      if (!(await isFound(storage, anchor))) missed.push(`${name}: position ${record.position}`);
    }
    await putFile(storage, file, bytes);
  }
  return missed;
}

/** Whether anything is found wrong: the first finding will do. */
async function isFound(storage: Storage, anchor: Anchor): Promise<boolean> {
  for await (const { kind } of verifyProof({ storage, digests: nodeDigests, anchors: [anchor] }))
    if (kind === 'finding') return true;
  return false;
}

/** Flips one bit of a record, looks, and flips it back. True when that was found. */
export async function isFlipFound(
  storage: Storage,
  anchor: Anchor,
  { file, offset }: Framed,
  bit: number,
): Promise<boolean> {
  await flip(storage, file, offset + (bit >> 3), 1 << (bit & 7));
  const found = await isFound(storage, anchor);
  await flip(storage, file, offset + (bit >> 3), 1 << (bit & 7));
  return found;
}
