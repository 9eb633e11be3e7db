import { fileURLToPath } from 'node:url';
import { JOBS } from '../core/jobs.ts';
import { InlineJobs } from '../core/ports/inline-jobs.ts';
import { MemoryStorage } from '../core/ports/memory-storage.ts';
import { silentMeter } from '../core/ports/meter.ts';
import type { Jobs } from '../core/ports/jobs.ts';
import type { Log } from '../core/ports/log.ts';
import type { Storage } from '../core/ports/storage.ts';
import { openStore } from '../core/store.ts';
import type { OpenStore, StartProgress } from '../core/store.ts';
import type { SkuaError } from '../core/errors.ts';
import { createApp } from '../handlers/app.ts';
import { systemClock } from '../infra/clock.ts';
import { nodeDigests } from '../infra/digests.ts';
import { FilesystemStorage } from '../infra/fs/filesystem-storage.ts';
import { systemIds } from '../infra/ids.ts';
import { WorkerJobs } from '../infra/jobs/worker-jobs.ts';
import { readBody } from './http-request.ts';
import { startServer } from './server.ts';
import type { HttpServer } from './server.ts';
import { VERSION } from './version.ts';

/** Requests under way get this long to end when the node stops. */
const STOP_GRACE_MS = 10_000;

export interface NodeOptions {
  /** Data directory; null keeps everything in memory. */
  readonly db: string | null;
  /** Folder of the index; null for `index` in the data directory. */
  readonly index: string | null;
  readonly ip: string;
  readonly port: number;
  /** Null for the default, or what an existing directory has. */
  readonly chunkSizeBytes: number | null;
  readonly log: Log;
  readonly onProgress?: (progress: StartProgress) => void;
}

export interface RunningNode {
  readonly url: string;
  readonly chunkSizeBytes: number;
  /** Settles only when the node can't go on. */
  readonly failed: Promise<SkuaError>;
  /** Ends requests and closes the store; everything acknowledged is on disk already. */
  stop(): Promise<void>;
}

/** Puts a node together: storage, jobs, store, handlers, server. Rejects with what keeps it from running. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { storage, jobs } = worldOf(options);
  let open: OpenStore;
  try {
    open = await openStore({
      storage, jobs, clock: systemClock, ids: systemIds, digests: nodeDigests, log: options.log, meter: silentMeter,
      ...(options.chunkSizeBytes !== null && { chunkSizeBytes: options.chunkSizeBytes }),
      ...(options.onProgress && { onProgress: options.onProgress }),
    });
  } catch (error) {
    await jobs.close();
    throw error;
  }
  const close = async () => {
    await open.close();
    await jobs.close();
  };
  try {
    const server = await serve(options, open);
    return { url: server.url, chunkSizeBytes: open.chunkSizeBytes, failed: open.failed, stop: () => stop(server, options.log, close) };
  } catch (error) {
    await close();
    throw error;
  }
}

function serve({ ip, port, log }: NodeOptions, { store }: OpenStore): Promise<HttpServer> {
  const app = createApp({ store, clock: systemClock, ids: systemIds, log, meter: silentMeter, readBody, options: { version: VERSION } });
  return startServer({ hostname: ip, port, fetch: app, log });
}

async function stop(server: HttpServer, log: Log, close: () => Promise<void>): Promise<void> {
  if (!await server.stop(STOP_GRACE_MS)) log.warn('requests were cut off', { graceSeconds: STOP_GRACE_MS / 1000 });
  await close();
}

function worldOf({ db, index }: NodeOptions): { storage: Storage; jobs: Jobs } {
  if (db === null) {
    const storage = new MemoryStorage();
    return { storage, jobs: new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids: systemIds, clock: systemClock }) };
  }
  const storage = new FilesystemStorage({ root: db, ...(index !== null && { indexRoot: index }) });
  return { storage, jobs: new WorkerJobs({ root: storage.root, indexRoot: storage.indexRoot, ...bundledWorker() }) };
}

/** In a bundle the worker lies at a place of its own; esbuild.config.mjs puts it there. */
function bundledWorker(): { workerUrl?: URL } {
  return fileURLToPath(import.meta.url).endsWith('.ts') ? {} : { workerUrl: new URL('./worker.js', import.meta.url) };
}
