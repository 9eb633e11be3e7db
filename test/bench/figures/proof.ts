import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { NODE_FLAGS, startHttpLoad, startServer } from '../child.ts';
import type { Server } from '../child.ts';
import type { HashChain } from '../../../core/integrity/chain/chain.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { newEvents } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import { openFolder } from '../open-folder.ts';

const CONNECTIONS = 64;
/** A node completes one of these about once a second. */
const SMALL_CHUNK_BYTES = 8_388_608;
/**
 * Before the windows, in windows: 6 s, which is longer than a node waits until it looks for completed chunks the first
 * time.
 */
const WARM_UP_WINDOWS = 4;

const BATCH = 100;
/**
 * Chunks of less than half a second, so that the windows hold the work for completed ones in the same measure as hours
 * would.
 */
const CHUNK_BYTES = 33_554_432;
/**
 * Between two anchors: as often as no node makes them, so that no record of a window is left unhashed, and before the
 * thread that hashes would end.
 */
const ANCHOR_EVERY_MS = 500;

async function appendWindow(store: EventStore, ms: number): Promise<number> {
  const begin = performance.now();
  let batches = 0;
  for (; performance.now() - begin < ms; batches++) await store.append('bench-proof', ANY, newEvents(BATCH));
  return ((batches * BATCH) / (performance.now() - begin)) * 1000;
}

/** The same while an anchor is made every half second, for which all that was appended is hashed. */
async function anchoredWindow(store: EventStore, chain: HashChain, ms: number, onAnchor: () => void): Promise<number> {
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

/**
 * Two nodes under load in turns. The one whose chain goes on in the background stands still while the other is
 * measured, so that its work falls into its own windows.
 */
async function overHttp({ folder, windows, windowMs, isSmoke }: Settings): Promise<Row> {
  const start = (name: string, ...more: readonly string[]): Promise<Server> =>
    startServer([
      ...NODE_FLAGS,
      'local/main.ts',
      'start',
      '--db',
      join(folder, name),
      '--node-port',
      '0',
      '--insecure',
      '--chunk-size',
      String(SMALL_CHUNK_BYTES),
      ...more,
    ]);
  const plain = await start('proof-http-without');
  const proven = await start(
    'proof-http-with',
    '--proof-chain',
    '--proof-anchor',
    join(folder, 'anchors.jsonl'),
    '--proof-anchor-every-min',
    '1',
  ).catch(async (error: unknown) => {
    await plain.stop();
    throw error;
  });
  const generator = startHttpLoad();
  const load = async (port: number, ms: number): Promise<number> => {
    return (await generator.load({ port, connections: CONNECTIONS, ms })).requestsPerSecond;
  };
  const withChain = async (ms: number): Promise<number> => {
    proven.process.kill('SIGCONT');
    const rate = await load(proven.port, ms);
    proven.process.kill('SIGSTOP');
    return rate;
  };
  try {
    for (let i = 0; i < 2; i++) {
      await load(plain.port, isSmoke ? windowMs : WARM_UP_WINDOWS * windowMs);
      await withChain(isSmoke ? windowMs : WARM_UP_WINDOWS * windowMs);
    }
    return row(
      'append over HTTP, 64 connections, with a chain of hashes, against none',
      'requests/s',
      await alternate(
        windows,
        () => load(plain.port, windowMs),
        () => withChain(windowMs),
      ),
      { kind: 'at least', value: 0.95 },
    );
  } finally {
    proven.process.kill('SIGCONT');
    await generator.stop();
    await plain.stop();
    await proven.stop();
  }
}

export const proof: Figure = {
  name: 'proof',
  how: `Two nodes get single events over ${CONNECTIONS} connections in turns, one of which keeps a chain, hashes completed chunks (of 8 MiB, about one a second) in the background as a node does, and makes an anchor every minute. Then the worst that there is: one client in the process of the store appends batches of ${BATCH} events of 256 bytes to one stream, one batch after another: in turns in a directory with a chain of hashes, of which an anchor is made every half second (a node's default is an hour), and in one without. Chunks have 32 MiB, so that many are completed. So every record is hashed in the window that appends it, and those that an anchor found in the chunk being written once more.`,
  async run(settings) {
    const served = await overHttp(settings);
    const plain = await openFolder(join(settings.folder, 'proof-without'), { chunkSizeBytes: CHUNK_BYTES });
    const proven = await openFolder(join(settings.folder, 'proof-with'), {
      chunkSizeBytes: CHUNK_BYTES,
      beginsProofs: true,
    });
    let anchors = 0;
    const onAnchor = () => {
      anchors++;
    };
    try {
      await appendWindow(plain.store, settings.windowMs);
      await anchoredWindow(proven.store, proven.hashChain!, settings.windowMs, onAnchor);
      const measured = await alternate(
        settings.windows,
        () => appendWindow(plain.store, settings.windowMs),
        () => anchoredWindow(proven.store, proven.hashChain!, settings.windowMs, onAnchor),
      );
      return [
        served,
        row(
          'durable batches in process with a chain of hashes and an anchor every half second, against none',
          'events/s',
          measured,
          null,
          [`${anchors} anchors, ${proven.hashChain!.figures.chunks} chunks`],
        ),
      ];
    } finally {
      await plain.close();
      await proven.close();
    }
  },
};
