import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SealedSecrets } from '../../security/api.ts';
import type { Settings } from '../api.ts';
import { quoted } from './connector-validation.ts';
import type { Validator } from './connector-validation.ts';
import type { ConnectorCache, Entry } from './cache.ts';
import {
  activating,
  created,
  DEACTIVATING,
  deleted,
  failed,
  reconfigured,
  renamed,
  RUNNING,
  stateChanged,
  STOPPED,
} from './connector-events.ts';
import type { ConnectorError, ConnectorEvent, ConnectorRecord } from './connector-events.ts';
import { openSecrets, sealSecrets } from './connector-secrets.ts';
import { shown } from '../format/settings-shape.ts';
import { changing } from './connector-streams.ts';
import type { ConnectorStreams } from './connector-streams.ts';

/** gRPC codes, as `errorDetails` has them. */
const INVALID_ARGUMENT = 3;
const FAILED_PRECONDITION = 9;
const INTERNAL = 13;

interface CommandParts {
  readonly streams: ConnectorStreams;
  readonly cache: ConnectorCache;
  readonly validator: Validator;
  readonly secrets: SealedSecrets;
  readonly clock: Clock;
  readonly log: Log;
}

interface Present extends Entry {
  readonly record: ConnectorRecord;
}

/** Commands. Those of one connector come one after the other; another instance's are met by the expected version. */
export class ConnectorCommands {
  readonly #parts: CommandParts;
  readonly #turns = new Turns();

  constructor(parts: CommandParts) {
    this.#parts = parts;
  }

  /** Gives what to warn of. */
  create(connectorId: string, name: string, given: Settings): Promise<readonly string[]> {
    return this.#inTurn(connectorId, async () => {
      const { streams, cache, validator, clock } = this.#parts;
      expectFree(connectorId, await cache.load(connectorId));
      const checked = await validator.check(connectorId, given, null);
      const settings = this.#seal(connectorId, checked.settings);
      await streams.addId(connectorId);
      await changing(async () => {
        const entry = await cache.load(connectorId);
        expectFree(connectorId, entry);
        // Its old deliveries must not count as those of the new one.
        if (entry.record !== null) await streams.cleanUp(connectorId, entry.version);
        await this.#append(connectorId, entry.version, created(connectorId, name, settings, clock.nowMs()));
      });
      return this.#warned(connectorId, checked.warnings);
    });
  }

  /** In force from the next start on; the name, where one is given, at once. Gives what to warn of. */
  reconfigure(connectorId: string, given: Settings, name: string | null = null): Promise<readonly string[]> {
    return this.#decide(connectorId, async ({ record, version }) => {
      const { validator, clock } = this.#parts;
      const { settings, warnings } = await validator.check(connectorId, given, record.settings);
      const nowMs = clock.nowMs();
      const events = [reconfigured(connectorId, record.revision + 1, this.#seal(connectorId, settings), nowMs)];
      if (name !== null && name !== record.name) events.push(renamed(connectorId, name, nowMs));
      await this.#append(connectorId, version, ...events);
      return this.#warned(connectorId, warnings);
    });
  }

  #warned(connectorId: string, warnings: readonly string[]): readonly string[] {
    for (const warning of warnings)
      this.#parts.log.warn('a connector was configured with a warning', { connectorId, warning });
    return warnings;
  }

  rename(connectorId: string, name: string): Promise<void> {
    return this.#decide(connectorId, async ({ record, version }) => {
      if (record.name !== name)
        await this.#append(connectorId, version, renamed(connectorId, name, this.#parts.clock.nowMs()));
    });
  }

  /**
   * Errors: `connector_state`; `invalid_connector` and `secret_refused`, which the connector's state shows afterwards
   * too.
   */
  start(connectorId: string): Promise<void> {
    return this.#inTurn(connectorId, async () => {
      const activation = await changing(async () => {
        const { record, version } = await this.#present(connectorId);
        if (record.state !== 'CONNECTOR_STATE_STOPPED')
          throw wrongState(
            record,
            record.state === 'CONNECTOR_STATE_DEACTIVATING'
              ? 'is still stopping. Wait until it has stopped'
              : 'is already running',
          );
        const settings = this.#sealAnew(record);
        await this.#append(
          connectorId,
          version,
          activating(connectorId, record.revision, settings, this.#parts.clock.nowMs()),
        );
        return version + 1;
      });
      await this.#finishStart(connectorId, activation);
    });
  }

  /** From ACTIVATING on. Throws what keeps the connector from running, once that is stored. */
  async #finishStart(connectorId: string, activation: number): Promise<void> {
    const { cache, clock } = this.#parts;
    const { record } = await cache.load(connectorId);
    const failure = record === null ? null : await this.#whyNot(record);
    await changing(async () => {
      const entry = await cache.load(connectorId);
      const now = entry.record;
      if (now?.activation?.number !== activation)
        throw new SkuaError(
          'connector_state',
          `Connector ${quoted(connectorId)} was stopped or deleted while it was starting.`,
          { connectorId },
        );
      if (now.state === 'CONNECTOR_STATE_RUNNING') return;
      if (now.state !== 'CONNECTOR_STATE_ACTIVATING') throw wrongState(now, 'was stopped while it was starting');
      const event =
        failure === null
          ? stateChanged(RUNNING, connectorId, clock.nowMs())
          : failed(connectorId, errorDetails(failure), clock.nowMs());
      await this.#append(connectorId, entry.version, event);
    });
    if (failure !== null) throw failure;
  }

  async #whyNot(record: ConnectorRecord): Promise<SkuaError | null> {
    const { validator } = this.#parts;
    if (record.activation === null) return null;
    try {
      const { settings } = validator.activate(record, record.activation);
      await validator.checkScript(settings.script);
      return null;
    } catch (error) {
      if (isSkuaError(error, 'invalid_connector') || isSkuaError(error, 'secret_refused')) return error;
      throw error;
    }
  }

  stop(connectorId: string): Promise<void> {
    return this.#inTurn(connectorId, async () => {
      const entry = await changing(async () => {
        const present = await this.#present(connectorId);
        const { state } = present.record;
        if (state === 'CONNECTOR_STATE_RUNNING' || state === 'CONNECTOR_STATE_ACTIVATING')
          await this.#append(
            connectorId,
            present.version,
            stateChanged(DEACTIVATING, connectorId, this.#parts.clock.nowMs()),
          );
        return this.#parts.cache.load(connectorId);
      });
      await entry.draining;
      await this.#finishStop(connectorId);
    });
  }

  /** From DEACTIVATING on. */
  #finishStop(connectorId: string): Promise<void> {
    return changing(async () => {
      const { record, version } = await this.#parts.cache.load(connectorId);
      if (record?.state === 'CONNECTOR_STATE_DEACTIVATING')
        await this.#append(connectorId, version, stateChanged(STOPPED, connectorId, this.#parts.clock.nowMs()));
    });
  }

  delete(connectorId: string): Promise<void> {
    return this.#decide(connectorId, async ({ record, version, draining }) => {
      const { streams, clock, log } = this.#parts;
      if (record.state !== 'CONNECTOR_STATE_STOPPED') throw wrongState(record, 'must be stopped before it is deleted');
      await draining;
      await this.#append(connectorId, version, deleted(record, clock.nowMs()));
      // The connector is deleted by now, whatever comes of this.
      await streams.cleanUp(connectorId, version + 1).catch((error: unknown) => {
        log.warn('the streams of a deleted connector could not be truncated; the next start tries again', {
          connectorId,
          error: String(error),
        });
      });
    });
  }

  /** A connector that is running as its stream says, but can't here. */
  fail(connectorId: string, activation: number, error: SkuaError): Promise<void> {
    return this.#inTurn(connectorId, () =>
      changing(async () => {
        const { record, version } = await this.#parts.cache.load(connectorId);
        if (record?.state !== 'CONNECTOR_STATE_RUNNING' || record.activation?.number !== activation) return;
        await this.#append(connectorId, version, failed(connectorId, errorDetails(error), this.#parts.clock.nowMs()));
      }),
    );
  }

  /** What a start does about the state that it finds. */
  goOn(connectorId: string): Promise<void> {
    return this.#inTurn(connectorId, async () => {
      const { cache, streams } = this.#parts;
      const { record, version } = await cache.load(connectorId);
      if (record === null) return;
      if (record.deletedMs !== null) await streams.cleanUp(connectorId, version);
      else if (record.state === 'CONNECTOR_STATE_ACTIVATING' && record.activation !== null)
        await this.#finishStart(connectorId, record.activation.number);
      else if (record.state === 'CONNECTOR_STATE_DEACTIVATING') await this.#finishStop(connectorId);
    });
  }

  /** When no command is under way. */
  idle(): Promise<void> {
    return this.#turns.idle();
  }

  close(): Promise<void> {
    return this.#turns.close();
  }

  #seal(connectorId: string, settings: Settings): Settings {
    return sealSecrets(connectorId, settings, this.#parts.secrets);
  }

  /** Under the newest token. What does not open stays as it is: the start will say so. */
  #sealAnew({ connectorId, settings }: ConnectorRecord): Settings {
    try {
      return this.#seal(connectorId, openSecrets(connectorId, settings, this.#parts.secrets));
    } catch (error) {
      if (isSkuaError(error, 'secret_refused')) return settings;
      throw error;
    }
  }

  /**
   * Appends, and lets this instance know what that means: a connector that stops takes no more calls when this returns.
   */
  async #append(connectorId: string, expected: number, ...events: readonly ConnectorEvent[]): Promise<void> {
    await this.#parts.streams.append(connectorId, expected, ...events);
    await this.#parts.cache.load(connectorId);
  }

  async #present(connectorId: string): Promise<Present> {
    const entry = await this.#parts.cache.load(connectorId);
    if (entry.record === null || entry.record.deletedMs !== null)
      throw new SkuaError('connector_not_found', `The connector ${quoted(connectorId)} no longer exists.`, {
        connectorId,
      });
    // A copy: the entry goes on with the stream, while a decision is made from one state.
    return { ...entry, record: entry.record };
  }

  #decide<T>(connectorId: string, decide: (entry: Present) => Promise<T>): Promise<T> {
    return this.#inTurn(connectorId, () => changing(async () => decide(await this.#present(connectorId))));
  }

  #inTurn<T>(connectorId: string, command: () => Promise<T>): Promise<T> {
    return this.#turns.take(connectorId, command);
  }
}

function expectFree(connectorId: string, { record }: Entry): void {
  if (record !== null && record.deletedMs === null)
    throw new SkuaError(
      'connector_exists',
      `The connector ${quoted(connectorId)} already exists: choose another id, or delete that one first.`,
      { connectorId },
    );
}

function wrongState({ connectorId, state }: ConnectorRecord, what: string): SkuaError {
  return new SkuaError('connector_state', `Connector ${quoted(connectorId)} ${what}.`, { connectorId, state });
}

function errorDetails(error: SkuaError): ConnectorError {
  const code =
    error.code === 'invalid_connector'
      ? INVALID_ARGUMENT
      : error.code === 'secret_refused'
        ? FAILED_PRECONDITION
        : INTERNAL;
  return { code, message: error.message };
}

/** Commands of one connector that wait for each other, the running one included. */
const COMMANDS_QUEUED_MAX = 100;

/** Lets the commands of one connector run one after the other, and those of different ones at once. */
class Turns {
  readonly #queues = new Map<string, { last: Promise<unknown>; length: number }>();
  #isClosed = false;

  /** Errors: `store_closed`, `too_busy`, and what the command fails with. */
  take<T>(connectorId: string, command: () => Promise<T>): Promise<T> {
    if (this.#isClosed)
      return Promise.reject(
        new SkuaError('store_closed', 'The node is stopping and accepts no more commands for connectors.'),
      );
    const queue = this.#queues.get(connectorId) ?? { last: Promise.resolve(), length: 0 };
    if (queue.length >= COMMANDS_QUEUED_MAX)
      return Promise.reject(
        new SkuaError('too_busy', `Too many commands for connector '${shown(connectorId)}' are waiting. Try again.`),
      );
    this.#queues.set(connectorId, queue);
    queue.length++;
    const result = queue.last.then(command).finally(() => {
      if (--queue.length === 0) this.#queues.delete(connectorId);
    });
    // The next one runs whatever becomes of this one.
    queue.last = result.catch(() => {});
    return result;
  }

  /** When no command is under way. */
  async idle(): Promise<void> {
    while (this.#queues.size > 0) await Promise.allSettled([...this.#queues.values()].map(({ last }) => last));
  }

  /** Commands under way are ended, new ones refused. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.idle();
  }
}
