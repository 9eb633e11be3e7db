import { fileURLToPath } from 'node:url';
import type { RoutingLimits, RoutingSandbox } from '../../../core/ports/routing-sandbox.ts';
import { SealedSecrets } from '../../../core/security/sealed-secrets.ts';
import { createIngest } from '../../../core/webhook/ingest/ingest.ts';
import { createConnectors } from '../../../core/webhook/connectors/registry.ts';
import type { Webhooks } from '../../../handlers/http/presence.ts';
import { nodeKeys } from '../../keys.ts';
import { confirmedConnectors, confirmedIngest } from './confirmed-ingest.ts';
import type { Deadline } from './deadline.ts';
import { lazySandbox } from './lazy-sandbox.ts';
import type { FunctionStore } from './open-store.ts';

const MIB = 1_048_576;

/** As on a node, but for workers and queues: an instance handles one call at a time. */
const ROUTING_LIMITS: Omit<RoutingLimits, 'timeoutMs'> = {
  memoryBytesMax: 32 * MIB, stackBytesMax: 262_144, outputLengthMax: 8_192, workers: 2, callsQueuedMax: 16, connectorCallsQueuedMax: 16,
};

export interface FunctionWebhooks extends Webhooks {
  /** Finishes what a function that was ended has begun with connectors: starts and stops. The first call does it, the others wait for it. */
  resume(): Promise<void>;
}

/** Connectors over the store; null where they are switched off. Secrets and states are read when a connector is first asked for. */
export function openWebhooks({ settings: { values }, store, world }: FunctionStore, deadline: Deadline): FunctionWebhooks | null {
  if (!values['Connectors:Enabled']) return null;
  const secrets = new SealedSecrets(nodeKeys, [values['Connectors:DataProtection:Token'] ?? '', ...values['Connectors:DataProtection:PreviousTokens']]);
  const sandbox = lazySandbox({ ...ROUTING_LIMITS, timeoutMs: values['Webhook:ScriptTimeoutMs'] }, loadSandbox);
  const { clock, ids, log, meter } = world;
  const parts = { store, clock, ids, log, sandbox };
  const connectors = createConnectors({ ...parts, secrets });
  const ingest = createIngest({ ...parts, active: confirmedConnectors(connectors, deadline), keys: nodeKeys, meter });
  let resuming: Promise<void> | null = null;
  return {
    connectors, ingest: confirmedIngest(ingest, connectors), limits: { bodyBytesMax: values['Webhook:MaxBodySize'] },
    resume: () => resuming ??= connectors.open().catch((error: unknown) => {
      resuming = null;
      throw error;
    }),
  };
}

async function loadSandbox(limits: RoutingLimits): Promise<RoutingSandbox> {
  const { QuickJsSandbox } = await import('../../quickjs/quickjs-sandbox.ts');
  return new QuickJsSandbox({ limits, ...bundledFiles() });
}

/** In a bundle worker and WebAssembly lie beside the function; esbuild.config.mjs puts them there. */
function bundledFiles(): { workerUrl?: URL; engineUrl?: URL } {
  if (fileURLToPath(import.meta.url).endsWith('.ts')) return {};
  return { workerUrl: new URL('./sandbox-worker.mjs', import.meta.url), engineUrl: new URL('./quickjs.wasm', import.meta.url) };
}
