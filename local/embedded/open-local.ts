import { existenceBytesOf } from '../../core/index/format/existence-files.ts';
import type { Log } from '../../core/ports/log.ts';
import { type ErasureReport, PROVE_ERASED_JOB } from '../../core/scavenge/erasure/erasure.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { openNode } from '../store/open-node.ts';
import type { OpenNode } from '../store/open-node.ts';
import type { Backend } from './backend.ts';

/**
 * Bytes of the existence filter of a new store: enough for some hundred thousand streams, and made in no time. One that
 * is there keeps its own size, since a node of another would build it anew.
 */
const EXISTENCE_FILTER_BYTES = 1_048_576;

/** Of a store in memory, which takes a chunk's memory at once. */
const MEMORY_CHUNK_BYTES = 16_777_216;

interface LocalOptions {
  /** Null for memory. */
  readonly directory: string | null;
  readonly chunkBytes: number | undefined;
  readonly cacheBytes: number | undefined;
  readonly log: Log;
}

/** A store in a directory of this machine, or in memory. */
export async function openLocal({
  directory,
  chunkBytes = directory === null ? MEMORY_CHUNK_BYTES : undefined,
  cacheBytes,
  log,
}: LocalOptions): Promise<Backend> {
  const existing = directory === null ? null : await existenceBytesOf(new FilesystemStorage({ root: directory }));
  const node = await openNode({
    db: directory,
    index: null,
    mustExist: false,
    log,
    store: {
      log: { ...(chunkBytes !== undefined && { chunkSizeBytes: chunkBytes }) },
      index: { existenceFilterBytes: existing ?? EXISTENCE_FILTER_BYTES },
      ...(cacheBytes !== undefined && { cacheBytes }),
      scavenge: { nodeEndpoint: 'embedded' },
    },
  });
  return localBackend(node, () => node.close());
}

/** The backend of a store that is open in this process. `close` ends it for the holder. */
export function localBackend({ open, jobs }: Pick<OpenNode, 'open' | 'jobs'>, close: () => Promise<void>): Backend {
  const { store, scavenger, failed } = open;
  return {
    store,
    scavenger,
    failed,
    jobs,
    close,
    idle: () => scavenger.idle(),
    hold: () => open.hold(),
    search: async (wanted, signal) => {
      // No scavenge may open its database meanwhile: closing a file would let go of the locks that SQLite has on it.
      const release = scavenger.hold();
      try {
        return (await jobs.run(PROVE_ERASED_JOB, wanted, signal === undefined ? {} : { signal })) as ErasureReport;
      } finally {
        release();
      }
    },
  };
}
