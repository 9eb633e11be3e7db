/**
 * Options of the reference database that a node does not have, and why: for a user who moves here the error names the
 * option and the reason, instead of reporting that there is no such option.
 */

/** Prefixes of the variables of both generations of the reference database. */
export const REFERENCE_PREFIXES = ['EVENTSTORE_', 'KURRENTDB_'] as const;

interface Absent {
  /** Completes "…, because" and stands alone in tables. */
  readonly because: string;
  readonly options: readonly string[];
}

/** In the order of the page for users who move (`local/guide/move-here.md`). */
export const ABSENT_OPTIONS: readonly Absent[] = [
  {
    because: 'there are no projections',
    options: [
      'RunProjections',
      'StartStandardProjections',
      'ProjectionThreads',
      'ProjectionsQueryExpiry',
      'ProjectionCompilationTimeout',
      'ProjectionExecutionTimeout',
      'FaultOutOfOrderProjections',
      'MaxProjectionStateSize',
    ],
  },
  {
    because: 'cluster members share their log in object storage and reach each other on the client port',
    options: [
      'Archiver',
      'GossipOnSingleNode',
      'DisableInternalTcpTls',
      'ReplicationIp',
      'ReplicationPort',
      'ReplicationHostAdvertiseAs',
      'ReplicationTcpPortAdvertiseAs',
      'ReplicationHeartbeatInterval',
      'ReplicationHeartbeatTimeout',
      'IntIp',
      'IntTcpPort',
      'IntTcpPortAdvertiseAs',
      'IntHostAdvertiseAs',
      'IntTcpHeartbeatInterval',
      'IntTcpHeartbeatTimeout',
      'ConnectionPendingSendBytesThreshold',
      'ConnectionQueueSizeThreshold',
    ],
  },
  {
    because:
      'a node is known to clients and to other nodes by the same address, NodeHostAdvertiseAs and NodePortAdvertiseAs',
    options: ['AdvertiseHostToClientAs', 'AdvertiseNodePortToClientAs', 'AdvertiseHttpPortToClientAs'],
  },
  {
    because: 'clients speak gRPC and HTTP here, not the TCP protocol',
    options: [
      'EnableExternalTcp',
      'TcpPlugin:EnableExternalTcp',
      'NodeTcpPort',
      'NodeTcpPortAdvertiseAs',
      'NodeHeartbeatInterval',
      'NodeHeartbeatTimeout',
      'DisableExternalTcpTls',
      'ExtTcpPort',
      'ExtTcpPortAdvertiseAs',
      'ExtTcpHeartbeatInterval',
      'ExtTcpHeartbeatTimeout',
      'TcpReadTimeoutMs',
      'EnableUnixSocket',
    ],
  },
  {
    because: 'only the users, groups and access lists in the store are used',
    options: [
      'AuthenticationType',
      'AuthenticationConfig',
      'AuthorizationType',
      'AuthorizationConfig',
      'Authorization:DefaultPolicyType',
      'UserCertificates:Enabled',
      'DisableFirstLevelHttpAuthorization',
    ],
  },
  {
    because: 'certificates come from files, and are named by CertificateFile and TrustedRootCertificatesPath',
    options: [
      'CertificateStoreLocation',
      'CertificateStoreName',
      'CertificateSubjectName',
      'CertificateThumbprint',
      'DisableClientAuthEkuValidation',
      'RemoveDevCerts',
    ],
  },
  {
    because: 'every append waits for the disk, and there is only one way of reading and writing files',
    options: [
      'UnsafeDisableFlushToDisk',
      'MinFlushDelayMs',
      'WriteTimeoutMs',
      'Unbuffered',
      'WriteThrough',
      'ReduceFileCachePressure',
      'DbLogFormat',
      'Transform',
    ],
  },
  {
    because: 'memory is bounded by ChunksCacheSize and MaxMemTableSize, and the rest is sized automatically',
    options: [
      'CachedChunks',
      'StreamInfoCacheCapacity',
      'IndexCacheSize',
      'HashCollisionReadLimit',
      'MaxAutoMergeIndexLevel',
      'SkipIndexScanOnReads',
      'InitializationThreads',
      'ReaderThreadsCount',
      'ChunkInitialReaderCount',
      'SecondaryIndexing:Enabled',
    ],
  },
  { because: 'an event is limited to 4 MiB, and an append by MaxAppendSize', options: ['MaxAppendEventSize'] },
  {
    because: 'logging is configured by LogLevel, Log and LogConsoleFormat, and statistics are at /stats and /metrics',
    options: ['LogConfig', 'StatsStorage', 'WriteStatsToDb'],
  },
  { because: 'telemetry is never sent', options: ['TelemetryOptout'] },
];

/**
 * Why an option of the reference database is not here, by its name without case and separators; null for every other
 * name.
 */
export function absenceOf(plainName: string): string | null {
  return BECAUSE.get(plainName) ?? null;
}

const BECAUSE: ReadonlyMap<string, string> = new Map(
  ABSENT_OPTIONS.flatMap(({ because, options }) =>
    options.map((name) => [name.replaceAll(':', '').toLowerCase(), because] as const),
  ),
);

/**
 * Whether a variable is one of those that orchestrators set in every container for a service (`SERVER_SERVICE_HOST`,
 * `SERVER_PORT`, `SERVER_PORT_2113_TCP_ADDR`), named like the prefix or beginning like it. Of a service named
 * `server-node` comes a `SERVER_NODE_PORT`, which its value gives away.
 */
export function isServiceVariable(variable: string, text: string): boolean {
  return SERVICE.test(variable) || (variable.endsWith('_PORT') && SERVICE_ADDRESS.test(text));
}

const SERVICE_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

const SERVICE =
  /(?:^[A-Z]+_PORT|_SERVICE_HOST|_SERVICE_PORT(?:_[A-Z0-9_]{1,63})?|_PORT_\d{1,5}_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
