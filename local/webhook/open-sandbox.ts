import { fileURLToPath } from 'node:url';
import type { RoutingLimits, RoutingSandbox } from '../../core/ports/routing-sandbox.ts';
import { QuickJsSandbox } from '../../infra/quickjs/quickjs-sandbox.ts';

const MIB = 1_048_576;

/** What a script may take, but for its time, which is an option. */
export const ROUTING_LIMITS: Omit<RoutingLimits, 'timeoutMs'> = {
  memoryBytesMax: 32 * MIB, stackBytesMax: 262_144, outputLengthMax: 8_192, workers: 2, callsQueuedMax: 4_096, connectorCallsQueuedMax: 1_024,
};

/** The sandbox of a node, and of commands that run a script without one. Its threads start with the first call. */
export function openSandbox(limits: RoutingLimits): RoutingSandbox {
  return new QuickJsSandbox({ limits, ...bundledWorker() });
}

/** In a bundle the worker lies at a place of its own; esbuild.config.mjs puts it there. */
function bundledWorker(): { workerUrl?: URL } {
  return fileURLToPath(import.meta.url).endsWith('.ts') ? {} : { workerUrl: new URL('./sandbox-worker.js', import.meta.url) };
}
