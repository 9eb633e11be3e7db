import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { RoutingLimits, RoutingSandbox } from '../../core/ports/routing-sandbox.ts';
import type { StreamAccess } from '../../core/security/api.ts';
import { SealedSecrets } from '../../core/security/sealed-secrets/sealed-secrets.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { createConnectors } from '../../core/webhook/connectors/connectors.ts';
import { createIngest } from '../../core/webhook/ingest/ingest.ts';
import type { Webhooks } from '../../handlers/http/context.ts';
import type { Disposables } from '../../infra/disposables.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { QuickJsSandbox } from '../../infra/quickjs/quickjs-sandbox.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { bundled } from '../../infra/runtime/version.ts';
import { dataProtectionToken } from '../config/data-protection.ts';
import type { Values } from '../../infra/runtime/config/options.ts';

export interface OpenWebhooks extends Webhooks {
  /** Takes no more calls, and writes what was accepted. */
  drain(): Promise<void>;
}

interface OpenWebhooksParts {
  /** The node's access lists; null while security is off. */
  readonly access: StreamAccess | null;
  readonly log: Log;
  readonly meter: Meter;
  /** The time of senders: by it they sign. */
  readonly clock: Clock;
  /**
   * What commands of callers are written through, which end with their request (`EpochFence.storeOf`); calls of senders
   * outlive theirs.
   */
  readonly commandStore?: EventStore;
  /** What is opened is closed with it: after `drain`, when no request is under way any more. */
  readonly opened: Disposables;
}

/**
 * The connectors of a node; those that ran when it ended run again. Rejects with a CommandError when the token can't be
 * read.
 */
export async function openWebhooks(
  store: EventStore,
  values: Values,
  { access, log, meter, clock, commandStore = store, opened }: OpenWebhooksParts,
): Promise<OpenWebhooks> {
  const token = await dataProtectionToken(values);
  if (UNLISTABLE.test(token))
    throw new CommandError(
      'token_invalid',
      'The data-protection token starts or ends with a space, so it could not be listed among previous tokens later: choose another.',
      EXIT.usage,
    );
  const secrets = new SealedSecrets(nodeKeys, [token, ...values['Connectors:DataProtection:PreviousTokens']]);
  const sandbox = openSandbox({ ...ROUTING_LIMITS, timeoutMs: values['Webhook:ScriptTimeoutMs'] });
  opened.defer(() => sandbox.close());
  const parts = { store, access, clock, ids: systemIds, log, sandbox };
  const connectors = createConnectors({ ...parts, store: commandStore, secrets });
  opened.defer(() => connectors.close());
  // It wants to know of connectors that stop, before any of them runs.
  const ingest = createIngest({ ...parts, active: connectors, keys: nodeKeys, meter });
  await connectors.open();
  return { connectors, ingest, limits: { bodyBytesMax: values['Webhook:MaxBodySize'] }, drain: () => ingest.close() };
}

/** What a list of tokens can't hold. */
const UNLISTABLE = /^\s|\s$/;

const MIB = 1_048_576;

/** What a script may take, but for its time, which is an option. */
export const ROUTING_LIMITS: Omit<RoutingLimits, 'timeoutMs'> = {
  memoryBytesMax: 32 * MIB,
  stackBytesMax: 262_144,
  outputLengthMax: 8_192,
  workers: 2,
  callsQueuedMax: 4_096,
  connectorCallsQueuedMax: 1_024,
};

/** The sandbox of a node, and of commands that run a script without one. Its threads start with the first call. */
export function openSandbox(limits: RoutingLimits): RoutingSandbox {
  return new QuickJsSandbox({
    limits,
    workerUrl: bundled('./sandbox-worker.mjs') ?? undefined,
    engineUrl: bundled('./quickjs.wasm') ?? undefined,
  });
}
