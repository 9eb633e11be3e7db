import * as path from 'node:path';
import { isSkuaError } from '../../core/base/errors.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { User, Users, PasswordFormat } from '../../core/security/api.ts';
import { checkPassword } from '../../core/security/format/user.ts';
import { ADMINISTRATORS, isAdministrator } from '../../core/base/principal.ts';
import { createSecurity, DEFAULT_PASSWORD } from '../../core/security/security.ts';
import type { EventStore } from '../../core/streams/api.ts';
import type { UserDocument } from '../../handlers/documents/users.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { coloursFor, counted, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import { expectStatus, NodeClient } from '../cli/node-client.ts';
import { readNewPassword } from '../cli/password-input.ts';
import { shown } from '../../infra/runtime/config/sources.ts';
import { openDirectory } from '../store/open-directory.ts';
import type { userListOptions, userResetPasswordOptions } from './options-command.ts';

/** A user as the command shows it, and as the API of users has it. */
type Listed = Pick<Required<UserDocument>, 'loginName' | 'fullName' | 'groups' | 'disabled' | 'passwordFormat'>;

export async function runUserList({ options, given }: Input<typeof userListOptions>, io: Io): Promise<ExitCode> {
  const { db, index, json } = options;
  if (db !== null && given.has('node'))
    throw new UsageError('--node asks a running node and --db reads a directory: give one of them.');
  if (db !== null && given.has('ca'))
    throw new UsageError('--ca is for running nodes: a directory has no certificate.');
  if (db === null && given.has('index')) throw new UsageError('--index needs --db.');
  const users =
    db === null
      ? await usersOfNode(NodeClient.of(options, io.env))
      : await inDirectory(
          {
            db,
            index,
            whileRunning: 'For a running node leave out --db: `skua user list` asks it, as an administrator.',
            appendsNothing: true,
            looksOnly: true,
          },
          io,
          async (store) => (await usersOver(store, 'strong').list()).map(listed),
        );
  if (json) line(io.stdout, JSON.stringify({ users }, null, 2));
  else showUsers(users, io);
  return EXIT.ok;
}

async function usersOfNode(node: NodeClient): Promise<Listed[]> {
  const text = await expectStatus(
    await node.call('GET', '/users?passwordFormats=true', { headers: { accept: 'application/json' } }),
    [200],
    'asked for its users',
  );
  const { data } = JSON.parse(text) as { data: Listed[] };
  return data.map(({ loginName, fullName, groups, disabled, passwordFormat }) => ({
    loginName,
    fullName,
    groups,
    disabled,
    passwordFormat,
  }));
}

function listed({ loginName, fullName, groups, isDisabled, passwordFormat }: User): Listed {
  return { loginName, fullName, groups, disabled: isDisabled, passwordFormat };
}

const COLUMNS: readonly Column[] = ['login', 'full name', 'groups', 'may log in', 'password'].map((title) => ({
  title,
  align: 'left',
}));

function showUsers(users: readonly Listed[], io: Io): void {
  const { dim } = coloursFor(io.stdout, io.env);
  for (const text of tableLines(
    COLUMNS,
    users.map(({ loginName, fullName, groups, disabled, passwordFormat }) => [
      shown(loginName),
      shown(fullName ?? ''),
      shown(groups.join(', ')),
      disabled ? 'no, disabled' : 'yes',
      passwordFormat,
    ]),
  ))
    line(io.stdout, text);
  const strong = users.filter(({ passwordFormat }) => passwordFormat === 'strong').length;
  line(
    io.stdout,
    `${counted(users.length, 'user')}.${strong === 0 ? '' : dim(` strong: scrypt, which EventStoreDB does not read. On a node with PasswordFormat: compatible the next login stores such a password again, in the compatible format.`)}`,
  );
}

export async function runUserResetPassword(
  { options, positionals }: Input<typeof userResetPasswordOptions>,
  io: Io,
): Promise<ExitCode> {
  const { db, index, json } = options;
  const loginName = positionals[0]!;
  if (db === null)
    throw new UsageError(
      '--db DIR is missing: the data directory of a stopped node. While a node runs, an administrator sends POST /users/LOGIN/command/reset-password.',
    );
  const user = await inDirectory(
    {
      db,
      index,
      whileRunning: `While it runs, an administrator sends POST /users/${shown(loginName)}/command/reset-password; otherwise stop it first.`,
    },
    io,
    async (store) => {
      const before = await userOrNull(usersOver(store, 'strong'), loginName);
      if (before === null && !options.administrator)
        throw new CommandError(
          'user_not_found',
          `There is no user ${shown(loginName)}: \`skua user list --db ${db}\` lists the users. With --administrator the user is created.`,
          EXIT.failed,
        );
      const password = await readNewPassword(options['password-file'], shown(loginName), io);
      checkPassword(password);
      const kept = before === null || before.passwordFormat === 'unknown' ? 'strong' : before.passwordFormat;
      return change(usersOver(store, options['password-format'] ?? kept), loginName, before, password, options);
    },
  );
  if (json) line(io.stdout, JSON.stringify(listed(user)));
  else
    line(
      io.stdout,
      `${shown(loginName)} has the new password (${user.passwordFormat})${user.groups.length === 0 ? '' : `, groups ${shown(user.groups.join(', '))}`}.${user.isDisabled ? ' The user is disabled and cannot log in: add --enable to change that.' : ' Start the node and log in with it.'}`,
    );
  return EXIT.ok;
}

/** The password is changed first: until then no one is let in who was not before. */
async function change(
  users: Users,
  loginName: string,
  before: User | null,
  password: string,
  { administrator, enable }: { readonly administrator: boolean; readonly enable: boolean },
): Promise<User> {
  if (before === null) await users.create({ loginName, fullName: null, groups: [ADMINISTRATORS], password });
  else {
    await users.resetPassword(loginName, password);
    if (administrator && !isAdministrator({ name: loginName, roles: before.groups }))
      await users.update(loginName, { groups: [...before.groups, ADMINISTRATORS] });
    if (enable) await users.enable(loginName);
  }
  return users.get(loginName);
}

async function userOrNull(users: Users, loginName: string): Promise<User | null> {
  try {
    return await users.get(loginName);
  } catch (error) {
    if (isSkuaError(error, 'user_not_found')) return null;
    throw error;
  }
}

/** Users as a node has them. No user logs in here, and no default users are made. */
function usersOver(store: EventStore, passwordFormat: PasswordFormat): Users {
  const parts = { store, keys: nodeKeys, clock: systemClock, ids: systemIds, log: silentLog, meter: silentMeter };
  return createSecurity(parts, {
    passwordFormat,
    allowAnonymousStreamAccess: false,
    adminPassword: DEFAULT_PASSWORD,
    opsPassword: DEFAULT_PASSWORD,
  }).users;
}

interface Directory {
  readonly db: string;
  readonly index: string | null;
  /** What to do where a node uses the directory. */
  readonly whileRunning: string;
  /** Nothing is written, so that the copy of a member will do. */
  readonly appendsNothing?: boolean;
  readonly looksOnly?: boolean;
}

async function inDirectory<T>(
  { db, index, ...use }: Directory,
  io: Io,
  work: (store: EventStore) => Promise<T>,
): Promise<T> {
  const opened = await openDirectory(path.resolve(db), index, { repairHistory: false }, io, use);
  try {
    return await work(opened.open.store);
  } finally {
    await opened.close();
  }
}
