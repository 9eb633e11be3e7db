import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { RoutingSandbox } from '../../ports/routing-sandbox.ts';
import type { SealedSecrets } from '../../security/api.ts';
import { invalidConnector } from '../api.ts';
import type { ActiveConnector, Violation, WebhookSettings, Settings, TestInput, TestResult } from '../api.ts';
import { isConnectorId } from './cache.ts';
import type { Activation, ConnectorRecord } from './connector-events.ts';
import { shown, spellNames } from '../format/settings-shape.ts';
import { openSecrets, unmaskSecrets } from './connector-secrets.ts';
import { tryScript } from '../routing/routing.ts';
import type { ListedAccess } from '../writer.ts';
import { parseWebhookSettings, warningsOf } from './connector-settings.ts';
import type { ParsedSettings } from './connector-settings.ts';

/** What may become of a connector, and what may run. */

const NAME_LENGTH_MIN = 3;
const NAME_LENGTH_MAX = 50;
const ID_LENGTH_MAX = 50;

/**
 * Errors: `invalid_connector` where no connector can be created with this id. The texts are those of the reference, but
 * for the shortest id.
 */
export function checkConnectorId(connectorId: string): void {
  if (isConnectorId(connectorId)) return;
  const violations: Violation[] = [];
  const refuse = (description: string) => violations.push({ field: 'connectorId', description });
  if (connectorId === '') refuse('ConnectorId must not be empty');
  if (connectorId.length > ID_LENGTH_MAX) refuse(`ConnectorId must be between 1 and ${ID_LENGTH_MAX} characters long`);
  if (!/^[a-zA-Z0-9_-]*$/.test(connectorId))
    refuse('ConnectorId can only contain alphanumeric characters, hyphens, and underscores');
  throw invalidConnector(violations);
}

/** The name to store; a blank one is the id. */
export function nameOf(connectorId: string, given: string | null): string {
  const name = given?.trim() ?? '';
  // Ids may be shorter than other names, and what a connector is called can always be given again.
  if (name === '' || name === connectorId) return connectorId;
  if (name.length < NAME_LENGTH_MIN || name.length > NAME_LENGTH_MAX)
    throw invalidConnector([{ field: 'name', description: 'name must be between 3 and 50 characters long' }]);
  if (!name.isWellFormed()) throw invalidConnector([{ field: 'name', description: 'name is not valid Unicode' }]);
  return name;
}

interface ValidatorParts {
  readonly sandbox: RoutingSandbox;
  readonly access: ListedAccess;
  readonly secrets: SealedSecrets;
  readonly clock: Clock;
  readonly log: Log;
}

interface CheckedSettings {
  readonly settings: Settings;
  readonly warnings: readonly string[];
}

export class Validator {
  readonly #parts: ValidatorParts;
  /** Calls under way in each lane of the sandbox that is not the connector's own. */
  readonly #lanes = new Map<string, number>();

  constructor(parts: ValidatorParts) {
    this.#parts = parts;
  }

  /**
   * The settings to store, under the names that are shown and with their secrets in the clear, and what to warn of.
   * `stored`: those in force, whose secrets masks stand for. Errors: `invalid_connector`, `secret_refused`.
   */
  async check(connectorId: string, given: Settings, stored: Settings | null): Promise<CheckedSettings> {
    const { settings: spelled, violations } = spellNames(given);
    if (violations.length > 0) throw invalidConnector(violations);
    const settings = unmaskSecrets(connectorId, spelled, stored, this.#parts.secrets);
    const parsed = this.#parse(settings).settings;
    await this.checkScript(parsed.script);
    const tried = await this.#tryOut(connectorId, parsed);
    return { settings, warnings: [...warningsOf(parsed), ...tried] };
  }

  #parse(settings: Settings): ParsedSettings {
    const parsed = parseWebhookSettings(settings);
    if (parsed.violations.length > 0) throw invalidConnector(parsed.violations);
    return parsed;
  }

  async checkScript(script: string): Promise<void> {
    const reason = await this.#parts.sandbox.check(script);
    if (reason !== null) throw invalidConnector([{ field: 'routingScript', description: reason }]);
  }

  /**
   * A script need not understand an empty request, so that one which does not is only worth a line in the log. Gives
   * what else to warn of.
   */
  async #tryOut(connectorId: string, settings: WebhookSettings): Promise<readonly string[]> {
    const {
      outcome,
      error,
      warnings = [],
    } = await this.#run(`${connectorId}:tried`, connectorId, settings, { body: '{}', headers: {}, query: {} });
    if (outcome !== 'routed' && outcome !== 'skipped')
      this.#parts.log.warn('the routing script of a connector fails on an empty request', {
        connectorId,
        outcome,
        error,
      });
    return warnings;
  }

  /** What is ready to take calls. Errors: `invalid_connector`, `secret_refused`. */
  activate(record: ConnectorRecord, { number, revision, settings }: Activation): ActiveConnector {
    const { connectorId, incarnation } = record;
    const parsed = this.#parse(openSecrets(connectorId, settings, this.#parts.secrets));
    return {
      connectorId,
      activation: number,
      incarnation,
      revision,
      settings: parsed.settings,
      secrets: parsed.secrets,
    };
  }

  /** Runs the script of stored settings. Errors: `invalid_connector`. */
  test(connectorId: string, stored: Settings, input: TestInput): Promise<TestResult> {
    return this.#run(`${connectorId}:tested`, connectorId, parseWebhookSettings(stored).settings, input);
  }

  /** Runs the script of settings that are not stored; their secrets are not looked at. Errors: `invalid_connector`. */
  async tryOut(connectorId: string, given: Settings, input: TestInput): Promise<TestResult> {
    const { settings, violations } = spellNames(given);
    if (violations.length > 0) throw invalidConnector(violations);
    return this.#run(`${connectorId}:tested`, connectorId, this.#parse(settings).settings, input);
  }

  /** In a lane of its own, so that a script under test holds up no calls. Connector ids have no colon. */
  async #run(
    lane: string,
    connectorId: string,
    { script, streams }: WebhookSettings,
    input: TestInput,
  ): Promise<TestResult> {
    this.#lanes.set(lane, (this.#lanes.get(lane) ?? 0) + 1);
    try {
      return await tryScript(this.#parts, { lane, connectorId, script, streams, input });
    } finally {
      this.#leave(lane);
    }
  }

  #leave(lane: string): void {
    const left = this.#lanes.get(lane)! - 1;
    if (left > 0) this.#lanes.set(lane, left);
    else {
      this.#lanes.delete(lane);
      this.#parts.sandbox.release(lane);
    }
  }
}

/** For messages. */
export function quoted(connectorId: string): string {
  return `'${shown(connectorId)}'`;
}
