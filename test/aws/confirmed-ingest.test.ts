import { describe, expect, it } from 'vitest';
import { confirmedConnectors, confirmedIngest } from '../../infra/aws/functions/function-webhooks.ts';
import { Deadline } from '../../infra/aws/functions/deadline.ts';
import type {
  ActiveConnector,
  ActiveConnectors,
  Drain,
  InboundCall,
  IngestStatus,
  WebhookIngest,
} from '../../core/webhook/api.ts';

function connector(waitForWrite: boolean, confirmationTimeoutMs: number): ActiveConnector {
  const settings: ActiveConnector['settings'] = {
    script: '',
    skippedStatus: 204,
    waitForWrite,
    confirmationTimeoutMs,
    signature: null,
    allowedHeaders: [],
    streams: null,
    deduplication: { enabled: false, header: null, maxAgeMs: 0, maxCount: 0 },
    loggingEnabled: false,
  };
  return { connectorId: 'c', activation: 1, incarnation: 0, revision: 1, settings, secrets: [] };
}

function active(found: ActiveConnector | null): ActiveConnectors & { readonly drains: Drain[] } {
  const drains: Drain[] = [];
  return {
    drains,
    activeOf: () => found,
    onStop: (drain) => {
      drains.push(drain);
    },
  };
}

const ingest = (status: IngestStatus): WebhookIngest => ({ isActive: () => true, receive: async () => status });
const call = { connectorId: 'c' } as InboundCall;
const never = new AbortController().signal;

describe('connectors of a function', () => {
  it('all wait for their write, for no longer than the function has left', async () => {
    const deadline = new Deadline();
    let leftMs = 20_000;
    deadline.begin(() => leftMs);
    const { settings } = (await confirmedConnectors(active(connector(true, 5_000)), deadline).activeOf('c'))!;
    expect([settings.waitForWrite, settings.confirmationTimeoutMs]).toEqual([true, 5_000]);
    leftMs = 4_000;
    // A second is kept for the reply.
    expect(settings.confirmationTimeoutMs).toBe(3_000);
    const unconfirmed = (await confirmedConnectors(active(connector(false, 5_000)), deadline).activeOf('c'))!;
    expect(unconfirmed.settings.skippedStatus).toBe(204);
    expect([unconfirmed.settings.waitForWrite, unconfirmed.settings.confirmationTimeoutMs]).toEqual([true, 3_000]);
  });

  it('are the same objects as long as the same activation runs, also for whom stops', async () => {
    const source = connector(false, 1);
    const connectors = active(source);
    const confirmed = confirmedConnectors(connectors, new Deadline());
    const first = await confirmed.activeOf('c');
    expect(await confirmed.activeOf('c')).toBe(first);
    const stopped: ActiveConnector[] = [];
    confirmed.onStop(async (each) => {
      stopped.push(each);
    });
    await connectors.drains[0]!(source);
    expect(stopped).toEqual([first]);
    expect(stopped[0]).toBe(first);
  });

  it('are absent where there is none', async () => {
    expect(await confirmedConnectors(active(null), new Deadline()).activeOf('c')).toBeNull();
  });
});

describe('a call of a sender', () => {
  it.each([
    [true, 201, 201],
    [false, 201, 202],
    [false, 503, 503],
    [false, 401, 401],
    [true, 504, 504],
    [false, 204, 204],
    [true, 202, 202],
  ] as const)('that asks to be confirmed: %s, and ends with %i, is answered %i', async (waits, status, expected) => {
    expect(await confirmedIngest(ingest(status), active(connector(waits, 1))).receive(call, () => never)).toBe(
      expected,
    );
  });
});
