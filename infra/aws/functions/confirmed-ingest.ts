import type { ActiveConnector, ActiveConnectors, WebhookSettings } from '../../../core/webhook/active.ts';
import type { InboundCall, IngestStatus, WebhookIngest } from '../../../core/webhook/api.ts';
import type { Deadline } from './deadline.ts';

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
    if (made === undefined) waiting.set(connector, made = { ...connector, settings: waitingSettings(connector.settings, deadline) });
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
    async receive(call: InboundCall, signal: AbortSignal): Promise<IngestStatus> {
      const status = await ingest.receive(call, signal);
      if (status !== 201) return status;
      const connector = await active.activeOf(call.connectorId);
      return connector === null || connector.settings.waitForWrite ? status : 202;
    },
  };
}
