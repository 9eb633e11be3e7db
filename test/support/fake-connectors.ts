import { SealedSecrets } from '../../core/security/sealed-secrets/sealed-secrets.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { RoutingSandbox } from '../../core/ports/routing-sandbox.ts';
import type { Connectors, IngestStatus, WebhookIngest } from '../../core/webhook/api.ts';
import { createConnectors } from '../../core/webhook/connectors/connectors.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { ManualClock } from './manual-clock.ts';
import { ModelStore } from './model-store.ts';
import { SeededIds } from './seeded-ids.ts';
import { TEST_NOW_MS } from './test-store.ts';

const sandbox: RoutingSandbox = {
  check: async () => null,
  route: async () => ({ kind: 'routed', stream: 'parcels', schema: null, cpuMs: 0 }),
  release() {},
  close: async () => {},
};

/** Real connectors over a model of the store, with `parcels`, stopped; scripts do nothing. */
export async function fakeConnectors(): Promise<Connectors> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(77);
  const connectors = createConnectors({
    store: new ModelStore(clock, ids),
    clock,
    ids,
    log: silentLog,
    sandbox,
    access: null,
    secrets: new SealedSecrets(nodeKeys, ['token']),
  });
  await connectors.create(
    'parcels',
    'Parcels',
    new Map([
      ['instanceTypeName', 'webhook-source'],
      ['routingScript', btoa('const route = () => null;')],
    ]),
  );
  return connectors;
}

/** Takes calls for `parcels`, and answers them with one status after the other. */
export function fakeIngest(statuses: readonly IngestStatus[] = [202]): WebhookIngest {
  let calls = 0;
  return {
    isActive: (connectorId) => connectorId === 'parcels',
    receive: async () => statuses[calls++ % statuses.length]!,
  };
}
