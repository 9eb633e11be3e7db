import { fileURLToPath } from 'node:url';
import type { RoutingLimits, RoutingSandbox } from '../../../core/ports/routing-sandbox.ts';
import { AccessLists } from '../../../core/security/stream-access/stream-access.ts';
import { SealedSecrets } from '../../../core/security/sealed-secrets/sealed-secrets.ts';
import type {
  ActiveConnector,
  ActiveConnectors,
  WebhookSettings,
  InboundCall,
  IngestAnswer,
  WebhookIngest,
} from '../../../core/webhook/api.ts';
import { createConnectors } from '../../../core/webhook/connectors/connectors.ts';
import { createIngest } from '../../../core/webhook/ingest/ingest.ts';
import type { Webhooks } from '../../../handlers/http/context.ts';
import { nodeKeys } from '../../node-keys.ts';
import type { Deadline } from './deadline.ts';
import type { FunctionStore } from './open-store.ts';
import { secretOf } from './function-settings.ts';

const MIB = 1_048_576;

/** As on a node, but for workers and queues: an instance handles one call at a time. */
const ROUTING_LIMITS: Omit<RoutingLimits, 'timeoutMs'> = {
  memoryBytesMax: 32 * MIB,
  stackBytesMax: 262_144,
  outputLengthMax: 8_192,
  workers: 2,
  callsQueuedMax: 16,
  connectorCallsQueuedMax: 16,
};

interface FunctionWebhooks extends Webhooks {
  /**
   * Finishes what a function that was ended has begun with connectors: starts and stops. The first call does it, the
   * others wait for it.
   */
  resume(): Promise<void>;
}

/**
 * Connectors over the store; null where they are switched off. Their secrets and states are read when a connector is
 * first asked for; the token is read here.
 */
export async function openWebhooks(
  { settings, store, world }: FunctionStore,
  deadline: Deadline,
): Promise<FunctionWebhooks | null> {
  const { values } = settings;
  if (!values['Connectors:Enabled']) return null;
  const secrets = new SealedSecrets(nodeKeys, [
    (await secretOf(settings, 'Connectors:DataProtection:Token')) ?? '',
    ...values['Connectors:DataProtection:PreviousTokens'],
  ]);
  const sandbox = lazySandbox({ ...ROUTING_LIMITS, timeoutMs: values['Webhook:ScriptTimeoutMs'] }, loadSandbox);
  const { clock, ids, log, meter } = world;
  // Lists alone, without the users that a function of senders does not know.
  const access = values.Insecure
    ? null
    : new AccessLists({ store, clock, log, meter, allowAnonymous: values.AllowAnonymousStreamAccess });
  const parts = { store, access, clock, ids, log, sandbox };
  const connectors = createConnectors({ ...parts, secrets });
  const ingest = createIngest({ ...parts, active: confirmedConnectors(connectors, deadline), keys: nodeKeys, meter });
  let resuming: Promise<void> | null = null;
  return {
    connectors,
    ingest: confirmedIngest(ingest, connectors),
    limits: { bodyBytesMax: values['Webhook:MaxBodySize'] },
    resume: () =>
      (resuming ??= connectors.open().catch((error: unknown) => {
        resuming = null;
        throw error;
      })),
  };
}

async function loadSandbox(limits: RoutingLimits): Promise<RoutingSandbox> {
  const { QuickJsSandbox } = await import('../../quickjs/quickjs-sandbox.ts');
  return new QuickJsSandbox({ limits, ...bundledFiles() });
}

/** In a bundle worker and WebAssembly lie beside the function; esbuild.config.mjs puts them there. */
function bundledFiles(): { workerUrl?: URL; engineUrl?: URL } {
  if (fileURLToPath(import.meta.url).endsWith('.ts')) return {};
  return {
    workerUrl: new URL('./sandbox-worker.mjs', import.meta.url),
    engineUrl: new URL('./quickjs.wasm', import.meta.url),
  };
}

/** A sandbox whose code, threads and WebAssembly are loaded when the first script is to run. */
function lazySandbox(limits: RoutingLimits, load: (limits: RoutingLimits) => Promise<RoutingSandbox>): RoutingSandbox {
  let loading: Promise<RoutingSandbox> | null = null;
  const loaded = (): Promise<RoutingSandbox> => {
    loading ??= load(limits).catch((error: unknown) => {
      loading = null;
      throw error;
    });
    return loading;
  };
  return {
    check: async (script) => (await loaded()).check(script),
    route: async (call) => (await loaded()).route(call),
    // Why the script could not be loaded is answered to its callers.
    release(connectorId) {
      loading?.then(
        (sandbox) => sandbox.release(connectorId),
        () => {},
      );
    },
    close: async () => {
      await (await loading)?.close();
    },
  };
}

/**
 * Webhooks where nothing may happen behind a reply: every call waits for its write, at most as long as the function
 * has left. One that need not be confirmed is then answered 202 as everywhere, but after the commit.
 */

/** Running connectors, each as one that waits. */
export function confirmedConnectors(active: ActiveConnectors, deadline: Deadline): ActiveConnectors {
  // The ingest tells activations apart by their object.
  const waiting = new WeakMap<ActiveConnector, ActiveConnector>();
  const waitingOf = (connector: ActiveConnector): ActiveConnector => {
    let made = waiting.get(connector);
    if (made === undefined)
      waiting.set(connector, (made = { ...connector, settings: waitingSettings(connector.settings, deadline) }));
    return made;
  };
  const orNull = (connector: ActiveConnector | null) => (connector === null ? null : waitingOf(connector));
  return {
    activeOf(connectorId) {
      const found = active.activeOf(connectorId);
      return found instanceof Promise ? found.then(orNull) : orNull(found);
    },
    onStop: (drain) => active.onStop((connector) => drain(waitingOf(connector))),
  };
}

function waitingSettings(settings: WebhookSettings, deadline: Deadline): WebhookSettings {
  return {
    ...settings,
    waitForWrite: true,
    get confirmationTimeoutMs() {
      const leftMs = deadline.leftMs();
      return settings.waitForWrite ? Math.min(settings.confirmationTimeoutMs, leftMs) : leftMs;
    },
  };
}

/** The ingest over those connectors, with the status that the connector's own settings ask for. */
export function confirmedIngest(ingest: WebhookIngest, active: ActiveConnectors): WebhookIngest {
  return {
    isActive: (connectorId) => ingest.isActive(connectorId),
    ...(ingest.refused !== undefined && { refused: ingest.refused.bind(ingest) }),
    async receive(call: InboundCall, signalOf: () => AbortSignal): Promise<IngestAnswer> {
      const status = await ingest.receive(call, signalOf);
      if (status !== 201) return status;
      const connector = await active.activeOf(call.connectorId);
      return connector === null || connector.settings.waitForWrite ? status : 202;
    },
  };
}
