import type { SkuaError } from '../../base/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { ActiveConnector, ActiveConnectors, Drain } from '../api.ts';
import type { Activation, ConnectorRecord } from './connector-events.ts';
import type { ConnectorStreams, LoadedConnector } from './connector-streams.ts';

/** A connector as this instance knows it: valid while `version` is the last number of its stream. */
export interface Entry extends LoadedConnector {
  record: ConnectorRecord | null;
  version: number;
  /** What takes calls here; null unless the record says RUNNING. */
  active: ActiveConnector | null;
  /** The end of draining what last took calls here; never rejects. */
  draining: Promise<void>;
}

interface KeptEntry extends Entry {
  readonly connectorId: string;
  /** The activation that could not be opened here. */
  failedActivation: number;
  loading: Promise<void> | null;
}

interface CacheParts {
  readonly streams: ConnectorStreams;
  readonly log: Log;
  /** Makes ready what a record says is running. Throws what prevents it. */
  readonly activate: (record: ConnectorRecord, activation: Activation) => ActiveConnector;
  /** A running connector can't run here. */
  readonly onFailure: (connectorId: string, activation: Activation, error: SkuaError) => void;
  /** Behind the drains. */
  readonly onStopped: (connectorId: string) => void;
}

/**
 * What this instance knows of connectors. Other instances write to the same streams, so nothing here counts without a
 * look at the version of the stream, which the store usually has at hand.
 */
export class ConnectorCache implements ActiveConnectors {
  readonly #parts: CacheParts;
  readonly #entries = new Map<string, KeptEntry>();
  readonly #drains: Drain[] = [];

  constructor(parts: CacheParts) {
    this.#parts = parts;
  }

  onStop(drain: Drain): void {
    this.#drains.push(drain);
  }

  activeOf(connectorId: string): ActiveConnector | null | Promise<ActiveConnector | null> {
    const entry = this.#entries.get(connectorId);
    if (entry !== undefined && this.#parts.streams.versionNow(connectorId) === entry.version) return entry.active;
    if (!isConnectorId(connectorId)) return this.#recorded(connectorId);
    return this.load(connectorId).then(({ active }) => active);
  }

  /** Any caller can name anything here, so what no id can be is looked up among the recorded ones first. */
  async #recorded(connectorId: string): Promise<ActiveConnector | null> {
    return (await this.#parts.streams.ids()).has(connectorId) ? (await this.load(connectorId)).active : null;
  }

  /** The connector as its stream has it now. Ids without a stream are not kept: any caller can name some. */
  async load(connectorId: string): Promise<Entry> {
    for (;;) {
      const entry = this.#entries.get(connectorId);
      const version = await this.#parts.streams.version(connectorId);
      if (entry === undefined) {
        if (version < 0) return { record: null, version, active: null, draining: Promise.resolve() };
        if (!this.#entries.has(connectorId))
          this.#entries.set(connectorId, {
            connectorId,
            record: null,
            version: -1,
            active: null,
            draining: Promise.resolve(),
            failedActivation: -1,
            loading: null,
          });
        continue;
      }
      if (entry.loading === null && entry.version === version) return entry;
      entry.loading ??= this.#readOn(entry).finally(() => {
        entry.loading = null;
      });
      await entry.loading;
    }
  }

  async #readOn(entry: KeptEntry): Promise<void> {
    const { record, version } = await this.#parts.streams.read(entry.connectorId, entry);
    entry.record = record;
    entry.version = version;
    this.#follow(entry);
  }

  /** Brings what takes calls here in line with the record. */
  #follow(entry: KeptEntry): void {
    const { record, active } = entry;
    const wanted = record?.state === 'CONNECTOR_STATE_RUNNING' ? record.activation : null;
    if (active !== null && active.activation !== wanted?.number) {
      entry.active = null;
      entry.draining = entry.draining.then(() => this.#drain(active));
    }
    if (record === null || wanted === null || entry.active !== null || entry.failedActivation === wanted.number) return;
    try {
      entry.active = this.#parts.activate(record, wanted);
    } catch (error) {
      entry.failedActivation = wanted.number;
      this.#parts.onFailure(entry.connectorId, wanted, error as SkuaError);
    }
  }

  async #drain(active: ActiveConnector): Promise<void> {
    for (const drain of this.#drains) {
      try {
        await drain(active);
      } catch (error) {
        this.#parts.log.error('accepted calls of a connector could not be completed', {
          connectorId: active.connectorId,
          error,
        });
      }
    }
    this.#parts.onStopped(active.connectorId);
  }
}

/** Ids that connectors can be created with. Others may have been recorded, and go on. */
const CONNECTOR_ID = /^[a-zA-Z0-9_-]{1,50}$/;

export function isConnectorId(text: string): boolean {
  return CONNECTOR_ID.test(text);
}
