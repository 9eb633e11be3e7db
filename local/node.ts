import type { SkuaError } from '../core/errors.ts';
import type { Log } from '../core/ports/log.ts';
import { silentMeter } from '../core/ports/meter.ts';
import type { OpenStore, OpenStoreOptions, StartProgress } from '../core/store.ts';
import { createApp } from '../handlers/app.ts';
import { systemClock } from '../infra/clock.ts';
import { systemIds } from '../infra/ids.ts';
import { readBody } from './http-request.ts';
import { openNode } from './open-node.ts';
import type { OpenNode } from './open-node.ts';
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
  readonly scavenge: Omit<NonNullable<OpenStoreOptions['scavenge']>, 'nodeEndpoint'>;
  readonly log: Log;
  readonly onProgress?: (progress: StartProgress) => void;
}

export interface RunningNode {
  readonly url: string;
  readonly chunkSizeBytes: number;
  /** Settles only when the node can't go on. */
  readonly failed: Promise<SkuaError>;
  /** Ends a scavenge and the requests, and closes the store; everything acknowledged is on disk already. */
  stop(): Promise<void>;
}

/** Puts a node together: storage, jobs, store, handlers, server. Rejects with what keeps it from running. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { db, index, log, chunkSizeBytes, scavenge, onProgress } = options;
  const node = await openNode({
    db, index, mustExist: false, log,
    // The endpoint as configured: a run that a restart cut off is recognised by it, whatever port 0 came to mean.
    store: { scavenge: { ...scavenge, nodeEndpoint: endpointOf(options) }, ...(chunkSizeBytes !== null && { chunkSizeBytes }) },
    ...(onProgress && { onProgress }),
  });
  const { open } = node;
  try {
    const server = await serve(options, open);
    return { url: server.url, chunkSizeBytes: open.chunkSizeBytes, failed: open.failed, stop: () => stop(server, node, log) };
  } catch (error) {
    await node.close();
    throw error;
  }
}

function endpointOf({ ip, port }: NodeOptions): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}

function serve({ ip, port, log }: NodeOptions, { store, scavenger }: OpenStore): Promise<HttpServer> {
  const app = createApp({ store, scavenger, clock: systemClock, ids: systemIds, log, meter: silentMeter, readBody, security: null, node: null, options: { version: VERSION } });
  return startServer({ hostname: ip, port, fetch: app, log });
}

/** The scavenge comes first: whoever waits for its end then has an answer before connections are closed. */
async function stop(server: HttpServer, node: OpenNode, log: Log): Promise<void> {
  await node.open.scavenger.close();
  if (!await server.stop(STOP_GRACE_MS)) log.warn('requests were cut off', { graceSeconds: STOP_GRACE_MS / 1000 });
  await node.close();
}
