import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import type { RoutingCall, RoutingResult, RoutingSandbox } from '../../../core/ports/routing-sandbox.ts';
import { SealedSecrets } from '../../../core/security/sealed-secrets/sealed-secrets.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { decodeText } from '../../../core/base/text.ts';
import type { Settings } from '../../../core/webhook/api.ts';
import { createConnectors } from '../../../core/webhook/connectors/connectors.ts';
import type { RunningConnectors } from '../../../core/webhook/connectors/connectors.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { KeptLog, observe } from '../../security/kit.ts';
import type { Observed } from '../../security/kit.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../../support/test-store.ts';

/** Runs trusted scripts of tests where they stand. */
export class FakeSandbox implements RoutingSandbox {
  readonly calls: RoutingCall[] = [];
  readonly released: string[] = [];
  /** Answers in place of the script. */
  answer: RoutingResult | null = null;
  beforeCheck: () => void | Promise<void> = () => {};

  async check(script: string): Promise<string | null> {
    await this.beforeCheck();
    try {
      return new Function(`${script}; return typeof route;`)() === 'function' ? null : 'The script defines no route.';
    } catch (error) {
      return String(error);
    }
  }

  async route(call: RoutingCall): Promise<RoutingResult> {
    this.calls.push(call);
    if (this.answer !== null) return this.answer;
    try {
      const result = new Function('request', `${call.script}; return route(request);`)(
        JSON.parse(call.requestJson),
      ) as { stream?: string; schema?: string; type?: unknown } | null;
      return result?.stream
        ? {
            kind: 'routed',
            stream: result.stream,
            schema: result.schema ?? null,
            cpuMs: 1,
            ...(result.schema === undefined && result.type !== undefined && { hasType: true }),
          }
        : { kind: 'skipped', cpuMs: 1 };
    } catch (error) {
      return { kind: 'failed', reason: String(error), cpuMs: 1 };
    }
  }

  release(connectorId: string): void {
    this.released.push(connectorId);
  }
  async close(): Promise<void> {}
}

export const SCRIPT = 'const route = (request) => ({ stream: `orders-${request.body.id ?? 0}`, schema: "placed" });';
export const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

/** Settings of a connector without a signature. */
export function settings(more: Record<string, string> = {}): Settings {
  return new Map(Object.entries({ instanceTypeName: 'webhook-source', routingScript: base64(SCRIPT), ...more }));
}

export const signed = (secret = 's3cret', more: Record<string, string> = {}) =>
  settings({ 'signature:scheme': 'GitHub', 'signature:secret': secret, ...more });

export interface Instance {
  readonly connectors: RunningConnectors;
  readonly sandbox: FakeSandbox;
  readonly log: KeptLog;
}

export interface World extends Observed {
  readonly clock: ManualClock;
  /** Another process over the same store; not opened. */
  instance(tokens?: readonly string[]): Instance;
  /** The store under the observed one. */
  readonly raw: EventStore;
  close(): Promise<void>;
}

export async function openWorld(): Promise<World> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const opened = await openTestStore({ storage: new MemoryStorage(), clock, verifyChunks: false });
  const observed = observe(opened.store);
  let seed = 100;
  const instance = (tokens: readonly string[] = ['token-1']): Instance => {
    const sandbox = new FakeSandbox();
    const log = new KeptLog();
    const connectors = createConnectors({
      store: observed.store,
      clock,
      ids: new SeededIds(++seed),
      log,
      sandbox,
      access: null,
      secrets: new SealedSecrets(nodeKeys, tokens),
    });
    return { connectors, sandbox, log };
  };
  return Object.assign(observed, { clock, instance, raw: opened.store, close: () => opened.close() });
}

/** Types and data of the visible events of a stream. */
export async function eventsOf(
  store: EventStore,
  stream: string,
): Promise<{ readonly type: string; readonly data: Record<string, unknown> }[]> {
  const { events } = await store.readStream(stream, { direction: 'forward', from: 0, count: 1_000 });
  return events.map(({ type, data }) => ({ type, data: JSON.parse(decodeText(data)) as Record<string, unknown> }));
}

/** States by connector. */
export async function statesOf(connectors: RunningConnectors): Promise<Record<string, string>> {
  const all = await connectors.list();
  return Object.fromEntries(
    all.map(({ connectorId, state, deletedMs }) => [
      connectorId,
      deletedMs === null ? state.replace('CONNECTOR_STATE_', '') : 'DELETED',
    ]),
  );
}
