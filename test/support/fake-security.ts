import { SkuaError } from '../../core/base/errors.ts';
import type {
  Authenticator,
  NewUser,
  Security,
  Session,
  Sessions,
  StreamAccess,
  StreamAction,
  User,
  Users,
} from '../../core/security/api.ts';
import { isAdministrator, isAnonymous } from '../../core/base/principal.ts';
import type { Principal } from '../../core/base/principal.ts';
import type { AccessList, Authorize, EventStore } from '../../core/streams/api.ts';

interface Entry {
  user: User;
  password: string;
}

/** When every session of a FakeSecurity ends. */
export const SESSION_ENDS_MS = Date.UTC(2031, 3, 3);

/** Failures of one user from one address until they are refused unheard. */
export const FAKE_FAILURES_MAX = 10;

/**
 * Users in a map, with plain passwords, and the access lists of a store without configured defaults: enough to see what
 * handlers do with the answers of security. `pending` makes logins answer later, as derivation does.
 */
export class FakeSecurity implements Security {
  readonly entries = new Map<string, Entry>();
  /** Every login, as it came. */
  readonly logins: { readonly name: string; readonly password: string; readonly address: string | null }[] = [];
  pending = false;
  /** While true, nobody may be changed so that he is no administrator any more. */
  isLastAdministrator = false;
  /** When set, logins reject with it. */
  loginError: SkuaError | null = null;
  readonly #failures = new Map<string, number>();
  readonly #store: Pick<EventStore, 'streamInfo'>;

  constructor(store: Pick<EventStore, 'streamInfo'>) {
    this.#store = store;
  }

  add(loginName: string, password: string, groups: readonly string[], more: Partial<User> = {}): void {
    this.entries.set(loginName, {
      user: {
        loginName,
        fullName: `User ${loginName}`,
        groups,
        isDisabled: false,
        passwordFormat: 'strong',
        updatedMs: 0,
        ...more,
      },
      password,
    });
  }

  /** Whether principals are still known without their credentials. */
  knows = false;

  readonly authenticator: Authenticator = {
    stillKnows: () => this.knows,
    login: (name, password, address) => {
      this.logins.push({ name, password, address });
      return this.pending
        ? Promise.resolve().then(() => this.#login(name, password, address))
        : this.#login(name, password, address);
    },
  };

  /** Sessions of users by their value: names, and numbers of their own. */
  readonly sessions: Sessions & { readonly open: Map<string, Session> } = {
    open: new Map(),
    begin: async (principal) => {
      const value = `1.${principal.name}.${this.sessions.open.size}`;
      const session: Session = {
        principal,
        endsMs: SESSION_ENDS_MS,
        proof: { user: principal.name!, lastEventNumber: 0, metadataVersion: 0 },
      };
      this.sessions.open.set(value, session);
      return { ...session, value };
    },
    find: (value) => this.sessions.open.get(value) ?? null,
    end: async (value) => this.sessions.open.delete(value),
    resume: async ({ user, lastEventNumber }) => {
      const entry = this.entries.get(user);
      return entry === undefined || lastEventNumber !== 0 ? null : { name: user, roles: entry.user.groups };
    },
  };

  #login(name: string, password: string, address: string | null): Principal {
    if (this.loginError !== null) throw this.loginError;
    const key = `${name}@${address ?? ''}`;
    const failures = this.#failures.get(key) ?? 0;
    if (failures >= FAKE_FAILURES_MAX)
      throw new SkuaError('too_many_failures', 'Too many.', { retryAfterSeconds: 41.5 });
    const entry = this.entries.get(name);
    if (entry === undefined || entry.user.isDisabled || entry.password !== password) {
      this.#failures.set(key, failures + 1);
      throw new SkuaError('not_authenticated', 'The user name or the password is wrong.');
    }
    return { name, roles: entry.user.groups };
  }

  readonly access: StreamAccess = {
    allowsAnonymous: false,
    check: (principal, action, stream) => this.#check(principal, action, stream),
    readerOf: (principal) => {
      const early = alwaysRefused(principal, 'read', '$all');
      if (early !== null) throw early;
      if (isAdministrator(principal)) return null;
      return {
        begin: () => {},
        allows: (stream, { acl }) => {
          const [asked, owner] = ownerOf('read', stream);
          return refusedBy(acl, principal, asked, owner) === null;
        },
      };
    },
    authorizeWrite: (principal, action, stream) => this.#authorize(principal, action, stream),
  };

  #check(principal: Principal, action: StreamAction, stream: string): void | Promise<void> {
    const early = alwaysRefused(principal, action, stream);
    if (early !== null) throw early;
    if (isAdministrator(principal)) return;
    const [asked, owner] = ownerOf(action, stream);
    return this.#store.streamInfo(owner).then(({ metadata }) => {
      const error = refusedBy(metadata.acl, principal, asked, owner);
      if (error !== null) throw error;
    });
  }

  #authorize(principal: Principal, action: 'write' | 'delete', stream: string): Authorize | null {
    const early = alwaysRefused(principal, action, stream);
    if (early !== null) throw early;
    if (isAdministrator(principal)) return null;
    const [asked, owner] = ownerOf(action, stream);
    return (metadata) => refusedBy(metadata.acl, principal, asked, owner);
  }

  readonly users: Users = {
    list: async () => [...this.entries.values()].map(({ user }) => user),
    get: async (loginName) => this.#entry(loginName).user,
    create: async ({ loginName, password, fullName, groups }: NewUser) => {
      if (loginName === '') throw new SkuaError('invalid_user', 'A user needs a name.');
      const known = this.entries.get(loginName);
      if (known === undefined) this.add(loginName, password, groups, { fullName });
      else if (known.password !== password || [...known.user.groups].sort().join() !== [...groups].sort().join())
        throw new SkuaError('user_exists', 'There is another one.', { loginName });
    },
    update: async (loginName, change) => {
      this.#keepAdministrator(loginName);
      this.#change(loginName, change);
    },
    delete: async (loginName) => {
      this.#keepAdministrator(loginName);
      this.entries.delete(loginName);
    },
    enable: async (loginName) => this.#change(loginName, { isDisabled: false }),
    disable: async (loginName) => {
      this.#keepAdministrator(loginName);
      this.#change(loginName, { isDisabled: true });
    },
    resetPassword: async (loginName, password) => {
      this.#entry(loginName).password = password;
    },
    changePassword: async (loginName, currentPassword, newPassword) => {
      const entry = this.entries.get(loginName);
      if (entry?.password !== currentPassword)
        throw new SkuaError('wrong_password', 'The current password is wrong.', { loginName });
      entry.password = newPassword;
    },
  };

  #keepAdministrator(loginName: string): void {
    this.#entry(loginName);
    if (this.isLastAdministrator) throw new SkuaError('last_administrator', 'There is no other one.', { loginName });
  }

  #entry(loginName: string): Entry {
    const entry = this.entries.get(loginName);
    if (entry === undefined) throw new SkuaError('user_not_found', `There is no user '${loginName}'.`, { loginName });
    return entry;
  }

  #change(loginName: string, change: Partial<User>): void {
    const entry = this.#entry(loginName);
    entry.user = { ...entry.user, ...change };
  }
}

function denied(principal: Principal, stream: string): SkuaError {
  return new SkuaError(isAnonymous(principal) ? 'not_authenticated' : 'access_denied', `Not for you: ${stream}.`, {
    stream,
  });
}

function alwaysRefused(principal: Principal, action: StreamAction, stream: string): SkuaError | null {
  const isWrite = action === 'write' || action === 'delete';
  if (isAnonymous(principal) || (stream === '$all' && isWrite) || (stream.startsWith('$$') && action === 'delete'))
    return denied(principal, stream);
  return null;
}

/** For a metadata stream the metadata action of the stream it belongs to. */
function ownerOf(action: StreamAction, stream: string): readonly [StreamAction, string] {
  if (!stream.startsWith('$$')) return [action, stream];
  return [action === 'read' || action === 'metadataRead' ? 'metadataRead' : 'metadataWrite', stream.slice(2)];
}

function refusedBy(
  acl: AccessList | undefined,
  principal: Principal,
  action: StreamAction,
  stream: string,
): SkuaError | null {
  const allowed = acl?.[action] ?? [stream.startsWith('$') ? '$admins' : '$all'];
  const isAllowed =
    allowed.includes('$all') ||
    allowed.includes(principal.name ?? '') ||
    principal.roles.some((role) => allowed.includes(role));
  return isAllowed ? null : denied(principal, stream);
}
