import type { AutoScavengeConfig } from '../../../core/auto-scavenge/auto-scavenge.ts';
import type { CompressionMode } from '../../../core/backup/repository/api.ts';
import type { Retention } from '../../../core/backup/api.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { Log } from '../../../core/ports/log.ts';
import type { ObjectLocation } from '../../../core/ports/object-store.ts';
import type { ScavengeConfig } from '../../../core/scavenge/api.ts';
import { decodeBase64 } from '../../../core/base/base64.ts';
import { isBlankPassword } from '../../../core/security/format/user.ts';
import { licenceGuard, licenceOf } from '../../../core/security/licence/licence.ts';
import { integer, text } from '../../runtime/config/kinds.ts';
import { mergeReadings } from '../../runtime/config/merge.ts';
import { environmentName, Names } from '../../runtime/config/option-names.ts';
import { ConfigError, option, optional } from '../../runtime/config/option.ts';
import type { OptionGroup, ValuesOf } from '../../runtime/config/option.ts';
import {
  application,
  autoScavenge,
  backup,
  connectors,
  database,
  licensing,
  logging,
  scavenge,
  users,
} from '../../runtime/config/options.ts';
import { readEnvironment } from '../../runtime/config/sources.ts';
import type { Environment } from '../../runtime/config/sources.ts';
import { nodeKeys } from '../../node-keys.ts';
import { overlap, parseLocation } from '../../objects/open-objects.ts';
import { TICK_SECONDS } from '../function-limits.ts';
import { readSecret } from './function-secrets.ts';
import type { ReadSecret } from './function-secrets.ts';

const WEEK_SECONDS = 604_800;
/** Bytes of the key of a repository. */
const KEY_BYTES = 32;

const SECRET_HELP =
  'its name or ARN in AWS Secrets Manager, from which it is read at the start. It wins over the text itself';

/**
 * The options of the functions: those of a node that mean something here, by the same names and rules, from the
 * environment only. What follows is the functions' own.
 */
const FUNCTION_OPTIONS = {
  Storage: optional(text('PLACE'), 'Where the data is: s3://bucket/prefix; a directory only for developing functions'),
  TickSeconds: option(
    integer('SECONDS', 5, 840),
    TICK_SECONDS,
    'Time limit of a tick; less than the timeout of its function',
  ),
  'Licensing:IssuerKey': optional(
    text('PEM'),
    'Public key of the licence key issuer, given directly because a function has none of your files',
  ),
  'Backup:Key': optional(text('KEY'), 'Key for encrypting backups, 32 bytes in hex or Base64', {
    isSensitive: true,
    isEnvironmentOnly: true,
  }),
  DefaultAdminPasswordSecret: optional(text('SECRET'), `Secret with that password; ${SECRET_HELP}`),
  DefaultOpsPasswordSecret: optional(text('SECRET'), `Secret with that password; ${SECRET_HELP}`),
  'Connectors:DataProtection:TokenSecret': optional(text('SECRET'), `Secret with the token; ${SECRET_HELP}`),
  'Backup:KeySecret': optional(text('SECRET'), `Secret with that key; ${SECRET_HELP}`),
  'Backup:EverySec': option(
    integer('SECONDS', 60, WEEK_SECONDS),
    3_600,
    'How often ticks back up the store, if there is a repository',
  ),
};

const {
  Insecure,
  DisableHttpCaching,
  LogFailedAuthenticationAttempts,
  LogHttpRequests,
  AllowAnonymousStreamAccess,
  AllowDefaultPasswords,
} = application;

/** Everything that functions understand, in the order of help. */
const FUNCTION_SETTINGS = {
  ...FUNCTION_OPTIONS,
  Insecure,
  DisableHttpCaching,
  LogFailedAuthenticationAttempts,
  LogHttpRequests,
  AllowAnonymousStreamAccess,
  AllowDefaultPasswords,
  MaxReadPageBytes: { ...application.MaxReadPageBytes, fallback: 3_145_728, fallbackText: '3 MiB' },
  ChunkSize: { ...database.ChunkSize, fallback: 16_777_216, fallbackText: '16 MiB' },
  ChunksCacheSize: { ...database.ChunksCacheSize, fallback: 67_108_864 },
  UnsafeIgnoreHardDelete: database.UnsafeIgnoreHardDelete,
  DisableScavengeMerging: scavenge.DisableScavengeMerging,
  KeepDataOfDeletedStreams: scavenge.KeepDataOfDeletedStreams,
  ScavengeHistoryMaxAge: scavenge.ScavengeHistoryMaxAge,
  ...autoScavenge,
  'Licensing:LicenseKey': licensing['Licensing:LicenseKey'],
  'Licensing:UseBuiltIn': licensing['Licensing:UseBuiltIn'],
  ...users,
  'Connectors:Enabled': connectors['Connectors:Enabled'],
  'Connectors:DataProtection:Token': connectors['Connectors:DataProtection:Token'],
  'Connectors:DataProtection:PreviousTokens': connectors['Connectors:DataProtection:PreviousTokens'],
  'Webhook:MaxBodySize': connectors['Webhook:MaxBodySize'],
  'Webhook:ScriptTimeoutMs': connectors['Webhook:ScriptTimeoutMs'],
  'Backup:Repository': backup['Backup:Repository'],
  'Backup:S3Endpoint': backup['Backup:S3Endpoint'],
  'Backup:S3Region': backup['Backup:S3Region'],
  'Backup:Compression': backup['Backup:Compression'],
  'Backup:KeepLast': backup['Backup:KeepLast'],
  'Backup:KeepHourly': backup['Backup:KeepHourly'],
  'Backup:KeepDaily': backup['Backup:KeepDaily'],
  'Backup:KeepWeekly': backup['Backup:KeepWeekly'],
  'Backup:ThrottleBytesPerSec': backup['Backup:ThrottleBytesPerSec'],
  'Backup:Parallel': backup['Backup:Parallel'],
  LogLevel: logging.LogLevel,
};

type Values = ValuesOf<typeof FUNCTION_SETTINGS>;

export interface FunctionSettings {
  readonly values: Values;
  readonly place: ObjectLocation;
  /** Null where ticks make no backups. */
  readonly backup: FunctionBackupSettings | null;
  /** To be logged once. */
  readonly warnings: readonly string[];
}

interface FunctionBackupSettings {
  readonly place: ObjectLocation;
  /** Null without encryption. */
  readonly key: Uint8Array | null;
  readonly compression: CompressionMode;
  readonly everyMs: number;
  /** Null where all backups are kept. */
  readonly keep: Retention | null;
  readonly throttleBytesPerSecond: number;
  readonly parallel: number;
}

const GROUPS: readonly OptionGroup[] = [{ title: 'Function Options', options: FUNCTION_SETTINGS }];

interface Needs {
  /** Whether the function has users, and creates the first ones. */
  readonly hasUsers?: boolean;
}

/**
 * Reads the variables `SERVER_...`; endpoint, region and credentials of S3 are the SDK's business. Unknown names only
 * warn, for the functions of one deployment share a list. Throws a ConfigError with everything that is wrong, and
 * `bad_option` for a place that is none.
 */
export function readSettings(env: Environment, { hasUsers = true }: Needs = {}): FunctionSettings {
  const { settings, warnings, unknown } = mergeReadings(GROUPS, [
    { source: 'Environment Variables', reading: readEnvironment(env, new Names(GROUPS)) },
  ]);
  const values = Object.fromEntries([...settings].map(([name, { value }]) => [name, value])) as Values;
  if (values.Storage === null)
    throw new ConfigError(['SERVER_STORAGE is missing: set it to where the data is, such as s3://bucket/prefix.']);
  const defaults = FIRST_PASSWORDS.filter(
    (name) => values[`${name}Secret`] === null && values[name] === FUNCTION_SETTINGS[name].fallback,
  );
  // Everybody reaches a function, so there is no loopback address to tell by.
  if (hasUsers && !values.Insecure && !values.AllowDefaultPasswords && defaults.length > 0) {
    throw new ConfigError([
      `${defaults.map(environmentName).join(' and ')} (or the same with _SECRET) must be set: functions are publicly reachable, so they do not start with the default passwords. SERVER_ALLOW_DEFAULT_PASSWORDS=true allows them anyway.`,
    ]);
  }
  const location = parseLocation(values.Storage);
  return { values, place: location, backup: backupOf(values, location), warnings: [...warnings, ...unknown] };
}

const FIRST_PASSWORDS = ['DefaultAdminPassword', 'DefaultOpsPassword'] as const;

/** By options whose texts may stand in the secret store, those that name the secret. */
const SECRET_OPTIONS = {
  DefaultAdminPassword: 'DefaultAdminPasswordSecret',
  DefaultOpsPassword: 'DefaultOpsPasswordSecret',
  'Connectors:DataProtection:Token': 'Connectors:DataProtection:TokenSecret',
  'Backup:Key': 'Backup:KeySecret',
} as const;

/** The value of an option, from the secret store where it is there. Errors: those of `read`. */
export async function secretOf(
  { values }: FunctionSettings,
  name: keyof typeof SECRET_OPTIONS,
  read: ReadSecret = readSecret,
): Promise<string | null> {
  const option = SECRET_OPTIONS[name];
  const id = values[option];
  return id === null ? values[name] : read(id, environmentName(option));
}

/**
 * The password with which a default user is created. Errors: a ConfigError for the documented one, as everybody knows
 * it, and for an empty one.
 */
export async function firstPasswordOf(
  settings: FunctionSettings,
  name: (typeof FIRST_PASSWORDS)[number],
  read: ReadSecret = readSecret,
): Promise<string> {
  const password = (await secretOf(settings, name, read)) ?? FUNCTION_SETTINGS[name].fallback;
  if (isBlankPassword(password))
    throw new ConfigError([
      `${environmentName(`${name}Secret`)} names an empty secret, which would make the password empty: store one.`,
    ]);
  if (password === FUNCTION_SETTINGS[name].fallback && !settings.values.AllowDefaultPasswords)
    throw new ConfigError([
      `${environmentName(`${name}Secret`)} names a secret with the documented default password: store another.`,
    ]);
  return password;
}

/** The key under which ticks encrypt backups; null without encryption. */
export async function backupKeyOf(
  settings: FunctionSettings,
  read: ReadSecret = readSecret,
): Promise<Uint8Array | null> {
  if (settings.backup === null || settings.values['Backup:KeySecret'] === null) return settings.backup?.key ?? null;
  return keyOf(await secretOf(settings, 'Backup:Key', read), 'Backup:KeySecret');
}

/** How ticks scavenge. */
export function scavengeConfig({ values }: FunctionSettings): Partial<ScavengeConfig> {
  return {
    historyMaxAgeDays: values.ScavengeHistoryMaxAge,
    disableMerging: values.DisableScavengeMerging,
    unsafeIgnoreHardDelete: values.UnsafeIgnoreHardDelete,
    keepsDeletedData: values.KeepDataOfDeletedStreams,
  };
}

function backupOf(values: Values, storage: ObjectLocation): FunctionBackupSettings | null {
  const repository = values['Backup:Repository'];
  if (repository === null) return null;
  const location = parseLocation(repository, {
    endpoint: values['Backup:S3Endpoint'],
    region: values['Backup:S3Region'],
  });
  if (overlap(location, storage))
    throw new ConfigError([
      `SERVER_BACKUP__REPOSITORY ${repository} and SERVER_STORAGE ${values.Storage!} are inside each other, so both would be lost together: give the backups another prefix, or better another bucket.`,
    ]);
  const keep = {
    last: values['Backup:KeepLast'],
    hourly: values['Backup:KeepHourly'],
    daily: values['Backup:KeepDaily'],
    weekly: values['Backup:KeepWeekly'],
  };
  return {
    place: location,
    key: keyOf(values['Backup:Key']),
    compression: values['Backup:Compression'],
    everyMs: values['Backup:EverySec'] * 1_000,
    keep: keep.last + keep.hourly + keep.daily + keep.weekly === 0 ? null : keep,
    throttleBytesPerSecond: values['Backup:ThrottleBytesPerSec'],
    parallel: values['Backup:Parallel'],
  };
}

/** The message never shows what was given. */
function keyOf(given: string | null, option: 'Backup:Key' | 'Backup:KeySecret' = 'Backup:Key'): Uint8Array | null {
  if (given === null) return null;
  // A key file ends with a line end.
  const key = given.trim();
  const bytes = /^[0-9a-f]{64}$/i.test(key)
    ? Uint8Array.from(key.match(/../g)!, (pair) => Number.parseInt(pair, 16))
    : decodeBase64(key);
  if (bytes?.length === KEY_BYTES) return bytes;
  throw new ConfigError([
    `${environmentName(option)} ${option === 'Backup:Key' ? 'is' : 'names a secret that is'} not a repository key: it has ${KEY_BYTES} bytes, written as 64 hex digits (as \`skua backup key\` makes them) or in Base64.`,
  ]);
}

const MINUTE_MS = 60_000;

/** Whether scavenges are scheduled, and how, for the function that is asked and the one that acts. */
export function autoScavengeConfig(
  { values }: FunctionSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): AutoScavengeConfig & { readonly isOff: () => string | null } {
  const issuer = values['Licensing:IssuerKey'];
  const licence = licenceOf(
    {
      key: values['Licensing:LicenseKey'],
      issuerKey: issuer === null ? null : { pem: issuer },
      useBuiltIn: values['Licensing:UseBuiltIn'],
    },
    nodeKeys,
  );
  const guard = licenceGuard('AUTO_SCAVENGE', { licence, clock, log });
  return {
    isOff: () => (values['AutoScavenge:Enabled'] === false ? 'The option AutoScavenge:Enabled is false.' : guard()),
    zone: values['AutoScavenge:TimeZone'],
    nodeLostAfterMs: values['AutoScavenge:NodeLostAfter'] * MINUTE_MS,
  };
}
