import { SkuaError } from '../../core/base/errors.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { commandLineName, environmentName, Names } from '../../infra/runtime/config/option-names.ts';
import { ConfigError } from '../../infra/runtime/config/option.ts';
import { OPTION_GROUPS } from '../../infra/runtime/config/options.ts';
import type { OptionName } from '../../infra/runtime/config/options.ts';
import type { Duration, TestNodeOptions, TestUser } from './api.ts';

/** Configurations that are kept: reading all options takes a tenth of the time that a node in memory needs to start. */
const KEPT_MAX = 64;

const MEMBERS: ReadonlySet<string> = new Set<keyof TestNodeOptions>([
  'users',
  'tls',
  'seed',
  'storage',
  'options',
  'onLog',
]);
const USER_MEMBERS: ReadonlySet<string> = new Set<keyof TestUser>(['name', 'password', 'groups', 'fullName']);

/** What the members of the options decide, or what makes no sense in the process of tests. */
const DECIDED: ReadonlySet<OptionName> = new Set<OptionName>([
  'NodeIp',
  'NodePort',
  'Db',
  'MemDb',
  'Index',
  'Insecure',
  'DisableTls',
  'Dev',
  'DevCertPath',
  'Storage',
  'ClusterSize',
  'Config',
  'Help',
  'Version',
  'WhatIf',
  'Log',
  'DefaultAdminPassword',
  'DefaultOpsPassword',
]);

/** The password of the users that are always there. */
export const DEFAULT_PASSWORD = 'changeit';

/**
 * What a node in the process of tests has other than one of its own: a hundred of them must not take more memory than
 * one, and no test waits for a disk to be proven.
 */
const FOR_TESTS: Readonly<Partial<Record<OptionName, string>>> = {
  NodeIp: '127.0.0.1',
  NodePort: '0',
  PasswordFormat: 'compatible',
  StreamExistenceFilterSize: '65536',
  ChunksCacheSize: '4194304',
};

/** What a test node is started with, checked. */
export interface Asked {
  readonly options: TestNodeOptions;
  readonly hasUsers: boolean;
  readonly isSecure: boolean;
  readonly isInMemory: boolean;
  readonly adminPassword: string;
  /** Those that have to be created. */
  readonly users: readonly TestUser[];
}

/** Throws `bad_option` for what is no option, or makes no sense. */
export function checkOptions(given: TestNodeOptions = {}): Asked {
  if (given === null || typeof given !== 'object') throw badOption('The options of a test node are an object.');
  for (const name of Object.keys(given))
    if (!MEMBERS.has(name))
      throw badOption(
        `Unknown option ${name} of a test node. Use one of ${[...MEMBERS].join(', ')}; options of the node itself go into 'options'.`,
        { name },
      );
  const { users = false, tls = false, storage = 'memory', seed, onLog } = given;
  if (typeof tls !== 'boolean') throw badOption('tls is true or false.');
  if (storage !== 'memory' && storage !== 'folder') throw badOption("storage is 'memory' or 'folder'.");
  if (onLog !== undefined && typeof onLog !== 'function') throw badOption('onLog is a function that takes lines.');
  if (seed !== undefined && typeof seed !== 'function' && (typeof seed !== 'object' || seed === null))
    throw badOption('seed is an object with events by stream, or a function.');
  const list = users === true || users === false ? [] : users;
  if (!Array.isArray(list)) throw badOption('users is true, false, or a list of users.');
  for (const user of list as readonly TestUser[]) checkUser(user, list as readonly TestUser[]);
  const all = list as readonly TestUser[];
  return {
    options: given,
    hasUsers: users !== false || tls,
    isSecure: tls,
    isInMemory: storage === 'memory',
    adminPassword: all.find(({ name }) => name === 'admin')?.password ?? DEFAULT_PASSWORD,
    users: all.filter(({ name }) => !isDefault(name)),
  };
}

function isDefault(name: string): boolean {
  return name === 'admin' || name === 'ops';
}

function checkUser(user: TestUser, all: readonly TestUser[]): void {
  if (typeof user?.name !== 'string' || typeof user.password !== 'string')
    throw badOption('A user has a name and a password, both strings.');
  for (const name of Object.keys(user))
    if (!USER_MEMBERS.has(name))
      throw badOption(`Unknown member ${name} of the user ${user.name}. Use one of ${[...USER_MEMBERS].join(', ')}.`, {
        name,
      });
  if (all.some((other) => other !== user && other.name === user.name))
    throw badOption(`There are two users ${user.name}.`, { name: user.name });
  if (isDefault(user.name) && (user.groups !== undefined || user.fullName !== undefined))
    throw badOption(`The user ${user.name} always exists: only its password can be set.`, { name: user.name });
}

const kept = new Map<string, Config>();

/** The configuration of the node. Throws `bad_option` for options that it refuses. */
export function configOf({ options, hasUsers, isSecure, isInMemory }: Asked, folder: string | null): Config {
  const words = wordsOf(options.options ?? {});
  words.push(
    isInMemory ? '--mem-db' : `--db=${folder}`,
    isSecure ? '--dev' : hasUsers ? '--disable-tls' : '--insecure',
  );
  const env = passwordsOf(options.users);
  const key = JSON.stringify([words, env]);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const config = refusing(() => loadConfig({ argv: words, env, readFile: () => null }));
  // Folders come once.
  if (isInMemory && kept.size < KEPT_MAX) kept.set(key, config);
  return config;
}

function passwordsOf(users: TestNodeOptions['users']): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { name, password } of Array.isArray(users) ? (users as readonly TestUser[]) : []) {
    if (name === 'admin') env[environmentName('DefaultAdminPassword')] = password;
    if (name === 'ops') env[environmentName('DefaultOpsPassword')] = password;
  }
  return env;
}

function wordsOf(given: NonNullable<TestNodeOptions['options']>): string[] {
  if (typeof given !== 'object' || given === null)
    throw badOption("'options' is an object with options of the node by their names.");
  const texts = new Map(Object.entries(FOR_TESTS));
  if (Object.keys(given).length > 0) {
    const names = new Names(OPTION_GROUPS);
    for (const [written, value] of Object.entries(given)) {
      const name = (names.find(written)?.name ?? written) as OptionName;
      if (DECIDED.has(name)) throw badOption(`A test node sets ${written} itself: leave it out.`, { name: written });
      texts.set(name, String(value));
    }
  }
  return [...texts].map(([name, text]) => `${commandLineName(name)}=${text}`);
}

function refusing<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw badOption(error.problems.join(' '), { problems: error.problems });
  }
}

const UNITS_MS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000, seconds: 1_000, milliseconds: 1 } as const;

/** Longest span in milliseconds, some three hundred years: dates stay within what clients read. */
const SPAN_MS_MAX = 10_000_000_000_000;

/** Milliseconds of a span. Throws `bad_option`. */
export function millisecondsOf(by: Duration): number {
  let ms = 0;
  if (typeof by === 'number') ms = by;
  else if (typeof by !== 'object' || by === null) ms = Number.NaN;
  else {
    for (const [unit, count] of Object.entries(by)) {
      if (!Object.hasOwn(UNITS_MS, unit))
        throw badOption(`Unknown unit ${unit} of time. Use one of ${Object.keys(UNITS_MS).join(', ')}.`, {
          name: unit,
        });
      ms +=
        count === undefined
          ? 0
          : typeof count === 'number' && count >= 0
            ? count * UNITS_MS[unit as keyof typeof UNITS_MS]
            : Number.NaN;
    }
  }
  if (!(ms >= 0 && ms <= SPAN_MS_MAX))
    throw badOption(
      'Time moves on by a number of milliseconds from 0 to 10 000 000 000 000, or an object such as { days: 8 }.',
      { limit: SPAN_MS_MAX },
    );
  return ms;
}

export function badOption(message: string, data: Record<string, unknown> = {}): SkuaError {
  return new SkuaError('bad_option', message, data);
}
