import {
  addressRanges,
  boolean,
  headerName,
  hostPorts,
  hosts,
  integer,
  ip,
  loginPassword,
  oneOf,
  origins,
  path,
  powerOfTwo,
  size,
  text,
  texts,
  timeZone,
} from './kinds.ts';
import { flag, option, optional } from './option.ts';
import type { OptionGroup, ValuesOf } from './option.ts';

const NO_EFFECT = 'it has no effect and will be removed';

const TERABYTE = 1_099_511_627_776;

/** How the process as a whole behaves. */
export const application = {
  Config: option(
    path('FILE'),
    '/etc/skua/skua.conf',
    'Configuration file in YAML. The default one may be missing, one named here may not',
  ),
  Help: flag(boolean, 'Show the options and exit'),
  Version: flag(boolean, 'Show the version and exit'),
  WhatIf: flag(boolean, 'Show the options that would be in force, with their sources, and exit'),
  AllowUnknownOptions: flag(boolean, 'Warn about unknown options instead of refusing to start'),
  Insecure: flag(boolean, 'No TLS, no users, no access lists: anyone who can reach the port can do anything'),
  DisableTls: flag(
    boolean,
    'No TLS, but users and access lists stay. Passwords are sent in clear text: only for the loopback address, or behind a proxy',
  ),
  Dev: flag(
    boolean,
    'TLS with a self-signed certificate for localhost, created at startup: for development on one machine',
  ),
  DevCertPath: optional(
    path('FILE'),
    'File that keeps the certificate of --dev, so that the next start uses it again',
    { fallbackText: 'kept in memory' },
  ),
  AllowDefaultPasswords: flag(
    boolean,
    'Allow the node to listen beyond the loopback address while admin or ops has the default password or an empty one',
  ),
  MaxAppendSize: optional(
    size({ min: 1, max: 16_767_216 }),
    'Largest append, in bytes of event data in total; one event is limited to 4 MiB in any case',
    { fallbackText: '1 MiB by gRPC, none by HTTP' },
  ),
  MaxReadPageBytes: option(
    size({ min: 65_536, max: 134_217_728 }),
    8_388_608,
    'Bytes of events after which a page ends, with at least one event; its links lead to the rest',
    { fallbackText: '8 MiB' },
  ),
  MaxReplyBytesInFlight: option(
    size({ min: 33_554_432, max: TERABYTE }),
    268_435_456,
    'Memory limit of all replies together. A quarter is reserved for small ones; requests wait for free memory, and eventually get 503',
    { fallbackText: '256 MiB' },
  ),
  MaxUploadBytesInFlight: option(
    size({ min: 33_554_432, max: TERABYTE }),
    268_435_456,
    'Memory limit of request bodies, from arrival to answer. Beyond it, bodies are not read further',
    { fallbackText: '256 MiB' },
  ),
  ClientStallTimeout: option(
    integer('SECONDS', 1, 3_600),
    30,
    'Seconds after which a client is disconnected that does not read its reply or does not continue sending a large body',
  ),
  DisableHttpCaching: flag(boolean, 'Tell HTTP caches not to store replies'),
  LogHttpRequests: flag(boolean, 'Log a line for each HTTP request, and for each gRPC call'),
  LogFailedAuthenticationAttempts: flag(
    boolean,
    'Log a line with user and address for each request with wrong credentials',
  ),
  StatsPeriodSec: option(integer('SECONDS', 1, 86_400), 30, 'Time between two collections of statistics'),
  AllowAnonymousEndpointAccess: flag(boolean, 'Allow everyone to read /stats and /metrics'),
  AllowAnonymousStreamAccess: flag(
    boolean,
    'Allow everyone, without login, to use streams whose access list says $all',
  ),
  OverrideAnonymousEndpointAccessForGossip: option(boolean, true, 'Allow everyone to read /gossip'),
  EnableHistograms: flag(boolean, 'Ignored', { deprecated: NO_EFFECT }),
  WorkerThreads: option(integer('COUNT', 0, 1_024), 0, 'Ignored', { deprecated: NO_EFFECT }),
};

/** Files, memory and checks of the store. */
export const database = {
  Db: option(path('DIR'), './data', 'Data directory, created if absent'),
  Index: optional(path('DIR'), 'Directory of the index', { fallbackText: 'index in the data directory' }),
  Storage: optional(
    text('PLACE'),
    'Keep the data in object storage instead of a directory: s3://bucket/prefix, with endpoint, region and credentials as the AWS SDK takes them. Functions and other nodes may use the same place at the same time. With Db, or ClusterSize above 1, the node is a member of a cluster and keeps a replica in Db',
    { fallbackText: 'the data directory' },
  ),
  MemDb: flag(boolean, 'Keep everything in memory; all data is lost when the process ends'),
  ChunkSize: option(
    size({ min: 131_072, max: 1_073_741_824, multipleOf: 4_096 }),
    268_435_456,
    'Data bytes of a chunk file; for a new directory only, an existing one keeps its own',
    { fallbackText: '256 MiB' },
  ),
  ChunksCacheSize: option(
    size({ min: 4_194_304, max: TERABYTE }),
    67_108_864,
    'Memory for blocks of chunk files and index tables',
    { fallbackText: '64 MiB' },
  ),
  MaxMemTableSize: option(
    integer('COUNT', 1, 100_000_000),
    1_000_000,
    'Index entries kept in memory before a table is written',
  ),
  StreamExistenceFilterSize: option(
    size({ min: 10_000, max: 4_000_000_000, or: 0 }),
    33_554_432,
    'Memory of the filter that knows which streams exist; 0 switches it off',
    { fallbackText: '32 MiB' },
  ),
  IndexCacheDepth: option(
    integer('DEPTH', 8, 28),
    16,
    'Midpoints of an index table that are kept in memory, as a power of two',
  ),
  UseIndexBloomFilters: option(boolean, true, 'Write and use bloom filters of index tables'),
  SkipIndexVerify: flag(boolean, 'Do not verify the checksums of index tables, at startup or later'),
  SkipDbVerify: flag(
    boolean,
    'Do not verify the checksums of chunk files after startup, nor those of the chunk being written at startup',
  ),
  MaxTruncation: option(
    size({ min: 0, max: 1_024 * TERABYTE, or: -1 }),
    268_435_456,
    'Refuse to start if truncate.chk asks to truncate the log by more than this; -1 for any length',
    { fallbackText: '256 MiB' },
  ),
  CommitTimeoutMs: optional(
    integer('MS', 1, 3_600_000),
    'A write of a client that is not committed in this time is answered that its outcome is not known (503, or ABORTED), and may yet be carried out. Looked at every quarter of a second',
    { fallbackText: 'as long as it takes' },
  ),
  PrepareTimeoutMs: optional(integer('MS'), 'Ignored', {
    deprecated: 'a write has one phase here, which CommitTimeoutMs bounds',
  }),
  UnsafeIgnoreHardDelete: flag(
    boolean,
    'Let scavenges also remove the tombstones of hard-deleted streams: their names can then be used again, starting at event 0',
  ),
};

export const scavenge = {
  DisableScavengeMerging: flag(boolean, 'Do not merge small chunk files after a scavenge'),
  KeepDataOfDeletedStreams: flag(
    boolean,
    'Keep the data of the last event of a soft-deleted stream for ever, as EventStoreDB does. Otherwise a scavenge removes its data and keeps only number, id and type',
  ),
  ScavengeHistoryMaxAge: option(integer('DAYS', 1, 24_855), 30, 'Days to keep the events of a scavenge'),
  ScavengeBackendPageSize: option(
    powerOfTwo('KIB', 1, 64),
    16,
    'Page size of the scavenge database in KiB; an existing one keeps its own',
  ),
  ScavengeBackendCacheSize: option(
    size({ min: 65_536, max: TERABYTE, multipleOf: 1_024 }),
    67_108_864,
    'Cache of the scavenge database while a scavenge runs',
    { fallbackText: '64 MiB' },
  ),
  ScavengeHashUsersCacheCapacity: option(
    integer('COUNT', 0, 100_000_000),
    100_000,
    'Stream hashes that a scavenge remembers in memory',
  ),
  AlwaysKeepScavenged: flag(boolean, 'Ignored', {
    deprecated: 'it has no effect: a scavenged chunk always takes the place of the one before',
  }),
  OptimizeIndexMerge: flag(boolean, 'Ignored', {
    deprecated: 'it has no effect: index merges never look into the log',
  }),
};

const PORT_MAX = 65_535;

/** Where the node listens, and what it serves there. */
const network = {
  NodeIp: option(ip, '127.0.0.1', 'Address to listen on', { aliases: ['HttpIp', 'ExtIp'] }),
  NodePort: option(integer('PORT', 0, PORT_MAX), 2113, 'Port to listen on; 0 for any free one', {
    aliases: ['HttpPort', 'ExtPort'],
  }),
  NodeHostAdvertiseAs: optional(text('HOST'), 'Host name under which others reach the node, if it is not its address', {
    aliases: ['ExtHostAdvertiseAs'],
    fallbackText: 'NodeIp',
  }),
  NodePortAdvertiseAs: option(
    integer('PORT', 0, PORT_MAX),
    0,
    'Port under which others reach the node; 0 for NodePort',
    { aliases: ['HttpPortAdvertiseAs'] },
  ),
  KeepAliveInterval: option(
    integer('MS', 1_000, 3_600_000),
    10_000,
    'Idle time after which a keep-alive ping is sent on an HTTP/2 connection, as used by gRPC',
  ),
  KeepAliveTimeout: option(
    integer('MS', 1_000, 3_600_000),
    10_000,
    'Time in which the ping must be answered, or the connection is closed',
  ),
  CompressionMinSize: option(
    size({ min: 0, max: 1_073_741_824, or: -1 }),
    1_024,
    'Size from which answers are compressed for clients that accept it; -1 for never',
  ),
  EnableAtomPubOverHttp: option(boolean, true, 'Serve streams over HTTP'),
  DisableAdminUi: flag(
    boolean,
    'Remove the page at /ui, / and all routes below /admin: the commands that ask there end with not_found, and SIGHUP alone reloads the configuration. Scavenges begin by gRPC, and by the schedule',
  ),
  DisableStatsOnHttp: flag(boolean, 'Remove /stats and /metrics'),
  DisableGossipOnHttp: flag(boolean, 'Remove /gossip'),
  MaxConnectionsPerAddress: option(
    integer('COUNT', 1, 10_000),
    2_500,
    'Open connections per address, or per /64 IPv6 network; those of TrustedProxies are not counted. The limit for all together is 10000',
  ),
  CorsOrigins: option(
    origins,
    [],
    'Origins of web pages, such as https://events.example.test, whose requests may carry credentials and may write; the login of the page at /ui does not apply to them. * allows pages of all origins to read, without credentials',
    { fallbackText: 'none: only pages of the node itself' },
  ),
  HstsMaxAge: option(
    integer('SECONDS', 0, 63_072_000),
    0,
    'Seconds for which browsers that have reached the node over TLS use only TLS for its host (Strict-Transport-Security); 0 to not send it. Never sent under loopback names and addresses, or with the certificate of --dev',
  ),
  AllowedHosts: option(
    hosts,
    [],
    'Host names, or suffixes such as .example.test, under which browsers may reach the node over plain HTTP while it has no users or a default password; in addition to its address, its own name, names without a dot and those of private networks',
    { fallbackText: 'none' },
  ),
  TrustedProxies: option(
    addressRanges,
    [],
    'Trusted proxies in front of the node, by address or range. The node uses their client addresses (X-Forwarded-For or Forwarded, which each of them must set) and link prefixes (X-Forwarded-Host, -Proto, -Port, -Prefix). These headers are ignored from others',
    { fallbackText: 'none; anyone may set link prefixes' },
  ),
  EnableTrustedAuth: flag(
    boolean,
    'Trust the header TrustedAuthHeader, in which one of TrustedProxies names the user and the groups',
  ),
  TrustedAuthHeader: option(
    headerName,
    'ES-TrustedAuth',
    'Header in which a proxy names the user and the groups: "user; group, group". The proxy must remove it from what clients send',
  ),
};

const FOUND_IN_LOG = 'it is not needed: members find each other through the shared log';

/** Whether a node is a member decides `isMember` of `cluster-settings.ts`. */
export const cluster = {
  ClusterSize: option(
    integer('COUNT'),
    1,
    'Number of voting members of the cluster; a majority elects a leader. Above 1, or with both Db and Storage, the node is a member: the shared log is in Storage, its own replica in Db',
  ),
  ClusterSecret: optional(
    text('SECRET', { mayBeEmpty: true }),
    'Shared secret by which cluster members authenticate each other. With TLS it is needed only if their certificates are for servers only (no clientAuth), like those of public authorities',
    { isSensitive: true },
  ),
  NodePriority: option(
    integer('NUMBER'),
    0,
    'Among members that are equally up to date, the one with the highest is elected',
  ),
  ReadOnlyReplica: flag(boolean, 'Keep a replica and serve reads, without a vote; such a member is never leader'),
  UnsafeAllowSurplusNodes: optional(boolean, 'Ignored', {
    deprecated: 'members beyond ClusterSize do no harm, since the leader only determines where writes go',
  }),
  GossipIntervalMs: option(integer('MS', 100, 60_000), 2_000, 'Time between two gossip exchanges of members'),
  GossipTimeoutMs: option(integer('MS', 100, 60_000), 2_500, 'Timeout for the answer of another member to gossip'),
  GossipAllowedDifferenceMs: option(
    integer('MS', 100, 86_400_000),
    60_000,
    'Clock difference between two members that causes a warning',
  ),
  DeadMemberRemovalPeriodSec: option(
    integer('SECONDS', 1, 31_536_000),
    1_800,
    'Time after which an unreachable member is forgotten, unless AutoScavenge:NodeLostAfter is longer',
  ),
  LeaderElectionTimeoutMs: option(
    integer('MS', 100, 60_000),
    1_000,
    'Silence of the leader after which members elect another; a refused or broken connection counts at once',
  ),
  ForwardPatienceMs: option(
    integer('MS', 1_000, 600_000),
    10_000,
    'Time after which a write that arrived at a member and is not in the log yet is dropped (503 write_expired), by the wall clock or the monotonic clock, whichever shows more; also dropped if its client has disconnected while it was forwarded. This keeps a suspended member from writing what its client has long sent elsewhere. Set it some seconds above LeaderElectionTimeoutMs, or elections cost writes',
  ),
  Detach: flag(
    boolean,
    "Turn the replica of a cluster member into a single node for good: its link to the shared log is removed. The cluster never sees what it writes then, and it can't rejoin",
  ),
  QuorumSize: optional(integer('COUNT'), 'Ignored', {
    deprecated: 'it is not needed: the majority follows from ClusterSize',
  }),
  GossipSeed: option(hostPorts, [], 'Ignored', { deprecated: FOUND_IN_LOG }),
  DiscoverViaDns: optional(boolean, 'Ignored', { deprecated: FOUND_IN_LOG }),
  ClusterDns: optional(text('HOST', { mayBeEmpty: true }), 'Ignored', { deprecated: FOUND_IN_LOG }),
  ClusterGossipPort: optional(integer('PORT', 0, PORT_MAX), 'Ignored', { deprecated: FOUND_IN_LOG }),
};

const onReload = { isReloadable: true };
const password = text('PASSWORD', { mayBeEmpty: true });

/** A reload takes the files up again, also under the same names. */
const certificates = {
  CertificateFile: optional(
    path('FILE'),
    'Certificate of the node: a PKCS#12 bundle, or PEM or DER with the key in a separate file',
    onReload,
  ),
  CertificatePrivateKeyFile: optional(path('FILE'), 'Private key of the certificate in PEM', onReload),
  CertificatePassword: optional(password, 'Password of a certificate in PKCS#12', { ...onReload, isSensitive: true }),
  CertificatePrivateKeyPassword: optional(password, 'Password of an encrypted private key', {
    ...onReload,
    isSensitive: true,
  }),
  TrustedRootCertificatesPath: optional(
    path('DIR'),
    'Directory of trusted root certificates, used to verify the certificate of the node and those of clients that authenticate as nodes, which may do anything. Unless it is set, no client can authenticate as a node',
    { ...onReload, fallbackText: '/etc/ssl/certs, for its own' },
  ),
  CertificateReservedNodeCommonName: optional(
    text('NAME', { mayBeEmpty: true }),
    'Common name in the certificates of nodes; may be a wildcard such as *.example.test',
    { ...onReload, fallbackText: 'that of its own certificate' },
  ),
};

const FIRST_START = 'counts at the first start on a directory only';

export const users = {
  DefaultAdminPassword: option(
    loginPassword,
    'changeit',
    `Password with which the user admin is created; ${FIRST_START}`,
    { isSensitive: true, isEnvironmentOnly: true },
  ),
  DefaultOpsPassword: option(loginPassword, 'changeit', `Password with which the user ops is created; ${FIRST_START}`, {
    isSensitive: true,
    isEnvironmentOnly: true,
  }),
  PasswordFormat: option(
    oneOf('FORMAT', ['strong', 'compatible']),
    'strong',
    'How new passwords are stored: strong (scrypt, which EventStoreDB does not read), or compatible with it (PBKDF2). Both kinds are accepted; with compatible, a login stores a strong password again in that format',
  ),
  SessionKeyFile: optional(
    path('FILE'),
    'File with the key from which session keys of the page are derived, if there is neither a data-protection token nor a ClusterSecret. Created at the first login, readable by its owner only',
    { fallbackText: 'session.key in the data directory, if any' },
  ),
};

/** Levels of both generations of the reference database, the least important first; `Default` is Information. */
const LEVELS = [
  'Default',
  'Verbose',
  'Trace',
  'Debug',
  'Information',
  'Warning',
  'Error',
  'Fatal',
  'Critical',
  'None',
] as const;
type LevelName = (typeof LEVELS)[number];

export const logging = {
  Log: optional(path('DIR'), 'Directory for log files', { fallbackText: 'no log files' }),
  LogLevel: option(
    oneOf('LEVEL', LEVELS, { info: 'Information', warn: 'Warning', off: 'None' }),
    'Default',
    'Minimum level to log; also debug, info, warn, error, off',
    { isReloadable: true, fallbackText: 'Default, which is Information' },
  ),
  LogConsoleFormat: optional(oneOf('FORMAT', ['Plain', 'Json']), 'Format of lines on stderr: plain text or JSON', {
    fallbackText: 'Plain on a terminal, else Json',
  }),
  LogFileSize: option(
    size({ min: 4_096, max: 1_099_511_627_776 }),
    1_073_741_824,
    'Size at which a new log file is started',
    { fallbackText: '1 GiB' },
  ),
  LogFileInterval: option(
    oneOf('INTERVAL', ['Minute', 'Hour', 'Day', 'Month', 'Year', 'Infinite']),
    'Day',
    'Time after which a new log file is started',
  ),
  LogFileRetentionCount: option(integer('COUNT', 1, 100_000), 31, 'Number of log files of each kind to keep'),
  DisableLogFile: flag(boolean, 'Write no log files, even where Log is given'),
};

/** Options of the audit. Both are ours. */
export const audit = {
  AuditLog: optional(
    path('FILE'),
    'File for the audit: who did what from where, one JSON line each. It is rotated like the log files, with the period before the file extension (audit20310402.json); only the user of the node can read the files',
    { fallbackText: 'no such file' },
  ),
  AuditStream: flag(boolean, 'Also append the audit to the stream $audit, which administrators can read'),
};

const LOWER: Readonly<Record<LevelName, 'debug' | 'info' | 'warn' | 'error' | 'off'>> = {
  Default: 'info',
  Verbose: 'debug',
  Trace: 'debug',
  Debug: 'debug',
  Information: 'info',
  Warning: 'warn',
  Error: 'error',
  Fatal: 'error',
  Critical: 'error',
  None: 'off',
};

/** The level of the logger that a value of LogLevel asks for. */
export function logLevelOf(name: LevelName): 'debug' | 'info' | 'warn' | 'error' | 'off' {
  return LOWER[name];
}

const MINUTES_PER_WEEK = 10_080;

/** Options of scavenges on a schedule. */
export const autoScavenge = {
  'AutoScavenge:Enabled': optional(
    boolean,
    "Scavenge on a schedule. Always off without a licence, and with --dev and --mem-db, with which it can't be enabled",
    { fallbackText: 'true if the licence includes it' },
  ),
  'AutoScavenge:TimeZone': option(timeZone, 'UTC', 'Time zone of the schedule, such as Europe/Oslo'),
  'AutoScavenge:NodeLostAfter': option(
    integer('MINUTES', 1, MINUTES_PER_WEEK),
    30,
    'Minutes for which a cluster member may be unreachable before a cycle continues without it',
  ),
};

/** Options of the licence. */
export const licensing = {
  'Licensing:LicenseKey': optional(
    text('KEY'),
    'Licence key, a token (JWS) that its issuer has signed with Ed25519. Without one the built-in licence applies, which includes everything',
    { isSensitive: true, fallbackText: 'the built-in licence' },
  ),
  'Licensing:IssuerKeyFile': optional(path('FILE'), 'Public Ed25519 key of the licence key issuer, in PEM'),
  'Licensing:UseBuiltIn': option(boolean, true, 'Whether the built-in licence applies if there is no licence key'),
};

const COUNT_MAX = 10_000;
const SECONDS_PER_DAY = 86_400;
const kept = (of: string) =>
  option(
    integer('COUNT', 0, COUNT_MAX),
    0,
    `${of} to keep after a backup; 0 for none. If all four are 0, nothing is removed`,
  );

/** Options of the backups that a node makes of itself. All are ours. */
export const backup = {
  'Backup:Repository': optional(
    text('PLACE'),
    'Backup repository of the node: a directory, or s3://bucket/prefix. Created if absent',
    { fallbackText: 'the node makes no backups' },
  ),
  'Backup:S3Endpoint': optional(text('URL'), 'Endpoint of the bucket, for S3-compatible servers', {
    fallbackText: 'as the SDK finds it',
  }),
  'Backup:S3Region': optional(text('REGION'), 'Region of the bucket', { fallbackText: 'as the SDK finds it' }),
  'Backup:KeyFile': optional(
    path('FILE'),
    'Key file for encrypting backups, as made by `skua backup key`. Keep a copy of it elsewhere: without it nothing can be restored',
    { fallbackText: 'not encrypted' },
  ),
  'Backup:Compression': option(
    oneOf('MODE', ['auto', 'on', 'off']),
    'auto',
    'Compress what is stored: auto does so in a bucket, where it pays, and in a directory only with files that are mostly zeros',
  ),
  'Backup:Schedule': optional(
    text('CRON'),
    'Schedule of backups: minute, hour, day of month, month, day of week, in UTC, such as "30 2 * * *"',
    { fallbackText: 'only on request' },
  ),
  'Backup:ShipEverySec': option(
    integer('SECONDS', 0, SECONDS_PER_DAY),
    0,
    'How often new log is shipped to the repository, which limits what can be lost; 0 for never',
  ),
  'Backup:KeepLast': kept('Newest backups'),
  'Backup:KeepHourly': kept('Last backups of an hour (UTC)'),
  'Backup:KeepDaily': kept('Last backups of a day (UTC)'),
  'Backup:KeepWeekly': kept('Last backups of a week (Monday to Sunday, UTC)'),
  'Backup:ThrottleBytesPerSec': option(
    size({ min: 65_536, max: 1_099_511_627_776, or: 0 }),
    0,
    'Bytes that a backup reads per second at most; 0 for no limit',
  ),
  'Backup:Parallel': option(integer('COUNT', 1, 16), 4, 'Files of a backup processed in parallel'),
};

/** Options of the proof that nothing was changed. All are ours. */
export const proof = {
  'Proof:Chain': flag(
    boolean,
    'Keep a hash chain over the log, with which `skua proof verify` finds every record that was changed, removed or added on the disk. A directory that has one always continues it',
  ),
  'Proof:Anchor': optional(
    text('PLACE'),
    "Where the newest hash goes: a file to which lines are appended, an http(s) URL that gets a POST, or s3://bucket/prefix. Preferably a place that someone with access to this machine can't change",
    { isSensitive: true, fallbackText: 'nowhere' },
  ),
  'Proof:AnchorEveryMin': option(
    integer('MINUTES', 1, MINUTES_PER_WEEK),
    60,
    'Minutes between two anchors; one is also made after each scavenge and at shutdown',
  ),
  'Proof:LockDays': option(
    integer('DAYS', 0, 36_500),
    0,
    "Days for which anchors in a bucket can't be removed or replaced; the bucket must have object lock enabled. 0 for no lock",
  ),
  'Proof:S3Endpoint': optional(text('URL'), 'Endpoint of the bucket, for S3-compatible servers', {
    fallbackText: 'as the SDK finds it',
  }),
  'Proof:S3Region': optional(text('REGION'), 'Region of the bucket', { fallbackText: 'as the SDK finds it' }),
};

const secret = { isSensitive: true };

/** Connectors and webhooks. */
export const connectors = {
  'Connectors:Enabled': option(boolean, true, 'Run connectors, and serve the paths below /connectors and /webhook'),
  'Connectors:DataProtection:Token': optional(
    text('TOKEN'),
    'Secret with which the secrets of connectors are encrypted. Without one, connectors with secrets are refused',
    secret,
  ),
  'Connectors:DataProtection:TokenFile': optional(
    path('FILE'),
    'File that holds the token; it wins over the token itself',
  ),
  'Connectors:DataProtection:PreviousTokens': option(
    texts('TOKENS'),
    [],
    'Previous tokens, so that what they encrypted can still be read',
    secret,
  ),
  'Webhook:MaxBodySize': option(size({ min: 1, max: 4_194_304 }), 1_048_576, 'Largest body of a webhook call', {
    fallbackText: '1 MiB',
  }),
  'Webhook:ScriptTimeoutMs': option(integer('MS', 1, 60_000), 100, 'CPU time limit of a routing script per call'),
};

/** Every option of a node, by its name in YAML. */
export const OPTIONS = {
  ...application,
  ...network,
  ...cluster,
  ...database,
  ...scavenge,
  ...autoScavenge,
  ...licensing,
  ...backup,
  ...proof,
  ...certificates,
  ...users,
  ...connectors,
  ...logging,
  ...audit,
};

export type OptionName = keyof typeof OPTIONS;
export type Values = ValuesOf<typeof OPTIONS>;

/** The same in the order of help and documentation. */
export const OPTION_GROUPS: readonly OptionGroup[] = [
  { title: 'Application Options', options: application },
  { title: 'Network Options', options: network },
  { title: 'Database Options', options: database },
  { title: 'Scavenge Options', options: scavenge },
  { title: 'Auto-Scavenge Options', options: autoScavenge },
  { title: 'Licensing Options', options: licensing },
  { title: 'Backup Options', options: backup },
  { title: 'Proof Options', options: proof },
  { title: 'Certificate Options', options: certificates },
  { title: 'User Options', options: users },
  { title: 'Connector Options', options: connectors },
  { title: 'Logging Options', options: logging },
  { title: 'Audit Options', options: audit },
  { title: 'Cluster Options', options: cluster },
];
