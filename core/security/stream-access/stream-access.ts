import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Meter } from '../../ports/meter.ts';
import type { Authorize, EventAccess, StreamMetadata } from '../../streams/api.ts';
import { parseAccessDefaults, UNREADABLE_LIST } from '../../streams/format/metadata.ts';
import type { AccessDefaults } from '../../streams/format/metadata.ts';
import { isMetastream, originalOf, SETTINGS_STREAM } from '../../streams/format/names.ts';
import type { StreamAccess, StreamAction } from '../api.ts';
import { ADMINISTRATORS, isAdministrator, isAnonymous } from '../../base/principal.ts';
import type { Principal } from '../../base/principal.ts';
import { infoNow, isUnchanged } from '../stream-info.ts';
import type { ObservableStore, StreamInfo, StreamMark } from '../stream-info.ts';

const ALL_STREAM = '$all';
/** Everybody. */
const EVERYONE = '$all';
/** What counts where neither the stream nor the configuration says anything. */
const USER_STREAM_ROLES: readonly string[] = [EVERYONE];
const SYSTEM_STREAM_ROLES: readonly string[] = [ADMINISTRATORS];

interface AccessListsParts {
  readonly store: ObservableStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** The anonymous caller counts as `$all`. */
  readonly allowAnonymous: boolean;
}

/** Access lists; the numbers in the comments are those of the rules in core/security/README.md, "How it works". */
export class AccessLists implements StreamAccess {
  readonly #store: ObservableStore;
  readonly #defaults: DefaultAccess;
  readonly #unreadable: UnreadableLists;
  readonly allowsAnonymous: boolean;

  constructor(parts: AccessListsParts) {
    this.#store = parts.store;
    this.#defaults = new DefaultAccess(parts.store, parts.log);
    this.#unreadable = new UnreadableLists(parts);
    this.allowsAnonymous = parts.allowAnonymous;
  }

  check(principal: Principal, action: StreamAction, stream: string): void | Promise<void> {
    if (this.#isDecidedWithoutList(principal, action, stream)) return;
    const owner = ownerOf(action, stream);
    const info = infoNow(this.#store, owner);
    const defaults = this.#defaults.now();
    if (info === null || defaults === null) return this.#checkLater(principal, action, stream, owner);
    this.#assertAllowed(principal, action, stream, info, defaults);
  }

  async #checkLater(principal: Principal, action: StreamAction, stream: string, owner: string): Promise<void> {
    const defaults = await this.#defaults.load();
    this.#assertAllowed(principal, action, stream, await this.#store.streamInfo(owner), defaults);
  }

  readerOf(principal: Principal): EventAccess | null {
    if (this.#isDecidedWithoutList(principal, 'read', ALL_STREAM)) return null;
    const defaults = this.#defaults;
    return {
      begin: async () => {
        await defaults.load();
      },
      allows: (stream, metadata) => this.#isAllowed(principal, 'read', stream, metadata, defaults.loaded),
    };
  }

  authorizeWrite(
    principal: Principal,
    action: 'write' | 'delete',
    stream: string,
  ): Authorize | null | Promise<Authorize | null> {
    if (this.#isDecidedWithoutList(principal, action, stream)) return null;
    // The lists that are asked are those of the moment in which the write takes its place.
    const authorize: Authorize = (metadata) =>
      this.#isAllowed(principal, action, stream, metadata, this.#defaults.loaded)
        ? null
        : denial(principal, action, stream);
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
    if (isAnonymous(principal) && !this.allowsAnonymous) throw denial(principal, action, stream);
    // 4
    return isAdministrator(principal);
  }

  #assertAllowed(
    principal: Principal,
    action: StreamAction,
    stream: string,
    info: StreamInfo,
    defaults: AccessDefaults,
  ): void {
    // That a stream is gone for ever is answered to every known caller.
    if (info.isTombstoned && !isAnonymous(principal)) return;
    if (!this.#isAllowed(principal, action, stream, info.metadata, defaults)) throw denial(principal, action, stream);
  }

  /** 5 to 7. */
  #isAllowed(
    principal: Principal,
    action: StreamAction,
    stream: string,
    { acl }: StreamMetadata,
    defaults: AccessDefaults,
  ): boolean {
    const owner = ownerOf(action, stream);
    const listed = listedAction(action, stream);
    const isSystem = owner.startsWith('$');
    const configured = isSystem ? defaults.system : defaults.user;
    const own = acl?.[listed];
    if (acl === UNREADABLE_LIST) this.#unreadable.note(owner);
    else if (own === undefined && configured === UNREADABLE_LIST) this.#unreadable.note(SETTINGS_STREAM);
    const list = own ?? configured[listed] ?? (isSystem ? SYSTEM_STREAM_ROLES : USER_STREAM_ROLES);
    for (const role of list) {
      if (role === EVERYONE) return true;
      // An empty text in a list is no name.
      if (role !== '' && (role === principal.name || principal.roles.includes(role))) return true;
    }
    return false;
  }
}

/** Lines in the log in one window: every request may meet such a list. */
const LINES_MAX = 20;
const WINDOW_MS = 60_000;
/** Characters of a stream's name that the log shows. */
const LOGGED_NAME_LENGTH_MAX = 200;

/** Logs lists that can't be understood, where they have kept a caller out. */
class UnreadableLists {
  readonly #parts: AccessListsParts;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #lines = 0;

  constructor(parts: AccessListsParts) {
    this.#parts = parts;
  }

  note(stream: string): void {
    const { clock, log, meter } = this.#parts;
    meter.count('eventstore_access_lists_unreadable_total');
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#windowStartMs >= WINDOW_MS) {
      this.#windowStartMs = nowMs;
      this.#lines = 0;
    }
    if (this.#lines++ >= LINES_MAX) return;
    log.warn('an access list is invalid, so only administrators have access: write it again', {
      stream: stream.slice(0, LOGGED_NAME_LENGTH_MAX),
    });
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

const VERBS: Readonly<Record<StreamAction, string>> = {
  read: 'read',
  write: 'write to',
  delete: 'delete',
  metadataRead: 'read the metadata of',
  metadataWrite: 'change the metadata of',
};

function denial(principal: Principal, action: StreamAction, stream: string): SkuaError {
  const what = `${VERBS[action]} ${stream}`;
  return isAnonymous(principal)
    ? new SkuaError('not_authenticated', `Log in to ${what}: send a user name and password.`, { stream })
    : new SkuaError(
        'access_denied',
        `${principal.name} may not ${what}: have an administrator add the user or one of its groups to the access list of the stream.`,
        { stream },
      );
}

const NO_DEFAULTS: AccessDefaults = { user: {}, system: {} };
const ABSENT: ReadonlySet<string> = new Set(['stream_not_found', 'stream_deleted', 'event_not_found']);

/**
 * The configured defaults: the last event of `$settings`. They are in force as soon as that event is durable, because
 * every question compares the state of the stream with the one they were read from.
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
  get loaded(): AccessDefaults {
    return this.#loaded;
  }

  /** The defaults where they are known to be up to date, else null. */
  now(): AccessDefaults | null {
    const info = infoNow(this.#store, SETTINGS_STREAM);
    return info !== null && isUnchanged(this.#mark, info) ? this.#loaded : null;
  }

  async load(): Promise<AccessDefaults> {
    const info = await this.#store.streamInfo(SETTINGS_STREAM);
    if (isUnchanged(this.#mark, info)) return this.#loaded;
    const data = await this.#readLast();
    const defaults = data === null ? { ...NO_DEFAULTS, oddity: null } : parseAccessDefaults(data);
    // Another caller may have been quicker; the error is logged once. What is written meanwhile differs from this mark
    // and is read next time.
    if (isUnchanged(this.#mark, info)) return this.#loaded;
    const { oddity } = defaults;
    if (oddity !== null)
      this.#log.error(
        'the last event of $settings is invalid: where its access lists would apply, only administrators have access',
        { eventNumber: info.lastEventNumber, key: oddity.key, mustBe: oddity.mustBe },
      );
    this.#mark = { lastEventNumber: info.lastEventNumber, metadataVersion: info.metadataVersion };
    this.#loaded = defaults;
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
