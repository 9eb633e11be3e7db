import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { ProofKeeper } from '../../../core/proof/keeper.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { systemClock } from '../../../infra/clock.ts';
import { newEvents } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { openFolder } from '../open-folder.ts';

const BATCH = 100;
/** Chunks of less than half a second, so that the windows hold the work for completed ones in the same measure as hours would. */
const CHUNK_BYTES = 33_554_432;
/** Between two anchors: as often as no node makes them, so that no record of a window is left unhashed, and before the thread that hashes would end. */
const ANCHOR_EVERY_MS = 500;

async function appendWindow(store: EventStore, ms: number): Promise<number> {
  const begin = performance.now();
  let batches = 0;
  for (; performance.now() - begin < ms; batches++) await store.append('bench-proof', ANY, newEvents(BATCH));
  return batches * BATCH / (performance.now() - begin) * 1000;
}

/** The same while an anchor is made every half second, for which all that was appended is hashed. */
async function anchoredWindow(store: EventStore, chain: ProofKeeper, ms: number, onAnchor: () => void): Promise<number> {
  const ending = new AbortController();
  const anchoring = (async () => {
    while (!ending.signal.aborted) {
      await chain.anchor();
      onAnchor();
      await systemClock.sleep(ANCHOR_EVERY_MS, ending.signal);
    }
  })();
  try {
    return await appendWindow(store, ms);
  } finally {
    ending.abort();
    await anchoring;
  }
}

export const proof: Figure = {
  name: 'proof',
  how: `One client in the process of the store appends batches of ${BATCH} events of 256 bytes to one stream, one batch after another: in turns in a directory with a chain of hashes, of which an anchor is made every half second (a node's default is an hour), and in one without. Chunks have 32 MiB, so that many are completed. So every record is hashed in the window that appends it, and those that an anchor found in the chunk being written once more.`,
  async run(settings) {
    const plain = await openFolder(join(settings.folder, 'proof-without'), { chunkSizeBytes: CHUNK_BYTES });
    const proven = await openFolder(join(settings.folder, 'proof-with'), { chunkSizeBytes: CHUNK_BYTES, beginsProofs: true });
    let anchors = 0;
    const onAnchor = () => { anchors++; };
    try {
      await appendWindow(plain.store, settings.windowMs);
      await anchoredWindow(proven.store, proven.proofChain!, settings.windowMs, onAnchor);
      const measured = await alternate(settings.windows, () => appendWindow(plain.store, settings.windowMs), () => anchoredWindow(proven.store, proven.proofChain!, settings.windowMs, onAnchor));
      return [row('durable append with a chain of hashes, against none', 'events/s', measured, { kind: 'at least', value: 0.95 }, [`${anchors} anchors, ${proven.proofChain!.figures.chunks} chunks`])];
    } finally {
      await plain.close();
      await proven.close();
    }
  },
};
