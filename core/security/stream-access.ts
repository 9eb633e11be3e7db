import { isSkuaError, SkuaError } from '../errors.ts';
import type { Log } from '../ports/log.ts';
import type { AccessList, Authorize, StreamMetadata } from '../streams/api.ts';
import { jsonMembers } from '../json-scanner.ts';
import { parseAccessList } from '../streams/metadata.ts';
import { isMetastream, originalOf } from '../streams/names.ts';
import { decodeText } from '../text.ts';
import type { StreamAccess, StreamAction } from './api.ts';
import { ADMINISTRATORS, isAdministrator, isAnonymous } from './principal.ts';
import type { Principal } from './principal.ts';
import { infoNow, isUnchanged } from './stream-info.ts';
import type { ObservableStore, StreamInfo, StreamMark } from './stream-info.ts';

const ALL_STREAM = '$all';
/** Everybody. */
const EVERYONE = '$all';
/** What counts where neither the stream nor the configuration says anything. */
const USER_STREAM_ROLES: readonly string[] = [EVERYONE];
const SYSTEM_STREAM_ROLES: readonly string[] = [ADMINISTRATORS];

/** Access lists; options-and-security.md section 8.2, whose rules the numbers in the comments are. */
export class AccessLists implements StreamAccess {
  readonly #store: ObservableStore;
  readonly #defaults: DefaultAccess;
  readonly #allowAnonymous: boolean;

  constructor(store: ObservableStore, log: Log, allowAnonymous: boolean) {
    this.#store = store;
    this.#defaults = new DefaultAccess(store, log);
    this.#allowAnonymous = allowAnonymous;
  }

  check(principal: Principal, action: StreamAction, stream: string): void | Promise<void> {
    if (this.#isDecidedWithoutList(principal, action, stream)) return;
    const owner = ownerOf(action, stream);
    const info = infoNow(this.#store, owner);
    const defaults = this.#defaults.now();
    if (info === null || defaults === null) return this.#checkLater(principal, action, stream, owner);
    assertAllowed(principal, action, stream, owner, info, defaults);
  }

  async #checkLater(principal: Principal, action: StreamAction, stream: string, owner: string): Promise<void> {
    const defaults = await this.#defaults.load();
    assertAllowed(principal, action, stream, owner, await this.#store.streamInfo(owner), defaults);
  }

  authorizeWrite(principal: Principal, action: 'write' | 'delete', stream: string): Authorize | null | Promise<Authorize | null> {
    if (this.#isDecidedWithoutList(principal, action, stream)) return null;
    const owner = ownerOf(action, stream);
    // The lists that are asked are those of the moment in which the write takes its place.
    const authorize: Authorize = (metadata) => (isAllowed(principal, listedAction(action, stream), owner, metadata, this.#defaults.loaded) ? null : denial(principal, action, stream));
    return this.#defaults.now() === null ? this.#defaults.load().then(() => authorize) : authorize;
  }

  /** True when the action is allowed whatever any list says. Throws where nothing could allow it. */
  #isDecidedWithoutList(principal: Principal, action: StreamAction, stream: string): boolean {
    const isChange = action === 'write' || action === 'delete';
    // 1
    if (isChange && (stream === ALL_STREAM || stream === '')) throw denial(principal, action, ALL_STREAM);
    // 2
    if (action === 'delete' && isMetastream(stream)) throw denial(principal, action, stream);
    // 3
    if (isAnonymous(principal) && !this.#allowAnonymous) throw denial(principal, action, stream);
    // 4
    return isAdministrator(principal);
  }
}

/** The stream whose list decides (1 and 2). */
function ownerOf(action: StreamAction, stream: string): string {
  if (stream === '') return ALL_STREAM;
  return (action === 'read' || action === 'write') && isMetastream(stream) ? originalOf(stream) : stream;
}

/** The action that is looked up in the list (2). */
function listedAction(action: StreamAction, stream: string): StreamAction {
  if (!isMetastream(stream)) return action;
  return action === 'read' ? 'metadataRead' : action === 'write' ? 'metadataWrite' : action;
}

function assertAllowed(principal: Principal, action: StreamAction, stream: string, owner: string, info: StreamInfo, defaults: AccessDefaults): void {
  // A stream that is gone for ever says so to everyone who is known.
  if (info.isTombstoned && !isAnonymous(principal)) return;
  if (!isAllowed(principal, listedAction(action, stream), owner, info.metadata, defaults)) throw denial(principal, action, stream);
}

/** 5 to 7. */
function isAllowed(principal: Principal, action: StreamAction, owner: string, metadata: StreamMetadata, defaults: AccessDefaults): boolean {
  const isSystem = owner.startsWith('$');
  const configured = isSystem ? defaults.system : defaults.user;
  const list = metadata.acl?.[action] ?? configured[action] ?? (isSystem ? SYSTEM_STREAM_ROLES : USER_STREAM_ROLES);
  for (const role of list) {
    if (role === EVERYONE) return true;
    // An empty text in a list is nobody's name.
    if (role !== '' && (role === principal.name || principal.roles.includes(role))) return true;
  }
  return false;
}

const VERBS: Readonly<Record<StreamAction, string>> = {
  read: 'read', write: 'write to', delete: 'delete', metadataRead: 'read the metadata of', metadataWrite: 'change the metadata of',
};

function denial(principal: Principal, action: StreamAction, stream: string): SkuaError {
  const what = `${VERBS[action]} ${stream}`;
  return isAnonymous(principal)
    ? new SkuaError('not_authenticated', `Without a login nobody may ${what}: send a user name and a password.`, { stream })
    : new SkuaError('access_denied', `${principal.name} may not ${what}: let an administrator name the user or a group of the user in the access list of the stream.`, { stream });
}

/** What counts where a stream's own access list is silent; each may be silent itself. */
interface AccessDefaults {
  readonly user: AccessList;
  readonly system: AccessList;
}

const NO_DEFAULTS: AccessDefaults = { user: {}, system: {} };
const SETTINGS_STREAM = '$settings';
const ABSENT: ReadonlySet<string> = new Set(['stream_not_found', 'stream_deleted', 'event_not_found']);

/**
 * The configured defaults: the last event of `$settings` (options-and-security.md section 8.2). They are in force as soon
 * as that event is durable, because every question compares the state of the stream with the one they were read from.
 */
class DefaultAccess {
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
