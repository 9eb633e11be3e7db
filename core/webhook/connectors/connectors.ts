import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import type { RoutingSandbox } from '../../ports/routing-sandbox.ts';
import type { SealedSecrets } from '../../security/api.ts';
import type { EventStore } from '../../streams/api.ts';
import type { ActiveConnectors, Drain, Connector, Connectors, Settings, TestInput, TestResult } from '../api.ts';
import { ConnectorCache, isConnectorId } from './cache.ts';
import { ConnectorCommands } from './commands.ts';
import type { Activation, ConnectorRecord } from './connector-events.ts';
import { maskSecrets } from './connector-secrets.ts';
import type { ListedAccess } from '../writer.ts';
import { ConnectorStreams } from './connector-streams.ts';
import { checkConnectorId, nameOf, quoted, Validator } from './connector-validation.ts';
import { INSTANCE_TYPE } from './connector-settings.ts';

/**
 * The connectors of a store. All that is known of one stands as events in `$connectors/{id}`, and the ids that were
 * ever used in `$connectors-ctrl/registry-snapshots`. A command reads the state, decides, and appends expecting the
 * version that it decided by; a conflict makes it decide again. Several instances can so share a store. Each append is
 * a state that a start can go on from:
 *
 * | Crash behind | Found at the next start | Done about it |
 * |---|---|---|
 * | the id's snapshot, before `created` | an id without a connector | nothing: it counts as unknown, and creating it needs no snapshot any more |
 * | `created`, `reconfigured`, `renamed`, `stopped`, `failed` | the state it was meant to have | nothing |
 * | `activating`, before `running` or `failed` | ACTIVATING | what was left out is done: script and secrets are looked at, `running` or `failed` written |
 * | `running` | RUNNING | it takes calls again, with the settings it was started with; if its secrets don't open, `failed` |
 * | `deactivating`, before `stopped` | DEACTIVATING | `stopped`: what was accepted went with the process |
 * | `deleted`, before its streams are truncated | a deleted connector with old events before | its streams are truncated; creating it again does so first |
 */
interface ConnectorParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly sandbox: RoutingSandbox;
  /** As of the ingest: by it a test says where the connector may not write. */
  readonly access: ListedAccess;
  readonly secrets: SealedSecrets;
}

export interface RunningConnectors extends Connectors, ActiveConnectors {
  /** Goes on from what the last process left. One connector's trouble is logged and keeps no other from running. */
  open(): Promise<void>;
  /** Takes no more commands and ends those under way. What runs stays RUNNING for the next start. */
  close(): Promise<void>;
}

export function createConnectors(parts: ConnectorParts): RunningConnectors {
  return new Registry(parts);
}

class Registry implements RunningConnectors {
  readonly #log: Log;
  readonly #streams: ConnectorStreams;
  readonly #cache: ConnectorCache;
  readonly #validator: Validator;
  readonly #commands: ConnectorCommands;

  constructor({ store, clock, ids, log, sandbox, access, secrets }: ConnectorParts) {
    this.#log = log;
    this.#streams = new ConnectorStreams(store, ids, clock);
    this.#validator = new Validator({ sandbox, access, secrets, clock, log });
    this.#cache = new ConnectorCache({
      streams: this.#streams,
      log,
      activate: (record, activation) => this.#validator.activate(record, activation),
      onFailure: (connectorId, activation, error) => this.#failLater(connectorId, activation, error),
      onStopped: (connectorId) => sandbox.release(connectorId),
    });
    this.#commands = new ConnectorCommands({
      streams: this.#streams,
      cache: this.#cache,
      validator: this.#validator,
      secrets,
      clock,
      log,
    });
  }

  onStop(drain: Drain): void {
    this.#cache.onStop(drain);
  }

  activeOf(connectorId: string) {
    return this.#cache.activeOf(connectorId);
  }

  async open(): Promise<void> {
    for (const connectorId of await this.#streams.ids()) {
      try {
        await this.#commands.goOn(connectorId);
      } catch (error) {
        this.#log.error('a connector could not be restored', { connectorId, error });
      }
    }
    await this.#commands.idle();
  }

  close(): Promise<void> {
    return this.#commands.close();
  }

  async list(): Promise<readonly Connector[]> {
    const records: ConnectorRecord[] = [];
    for (const connectorId of await this.#streams.ids()) {
      const { record } = await this.#cache.load(connectorId);
      if (record !== null) records.push(record);
    }
    return records
      .sort((a, b) => a.createdMs - b.createdMs || (a.connectorId < b.connectorId ? -1 : 1))
      .map(connectorOf);
  }

  async get(connectorId: string): Promise<Connector> {
    return connectorOf(await this.#present(connectorId));
  }

  async #present(connectorId: string): Promise<ConnectorRecord> {
    if (!isConnectorId(connectorId) && !(await this.#streams.ids()).has(connectorId)) checkConnectorId(connectorId);
    const { record } = await this.#cache.load(connectorId);
    if (record === null || record.deletedMs !== null) throw notFound(connectorId);
    return record;
  }

  async create(connectorId: string, name: string | null, settings: Settings): Promise<readonly string[]> {
    checkConnectorId(connectorId);
    return this.#commands.create(connectorId, nameOf(connectorId, name), settings);
  }

  async reconfigure(connectorId: string, settings: Settings): Promise<readonly string[]> {
    await this.#present(connectorId);
    return this.#commands.reconfigure(connectorId, settings);
  }

  async rename(connectorId: string, name: string): Promise<void> {
    await this.#present(connectorId);
    await this.#commands.rename(connectorId, nameOf(connectorId, name));
  }

  async update(connectorId: string, name: string | null, settings: Settings): Promise<readonly string[]> {
    await this.#present(connectorId);
    return this.#commands.reconfigure(connectorId, settings, name === null ? null : nameOf(connectorId, name));
  }

  async start(connectorId: string): Promise<void> {
    await this.#present(connectorId);
    await this.#commands.start(connectorId);
  }

  async stop(connectorId: string): Promise<void> {
    await this.#present(connectorId);
    await this.#commands.stop(connectorId);
  }

  /** A source has no position to set, so what is left of a reset is that it starts. */
  reset(connectorId: string): Promise<void> {
    return this.start(connectorId);
  }

  async delete(connectorId: string): Promise<void> {
    await this.#present(connectorId);
    await this.#commands.delete(connectorId);
  }

  async test(connectorId: string, input: TestInput, given?: Settings): Promise<TestResult> {
    if (given !== undefined) {
      checkConnectorId(connectorId);
      return this.#validator.tryOut(connectorId, given, input);
    }
    const { settings } = await this.#present(connectorId);
    return this.#validator.test(connectorId, settings, input);
  }

  #failLater(connectorId: string, activation: Activation, error: SkuaError): void {
    this.#log.error("a connector can't run here", { connectorId, reason: error.message });
    this.#commands.fail(connectorId, activation.number, error).catch((failure: unknown) => {
      if (!isSkuaError(failure, 'store_closed'))
        this.#log.error('the failure of a connector could not be stored', { connectorId, error: failure });
    });
  }
}

function notFound(connectorId: string): SkuaError {
  return new SkuaError('connector_not_found', `There is no connector ${quoted(connectorId)}: check the id.`, {
    connectorId,
  });
}

function connectorOf(record: ConnectorRecord): Connector {
  const { connectorId, name, state, createdMs, updatedMs, deletedMs, error } = record;
  return {
    connectorId,
    instanceTypeName: INSTANCE_TYPE,
    name,
    state,
    stateUpdatedMs: record.stateUpdatedMs,
    settings: maskSecrets(record.settings),
    settingsUpdatedMs: record.settingsUpdatedMs,
    settingsRevision: record.revision,
    createdMs,
    updatedMs,
    deletedMs,
    error,
  };
}
