import { addressRanges, boolean, headerName, hostPorts, hosts, integer, ip, loginPassword, oneOf, origins, path, powerOfTwo, size, text, texts, timeZone } from './kinds.ts';
import { flag, option, optional } from './option.ts';
import type { OptionGroup, ValuesOf } from './option.ts';

const NO_EFFECT = 'it has no effect and will be removed';

const TERABYTE = 1_099_511_627_776;

/** How the process as a whole behaves. */
export const application = {
  Config: option(path('FILE'), '/etc/skua/skua.conf', 'Configuration file in YAML. The default one may be missing, one named here may not'),
  Help: flag(boolean, 'Show the options and exit'),
  Version: flag(boolean, 'Show the version and exit'),
  WhatIf: flag(boolean, 'Show the options as they would be in force, with their sources, and exit'),
  AllowUnknownOptions: flag(boolean, 'Warn of options that are not known instead of refusing to start'),
  Insecure: flag(boolean, 'No TLS, no users, no access lists: everybody who reaches the port may do everything'),
  DisableTls: flag(boolean, 'No TLS, while users and access lists stay. Passwords are sent in clear text: for the loopback address, or behind a proxy'),
  Dev: flag(boolean, 'TLS with a self-signed certificate for localhost, made at the start: for development on one machine'),
  DevCertPath: optional(path('FILE'), 'File that keeps the certificate of --dev, so that the next start uses it again', { fallbackText: 'kept in memory' }),
  AllowDefaultPasswords: flag(boolean, 'Let the node listen beyond the loopback address while admin or ops has its default password, or an empty one'),
  MaxAppendSize: optional(size({ min: 1, max: 16_767_216 }), 'Largest append, in bytes of the data of its events together; one event has at most 4 MiB anyway', { fallbackText: '1 MiB by gRPC, none by HTTP' }),
  MaxReadPageBytes: option(size({ min: 65_536, max: 134_217_728 }), 8_388_608, 'Bytes of events with which a page ends, behind at least one event; its links lead on to the rest', { fallbackText: '8 MiB' }),
  MaxReplyBytesInFlight: option(size({ min: 33_554_432, max: TERABYTE }), 268_435_456, 'Bytes that all replies together may hold in memory. A quarter is kept for small ones; who finds no room waits, and gets 503 in the end', { fallbackText: '256 MiB' }),
  MaxUploadBytesInFlight: option(size({ min: 33_554_432, max: TERABYTE }), 268_435_456, 'Bytes of request bodies that may be in memory at once, from their arrival to the answer. Beyond them bodies are not read on', { fallbackText: '256 MiB' }),
  ClientStallTimeout: option(integer('SECONDS', 1, 3_600), 30, 'Seconds after which a client is cut off that takes nothing of its reply, or sends nothing of a large body'),
  DisableHttpCaching: flag(boolean, 'Tell HTTP caches to keep no reply'),
  LogHttpRequests: flag(boolean, 'Log a line for each HTTP request, and for each call of gRPC'),
  LogFailedAuthenticationAttempts: flag(boolean, 'Log a line with user and address for each request with wrong credentials'),
  StatsPeriodSec: option(integer('SECONDS', 1, 86_400), 30, 'Time between two collections of statistics'),
  AllowAnonymousEndpointAccess: flag(boolean, 'Show /stats and /metrics to everybody'),
  AllowAnonymousStreamAccess: flag(boolean, 'Let everybody use streams whose access list says $all'),
  OverrideAnonymousEndpointAccessForGossip: option(boolean, true, 'Show /gossip to everybody'),
  EnableHistograms: flag(boolean, 'Ignored', { deprecated: NO_EFFECT }),
  WorkerThreads: option(integer('COUNT', 0, 1_024), 0, 'Ignored', { deprecated: NO_EFFECT }),
};

/** Files, memory and checks of the store. */
export const database = {
  Db: option(path('DIR'), './data', 'Data directory, created when absent'),
  Index: optional(path('DIR'), 'Directory of the index', { fallbackText: 'index in the data directory' }),
  Storage: optional(text('PLACE'), 'Keep the data in object storage instead of a directory: s3://bucket/prefix, with endpoint, region and credentials as the AWS SDK takes them. Functions and other nodes may use the same place at the same time. With Db, or ClusterSize above 1, the node is a member of a cluster, and keeps a copy in Db', { fallbackText: 'the data directory' }),
  MemDb: flag(boolean, 'Keep everything in memory; nothing outlives the process'),
  ChunkSize: option(size({ min: 131_072, max: 1_073_741_824, multipleOf: 4_096 }), 268_435_456, 'Data bytes of a chunk file; for a new directory only, an existing one keeps its own', { fallbackText: '256 MiB' }),
  ChunksCacheSize: option(size({ min: 4_194_304, max: TERABYTE }), 67_108_864, 'Memory for blocks of chunk files and index tables', { fallbackText: '64 MiB' }),
  MaxMemTableSize: option(integer('COUNT', 1, 100_000_000), 1_000_000, 'Index entries that are held in memory before a table is written'),
  StreamExistenceFilterSize: option(size({ min: 10_000, max: 4_000_000_000, or: 0 }), 33_554_432, 'Memory of the filter that knows which streams exist; 0 switches it off', { fallbackText: '32 MiB' }),
  IndexCacheDepth: option(integer('DEPTH', 8, 28), 16, 'Midpoints of an index table that are kept in memory, as a power of two'),
  UseIndexBloomFilters: option(boolean, true, 'Write and use bloom filters of index tables'),
  SkipIndexVerify: flag(boolean, 'Do not compare the checksums of index tables, neither at a start nor after it'),
  SkipDbVerify: flag(boolean, 'Do not compare the checksums of chunk files after a start, nor those of the chunk being written at it'),
  MaxTruncation: option(size({ min: 0, max: 1_024 * TERABYTE, or: -1 }), 268_435_456, 'Refuse to start when truncate.chk asks to cut off more than this from the log; -1 for any length', { fallbackText: '256 MiB' }),
  CommitTimeoutMs: optional(integer('MS', 1, 3_600_000), 'A write of a client that is not committed in this time is answered that its outcome is not known (503, or ABORTED), and may yet be carried out. Looked at every quarter of a second', { fallbackText: 'as long as it takes' }),
  PrepareTimeoutMs: optional(integer('MS'), 'Ignored', { deprecated: 'a write has one phase here, which CommitTimeoutMs bounds' }),
  UnsafeIgnoreHardDelete: flag(boolean, 'Let a scavenge remove the marks of hard-deleted streams too: their names can then be used again, from event 0 on'),
};

export const scavenge = {
  DisableScavengeMerging: flag(boolean, 'Leave small chunk files as they are after a scavenge'),
  KeepDataOfDeletedStreams: flag(boolean, 'Leave the data of the last event of a soft-deleted stream in the files for ever, as the reference database does. Otherwise a scavenge empties it, and only its number, id and type stay'),
  ScavengeHistoryMaxAge: option(integer('DAYS', 1, 24_855), 30, 'Days for which the events of a scavenge are kept'),
  ScavengeBackendPageSize: option(powerOfTwo('KIB', 1, 64), 16, 'Page of the scavenge database in KiB; an existing one keeps its own'),
  ScavengeBackendCacheSize: option(size({ min: 65_536, max: TERABYTE, multipleOf: 1_024 }), 67_108_864, 'Cache of the scavenge database while a scavenge runs', { fallbackText: '64 MiB' }),
  ScavengeHashUsersCacheCapacity: option(integer('COUNT', 0, 100_000_000), 100_000, 'Stream hashes that a scavenge remembers in memory'),
  AlwaysKeepScavenged: flag(boolean, 'Ignored', { deprecated: 'it has no effect: a scavenged chunk always takes the place of the one before' }),
  OptimizeIndexMerge: flag(boolean, 'Ignored', { deprecated: 'it has no effect: index merges never look into the log' }),
};

const PORT_MAX = 65_535;

/** Where the node listens, and what it serves there. */
const network = {
  NodeIp: option(ip, '127.0.0.1', 'Address to listen on', { aliases: ['HttpIp', 'ExtIp'] }),
  NodePort: option(integer('PORT', 0, PORT_MAX), 2113, 'Port to listen on; 0 takes any free one', { aliases: ['HttpPort', 'ExtPort'] }),
  NodeHostAdvertiseAs: optional(text('HOST'), 'Host by which others reach the node, where that is not its address', { aliases: ['ExtHostAdvertiseAs'], fallbackText: 'NodeIp' }),
  NodePortAdvertiseAs: option(integer('PORT', 0, PORT_MAX), 0, 'Port by which others reach the node; 0 for NodePort', { aliases: ['HttpPortAdvertiseAs'] }),
  KeepAliveInterval: option(integer('MS', 1_000, 3_600_000), 10_000, 'A connection of HTTP/2, as gRPC has them, from which nothing comes for so long is asked whether it lives'),
  KeepAliveTimeout: option(integer('MS', 1_000, 3_600_000), 10_000, 'Time in which it must answer, or it is closed'),
  CompressionMinSize: option(size({ min: 0, max: 1_073_741_824, or: -1 }), 1_024, 'Answers of at least so many bytes are compressed for clients that take that; -1 to compress none'),
  EnableAtomPubOverHttp: option(boolean, true, 'Serve streams over HTTP'),
  DisableAdminUi: flag(boolean, 'Remove the page at /ui, / and all routes below /admin: a reload is then ordered by SIGHUP only'),
  DisableStatsOnHttp: flag(boolean, 'Remove /stats and /metrics'),
  DisableGossipOnHttp: flag(boolean, 'Remove /gossip'),
  MaxConnectionsPerAddress: option(integer('COUNT', 1, 10_000), 2_500, 'Connections that one address, or one IPv6 network of /64, may have open; those of TrustedProxies are not counted. All together have 10000'),
  CorsOrigins: option(origins, [], 'Origins of web pages, such as https://events.example.test, which browsers let in with their credentials, and which may write; a login of the page at /ui is not theirs. * lets the pages of all origins read, without credentials', { fallbackText: 'none: only pages of the node itself' }),
  HstsMaxAge: option(integer('SECONDS', 0, 63_072_000), 0, 'Seconds for which browsers that have seen the node over TLS ask for all of its host over TLS only (Strict-Transport-Security); 0 to tell them nothing. Never told under loopback names and addresses, nor with the certificate of --dev'),
  AllowedHosts: option(hosts, [], 'Names, or suffixes such as .example.test, under which browsers may ask for the node over plain HTTP while it has no users or a default password stands; beside them its address, its own name, names without a dot and those of private networks', { fallbackText: 'none' }),
  TrustedProxies: option(addressRanges, [], 'Proxies in front of the node, by address or range. What they say of their clients counts: addresses (X-Forwarded-For or Forwarded, which each of them must write), and how links begin (X-Forwarded-Host, -Proto, -Port, -Prefix). From others nothing of that counts', { fallbackText: 'none; anybody may say how links begin' }),
  EnableTrustedAuth: flag(boolean, 'Believe the header TrustedAuthHeader, in which one of TrustedProxies names the user and the groups'),
  TrustedAuthHeader: option(headerName, 'ES-TrustedAuth', 'Header in which a proxy names the user and the groups: "user; group, group". The proxy must remove it from what clients send'),
};

const FOUND_IN_LOG = 'it is not needed: members find each other through the log that they share';

/** Who is a member is said by `isMember` of `cluster-settings.ts`. */
export const cluster = {
  ClusterSize: option(integer('COUNT'), 1, 'Members with a vote that the cluster is meant to have. Half of them and one more elect a leader. Above 1, or with Db beside Storage, the node is a member: the log that all share is in Storage, its own copy in Db'),
  ClusterSecret: optional(text('SECRET', { mayBeEmpty: true }), 'Secret by which the members of a cluster know each other, the same at all of them. With TLS it is needed where their certificates are for servers alone (no clientAuth), as those of public authorities are', { isSensitive: true }),
  NodePriority: option(integer('NUMBER'), 0, 'Among members that are equally far the one with the highest is elected'),
  ReadOnlyReplica: flag(boolean, 'Have a copy and serve reads, but no vote; such a member never leads'),
  UnsafeAllowSurplusNodes: optional(boolean, 'Ignored', { deprecated: 'members beyond ClusterSize do no harm, since nothing depends on who leads but where writes go' }),
  GossipIntervalMs: option(integer('MS', 100, 60_000), 2_000, 'Time between two exchanges of what members know of each other'),
  GossipTimeoutMs: option(integer('MS', 100, 60_000), 2_500, 'Time that another member has for its answer to gossip'),
  GossipAllowedDifferenceMs: option(integer('MS', 100, 86_400_000), 60_000, 'Difference between the clocks of two members that is worth a warning'),
  DeadMemberRemovalPeriodSec: option(integer('SECONDS', 1, 31_536_000), 1_800, 'Time after which a member that nobody has heard of is forgotten, unless AutoScavenge:NodeLostAfter is longer'),
  LeaderElectionTimeoutMs: option(integer('MS', 100, 60_000), 1_000, 'Silence of the leader after which members elect another; a connection that it refuses or breaks counts at once'),
  ForwardPatienceMs: option(integer('MS', 1_000, 600_000), 10_000, 'A write of a client that has not taken its place in the log so long after it arrived at a member, by the wall clock or the monotonic one, whichever says more, or whose client has hung up while it was passed on, is dropped (503 write_expired): so a member that stood still writes nothing that its client has long sent elsewhere. More than LeaderElectionTimeoutMs and some seconds, or elections cost writes'),
  Detach: flag(boolean, 'Open a copy that belonged to a cluster alone, for good: its connection with the log is removed. What it then writes the cluster never sees, and it can\'t go back'),
  QuorumSize: optional(integer('COUNT'), 'Ignored', { deprecated: 'it is not needed: the majority follows from ClusterSize' }),
  GossipSeed: option(hostPorts, [], 'Ignored', { deprecated: FOUND_IN_LOG }),
  DiscoverViaDns: optional(boolean, 'Ignored', { deprecated: FOUND_IN_LOG }),
  ClusterDns: optional(text('HOST', { mayBeEmpty: true }), 'Ignored', { deprecated: FOUND_IN_LOG }),
  ClusterGossipPort: optional(integer('PORT', 0, PORT_MAX), 'Ignored', { deprecated: FOUND_IN_LOG }),
};

const onReload = { isReloadable: true };
const password = text('PASSWORD', { mayBeEmpty: true });

/** A reload takes the files up again, also under the same names. */
const certificates = {
  CertificateFile: optional(path('FILE'), 'Certificate of the node: a bundle in PKCS#12, or PEM or DER with the key in a file of its own', onReload),
  CertificatePrivateKeyFile: optional(path('FILE'), 'Private key of the certificate in PEM', onReload),
  CertificatePassword: optional(password, 'Password of a certificate in PKCS#12', { ...onReload, isSensitive: true }),
  CertificatePrivateKeyPassword: optional(password, 'Password of an encrypted private key', { ...onReload, isSensitive: true }),
  TrustedRootCertificatesPath: optional(path('DIR'), 'Directory of the root certificates that are trusted: by them the certificate of the node is verified, and clients prove to be nodes, who may do everything. Unless they are named here, no client proves that', { ...onReload, fallbackText: '/etc/ssl/certs, for its own' }),
  CertificateReservedNodeCommonName: optional(text('NAME', { mayBeEmpty: true }), 'Common name in the certificates of nodes, also with a wildcard such as *.example.test', { ...onReload, fallbackText: 'that of its own certificate' }),
};

const FIRST_START = 'counts at the first start on a directory only';

export const users = {
  DefaultAdminPassword: option(loginPassword, 'changeit', `Password with which the user admin is created; ${FIRST_START}`, { isSensitive: true, isEnvironmentOnly: true }),
  DefaultOpsPassword: option(loginPassword, 'changeit', `Password with which the user ops is created; ${FIRST_START}`, { isSensitive: true, isEnvironmentOnly: true }),
  PasswordFormat: option(oneOf('FORMAT', ['strong', 'compatible']), 'strong', 'How new passwords are stored: strong (scrypt, which the reference database does not read), or compatible with it (PBKDF2). Both kinds are accepted; with compatible a login stores a strong one anew'),
  SessionKeyFile: optional(path('FILE'), 'File with the key of which the keys of sessions of the page are made, where there is neither a data-protection token nor a ClusterSecret. Made by the first login, for its owner only', { fallbackText: 'session.key in the data directory, if any' }),
};

/** Levels of both generations of the reference database, the least important first; `Default` is Information. */
const LEVELS = ['Default', 'Verbose', 'Trace', 'Debug', 'Information', 'Warning', 'Error', 'Fatal', 'Critical', 'None'] as const;
type LevelName = (typeof LEVELS)[number];

export const logging = {
  Log: optional(path('DIR'), 'Directory for log files', { fallbackText: 'no log files' }),
  LogLevel: option(oneOf('LEVEL', LEVELS, { info: 'Information', warn: 'Warning', off: 'None' }), 'Default', 'Least important lines to log; also debug, info, warn, error, off', { isReloadable: true, fallbackText: 'Default, which is Information' }),
  LogConsoleFormat: optional(oneOf('FORMAT', ['Plain', 'Json']), 'Lines on stderr: for people, or JSON', { fallbackText: 'Plain on a terminal, else Json' }),
  LogFileSize: option(size({ min: 4_096, max: 1_099_511_627_776 }), 1_073_741_824, 'A log file that has reached this size is continued in another', { fallbackText: '1 GiB' }),
  LogFileInterval: option(oneOf('INTERVAL', ['Minute', 'Hour', 'Day', 'Month', 'Year', 'Infinite']), 'Day', 'Time after which another log file is begun'),
  LogFileRetentionCount: option(integer('COUNT', 1, 100_000), 31, 'Log files of each family that are kept'),
  DisableLogFile: flag(boolean, 'Write no log files, even where Log is given'),
};

/** Options of the audit. Both are ours. */
export const audit = {
  AuditLog: optional(path('FILE'), 'File for the audit: who did what from where, a line of JSON each. Its files follow each other as log files do, their names with the period before the ending (audit20310402.json); only the user of the node may read them', { fallbackText: 'no such file' }),
  AuditStream: flag(boolean, 'Append the audit to the stream $audit too, which administrators may read'),
};

const LOWER: Readonly<Record<LevelName, 'debug' | 'info' | 'warn' | 'error' | 'off'>> = {
  Default: 'info', Verbose: 'debug', Trace: 'debug', Debug: 'debug', Information: 'info', Warning: 'warn', Error: 'error', Fatal: 'error', Critical: 'error', None: 'off',
};

/** The level of the logger that a value of LogLevel asks for. */
export function logLevelOf(name: LevelName): 'debug' | 'info' | 'warn' | 'error' | 'off' {
  return LOWER[name];
}

const MINUTES_PER_WEEK = 10_080;

/** Options of scavenges on a schedule. */
export const autoScavenge = {
  'AutoScavenge:Enabled': optional(boolean, 'Scavenge on a schedule. Off in any case without a licence, and with --dev and --mem-db, beside which it must not be switched on', { fallbackText: 'true where the licence grants it' }),
  'AutoScavenge:TimeZone': option(timeZone, 'UTC', 'Time zone of the schedule, such as Europe/Oslo'),
  'AutoScavenge:NodeLostAfter': option(integer('MINUTES', 1, MINUTES_PER_WEEK), 30, 'Minutes for which a member of the cluster may be out of reach before a cycle goes on without it'),
};

/** Options of the licence. */
export const licensing = {
  'Licensing:LicenseKey': optional(text('KEY'), 'Licence key, a token (JWS) that its issuer has signed with Ed25519. Without one the built-in licence counts, which grants everything', { isSensitive: true, fallbackText: 'the built-in licence' }),
  'Licensing:IssuerKeyFile': optional(path('FILE'), 'Public Ed25519 key of whoever issues licence keys, in PEM'),
  'Licensing:UseBuiltIn': option(boolean, true, 'Whether the built-in licence counts where there is no licence key'),
};

const COUNT_MAX = 10_000;
const SECONDS_PER_DAY = 86_400;
const kept = (of: string) => option(integer('COUNT', 0, COUNT_MAX), 0, `${of} that stay when a backup has been made; 0 for none of them. Nothing is removed where all four are 0`);

/** Options of the backups that a node makes of itself. All are ours. */
export const backup = {
  'Backup:Repository': optional(text('PLACE'), 'Where the node keeps backups of itself: a directory, or s3://bucket/prefix. Made when absent', { fallbackText: 'no backups by the node' }),
  'Backup:S3Endpoint': optional(text('URL'), 'Where the bucket is, for servers that speak the S3 protocol', { fallbackText: 'as the SDK finds it' }),
  'Backup:S3Region': optional(text('REGION'), 'Region of the bucket', { fallbackText: 'as the SDK finds it' }),
  'Backup:KeyFile': optional(path('FILE'), 'Key under which backups are encrypted, as `skua backup key` makes it. Keep a copy of it elsewhere: without it nothing can be restored', { fallbackText: 'not encrypted' }),
  'Backup:Compression': option(oneOf('MODE', ['auto', 'on', 'off']), 'auto', 'Compress what is stored: auto does so in a bucket, where it pays, and in a directory only with files that are mostly zeros'),
  'Backup:Schedule': optional(text('CRON'), 'When the node makes a backup: minute, hour, day of month, month, day of week, in UTC, such as "30 2 * * *"', { fallbackText: 'only when asked' }),
  'Backup:ShipEverySec': option(integer('SECONDS', 0, SECONDS_PER_DAY), 0, 'How often the new end of the log is shipped to the repository, which bounds what can be lost; 0 for never'),
  'Backup:KeepLast': kept('Newest backups'),
  'Backup:KeepHourly': kept('Last backups of an hour'),
  'Backup:KeepDaily': kept('Last backups of a day'),
  'Backup:KeepWeekly': kept('Last backups of a week'),
  'Backup:ThrottleBytesPerSec': option(size({ min: 65_536, max: 1_099_511_627_776, or: 0 }), 0, 'Bytes that a backup reads in a second at most; 0 for no limit'),
  'Backup:Parallel': option(integer('COUNT', 1, 16), 4, 'Files of a backup that are worked on at once'),
};

/** Options of the proof that nothing was changed. All are ours. */
export const proof = {
  'Proof:Chain': flag(boolean, 'Keep a chain of hashes over the log, by which `skua proof verify` finds every record that was changed, removed or added on the disk. A directory that has one goes on with it in any case'),
  'Proof:Anchor': optional(text('PLACE'), 'Where the newest hash goes: a file to which lines are appended, an http(s) URL that gets a POST, or s3://bucket/prefix. Best a place that whoever reaches this machine does not reach', { isSensitive: true, fallbackText: 'nowhere' }),
  'Proof:AnchorEveryMin': option(integer('MINUTES', 1, MINUTES_PER_WEEK), 60, 'Minutes between two anchors; there is one after each scavenge and at a stop besides'),
  'Proof:LockDays': option(integer('DAYS', 0, 36_500), 0, 'Days for which anchors in a bucket can be neither removed nor replaced; the bucket must have been made with object lock. 0 for no lock'),
  'Proof:S3Endpoint': optional(text('URL'), 'Where the bucket is, for servers that speak the S3 protocol', { fallbackText: 'as the SDK finds it' }),
  'Proof:S3Region': optional(text('REGION'), 'Region of the bucket', { fallbackText: 'as the SDK finds it' }),
};

const secret = { isSensitive: true };

/** Connectors and webhooks. */
export const connectors = {
  'Connectors:Enabled': option(boolean, true, 'Run connectors, and offer the paths below /connectors and /webhook'),
  'Connectors:DataProtection:Token': optional(text('TOKEN'), 'Secret under which secrets of connectors are sealed. Without one connectors with secrets are refused', secret),
  'Connectors:DataProtection:TokenFile': optional(path('FILE'), 'File that holds the token; it wins over the token itself'),
  'Connectors:DataProtection:PreviousTokens': option(texts('TOKENS'), [], 'Tokens that were in use before, so that what they sealed can still be opened', secret),
  'Webhook:MaxBodySize': option(size({ min: 1, max: 4_194_304 }), 1_048_576, 'Largest body of a webhook call', { fallbackText: '1 MiB' }),
  'Webhook:ScriptTimeoutMs': option(integer('MS', 1, 60_000), 100, 'Processor time that a routing script may take for a call'),
};

/** Every option of a node, by its name in YAML. */
export const OPTIONS = { ...application, ...network, ...cluster, ...database, ...scavenge, ...autoScavenge, ...licensing, ...backup, ...proof, ...certificates, ...users, ...connectors, ...logging, ...audit };

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
