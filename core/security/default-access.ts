import { isSkuaError } from '../errors.ts';
import type { Log } from '../ports/log.ts';
import type { AccessList } from '../streams/api.ts';
import { jsonMembers } from '../streams/json-members.ts';
import { parseAccessList } from '../streams/metadata.ts';
import { decodeText } from '../text.ts';
import { infoNow, isUnchanged, type ObservableStore, type StreamMark } from './stream-info.ts';

/** What counts where a stream's own access list is silent; each may be silent itself. */
export interface AccessDefaults {
  readonly user: AccessList;
  readonly system: AccessList;
}

export const NO_DEFAULTS: AccessDefaults = { user: {}, system: {} };
const SETTINGS_STREAM = '$settings';
const ABSENT: ReadonlySet<string> = new Set(['stream_not_found', 'stream_deleted', 'event_not_found']);

/**
 * The configured defaults: the last event of `$settings` (options-and-security.md section 8.2). They are in force as soon
 * as that event is durable, because every question compares the state of the stream with the one they were read from.
 */
export class DefaultAccess {
  readonly #store: ObservableStore;
  readonly #log: Log;
  #mark: StreamMark = { lastEventNumber: -1, metadataVersion: -1 };
  #loaded: AccessDefaults = NO_DEFAULTS;

  constructor(store: ObservableStore, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** The defaults that were read last. */
  get loaded(): AccessDefaults { return this.#loaded; }

  /** The defaults where they are known to be up to date, else null. */
  now(): AccessDefaults | null {
    const info = infoNow(this.#store, SETTINGS_STREAM);
    return info !== null && isUnchanged(this.#mark, info) ? this.#loaded : null;
  }

  async load(): Promise<AccessDefaults> {
    const info = await this.#store.streamInfo(SETTINGS_STREAM);
    if (isUnchanged(this.#mark, info)) return this.#loaded;
    const data = await this.#readLast();
    const defaults = data === null ? NO_DEFAULTS : parseDefaults(data);
    // Another caller may have been quicker; the error is told once. What is written meanwhile differs from this mark and is read next time.
    if (isUnchanged(this.#mark, info)) return this.#loaded;
    if (defaults === null) this.#log.error('the last event of $settings is no object of access lists: the built-in defaults are in force', { eventNumber: info.lastEventNumber });
    this.#mark = { lastEventNumber: info.lastEventNumber, metadataVersion: info.metadataVersion };
    this.#loaded = defaults ?? NO_DEFAULTS;
    return this.#loaded;
  }

  async #readLast(): Promise<Uint8Array | null> {
    try {
      return (await this.#store.readEvent(SETTINGS_STREAM, 'last')).data;
    } catch (error) {
      if (isSkuaError(error) && ABSENT.has(error.code)) return null;
      throw error;
    }
  }
}

/** Null when the data is no such object. */
function parseDefaults(data: Uint8Array): AccessDefaults | null {
  const members = jsonMembers(decodeText(data));
  if (members === null) return null;
  let { user, system } = NO_DEFAULTS;
  for (const { key, raw } of members) {
    if (key !== '$userStreamAcl' && key !== '$systemStreamAcl') continue;
    const list = parseAccessList(raw);
    if (list === null) return null;
    if (key === '$userStreamAcl') user = list;
    else system = list;
  }
  return { user, system };
}
