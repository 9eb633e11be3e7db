import { ALL_STREAM, DEFAULT_SETTINGS } from '../../core/persistent/api.ts';
import type { GroupSettings, StartFrom } from '../../core/persistent/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { readJson } from '../http/body.ts';
import type { GroupConfigDocument } from '../documents/subscriptions.ts';
import type { App, Call } from '../http/context.ts';

/** Settings of groups as JSON. Members are found in any case; those that mean nothing are ignored. */

/** Largest body of a request about a group. */
export const CONFIG_BODY_BYTES_MAX = 65_536;

const INT32_MAX = 2_147_483_647;

/** What a body says; what it leaves out is as in `otherwise`. */
export interface Config {
  readonly settings: GroupSettings;
  /** Undefined where the body does not say it. */
  readonly from: StartFrom | undefined;
}

export async function configOf(call: Call, app: App, otherwise: GroupSettings = DEFAULT_SETTINGS): Promise<Config> {
  const value = await readJson(call, app, Math.min(CONFIG_BODY_BYTES_MAX, app.options.bodyBytesMax));
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SkuaError('bad_json', 'The body must be a JSON object.');
  const members = new Members(value);
  const settings: GroupSettings = {
    resolveLinks: members.flag('resolveLinktos') ?? otherwise.resolveLinks,
    extraStatistics: members.flag('extraStatistics') ?? otherwise.extraStatistics,
    messageTimeoutMs: members.number('messageTimeoutMilliseconds', 0) ?? otherwise.messageTimeoutMs,
    checkpointAfterMs: members.number('checkPointAfterMilliseconds', 0) ?? otherwise.checkpointAfterMs,
    maxRetryCount: members.number('maxRetryCount', 0) ?? otherwise.maxRetryCount,
    minCheckpointCount: members.number('minCheckPointCount', 0) ?? otherwise.minCheckpointCount,
    maxCheckpointCount: members.number('maxCheckPointCount', 0) ?? otherwise.maxCheckpointCount,
    maxSubscriberCount: members.number('maxSubscriberCount', 0) ?? otherwise.maxSubscriberCount,
    liveBufferSize: members.number('liveBufferSize', 1) ?? otherwise.liveBufferSize,
    readBatchSize: members.number('readBatchSize', 1) ?? otherwise.readBatchSize,
    historyBufferSize: members.number('bufferSize', 1) ?? otherwise.historyBufferSize,
    strategy:
      members.text('namedConsumerStrategy') ?? roundRobin(members.flag('preferRoundRobin')) ?? otherwise.strategy,
  };
  if (settings.historyBufferSize <= settings.readBatchSize)
    throw new SkuaError(
      'bad_request',
      `bufferSize (${settings.historyBufferSize}) must be larger than readBatchSize (${settings.readBatchSize}).`,
    );
  return { settings, from: startOf(members) };
}

/** As clients of long ago name the strategies. */
function roundRobin(isPreferred: boolean | undefined): string | undefined {
  return isPreferred === undefined ? undefined : isPreferred ? 'RoundRobin' : 'DispatchToSingle';
}

const POSITION = /^C:(-?\d{1,19})\/P:(-?\d{1,19})$/;

/** `startPosition` is a text, `-1` for the end; `startFrom` the number that there was before it. */
function startOf(members: Members): StartFrom | undefined {
  const text = members.text('startPosition') ?? members.number('startFrom', -1, Number.MAX_SAFE_INTEGER)?.toString();
  return text === undefined ? undefined : startFrom(text);
}

/** Where a group is to begin, as text. */
export function startFrom(text: string): StartFrom {
  if (text === 'start' || text === 'end') return text;
  const position = POSITION.exec(text);
  if (position !== null)
    return position[1]!.startsWith('-') ? 'end' : { commit: Number(position[1]), prepare: Number(position[2]) };
  if (text === '-1') return 'end';
  if (!/^\d{1,19}$/.test(text))
    throw new SkuaError(
      'bad_request',
      'The start must be the number of an event, 0 or start for the first one, -1 or end for events written from now on, or for groups of $all a position such as C:1024/P:1024.',
    );
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

class Members {
  readonly #values: ReadonlyMap<string, unknown>;

  constructor(object: object) {
    this.#values = new Map(Object.entries(object).map(([name, value]) => [name.toLowerCase(), value]));
  }

  flag(name: string): boolean | undefined {
    const value = this.#of(name);
    if (value === undefined || typeof value === 'boolean') return value;
    throw new SkuaError('bad_request', `${name} must be true or false.`);
  }

  text(name: string): string | undefined {
    const value = this.#of(name);
    if (value === undefined || typeof value === 'string') return value;
    throw new SkuaError('bad_request', `${name} must be a string.`);
  }

  number(name: string, min: number, max = INT32_MAX): number | undefined {
    const value = this.#of(name);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    throw new SkuaError('bad_request', `${name} must be an integer from ${min} to ${max}.`);
  }

  /** A member that is null counts as absent. */
  #of(name: string): unknown {
    return this.#values.get(name.toLowerCase()) ?? undefined;
  }
}

/** The settings as they are sent, with the start as it is kept. */
export function configDocument(stream: string, startPosition: string, settings: GroupSettings): GroupConfigDocument {
  return {
    resolveLinktos: settings.resolveLinks,
    ...(stream === ALL_STREAM ? {} : { startFrom: Number(startPosition) }),
    startPosition,
    messageTimeoutMilliseconds: settings.messageTimeoutMs,
    extraStatistics: settings.extraStatistics,
    maxRetryCount: settings.maxRetryCount,
    liveBufferSize: settings.liveBufferSize,
    bufferSize: settings.historyBufferSize,
    readBatchSize: settings.readBatchSize,
    preferRoundRobin: settings.strategy === 'RoundRobin',
    checkPointAfterMilliseconds: settings.checkpointAfterMs,
    minCheckPointCount: settings.minCheckpointCount,
    maxCheckPointCount: settings.maxCheckpointCount,
    maxSubscriberCount: settings.maxSubscriberCount,
    namedConsumerStrategy: settings.strategy,
  };
}
