import type { MemberState } from '../../core/ports/peers.ts';

/** Documents of the node as they are sent: types alone. */

/** State names as `/gossip` writes them; `/info` has them in lower case. */
export type NodeState = MemberState;

/** GET `/`. */
export interface WelcomeDocument {
  readonly name: string;
  readonly version: string;
  readonly links: Readonly<Record<string, string>>;
  readonly hint: string;
}

/** GET `/ping`. */
export interface PingDocument {
  readonly text: string;
  readonly msgTypeId: number;
  readonly label: string;
}

/** GET `/info`. */
export interface InfoDocument {
  readonly dbVersion: string;
  readonly esVersion: string;
  readonly state: string;
  readonly features: { readonly projections: boolean; readonly userManagement: boolean; readonly atomPub: boolean };
  readonly authentication: { readonly type: 'internal' | 'insecure'; readonly properties: null };
}

/**
 * GET `/health/ready`: while the node starts, how far it is; of one that serves, how much of its log is scrubbed and
 * whether its audit is written.
 */
export interface ReadinessDocument extends Partial<StartUpWork> {
  readonly status: 'ready' | 'starting' | 'stopping';
  readonly log?: ChunkProofView;
  readonly audit?: AuditView;
  /** Those that are being built: reads by what they index scan meanwhile. */
  readonly building?: readonly BuildingView[];
}

/** How far an attribute index is. */
export interface BuildingView {
  readonly index: 'names' | 'correlations' | 'tags';
  /** Positions in the log. */
  readonly coveredTo: number;
  readonly logEnd: number;
}

/** GET `/gossip`. */
export interface GossipDocument {
  readonly members: readonly MemberDocument[];
  readonly serverIp: string;
  readonly serverPort: number;
}

/** A member, or the node alone; ports of protocols that are not spoken are 0. */
export interface MemberDocument extends Partial<MemberOnlyMembers> {
  readonly instanceId: string;
  readonly timeStamp: string;
  readonly state: NodeState;
  readonly isAlive: boolean;
  readonly internalTcpIp: string;
  readonly internalTcpPort: number;
  readonly internalSecureTcpPort: number;
  readonly externalTcpIp: string;
  readonly externalTcpPort: number;
  readonly externalSecureTcpPort: number;
  readonly httpEndPointIp: string;
  readonly httpEndPointPort: number;
  readonly lastCommitPosition: number;
  readonly writerCheckpoint: number;
  readonly chaserCheckpoint: number;
  readonly epochPosition: number;
  readonly epochNumber: number;
  readonly epochId: string;
  readonly nodePriority: number;
  readonly isReadOnlyReplica: boolean;
  readonly esVersion: string;
}

/** What only members of a cluster tell. */
export interface MemberOnlyMembers {
  /** Number of the last commit in its replica. */
  readonly appliedCommit: number;
  /** Id of the scavenge that goes on there. */
  readonly scavengeId: string | null;
  /** For how long the bucket has not answered it. */
  readonly bucketSilentMs: number;
}

/** One option as it is in force; members of both generations. */
export interface OptionView {
  readonly name: string;
  readonly description: string;
  readonly group: string;
  /** As text; `********` for what is secret. */
  readonly value: string;
  /** `Command Line`, `Environment Variables`, `Yaml`, `<DEFAULT>`. */
  readonly configurationSource: string;
  readonly deprecationMessage: string | null;
  readonly possibleValues: readonly string[] | null;
  readonly schema: { readonly type: 'boolean' | 'integer' | 'string' };
  /** As people write it; empty for none. */
  readonly defaultValue: string;
  /** The value is never shown. */
  readonly isSecret: boolean;
  /** A reload puts a new value into force. */
  readonly isReloadable: boolean;
  /** How it is spelt behind `skua start`; null for what may only be given in the environment. */
  readonly commandLine: string | null;
  /** The name of its variable. */
  readonly environment: string;
}

/** What keeps a node from serving, with how far it has come. */
export interface StartUpWork {
  /** Such as `recovering-log`, `rebuilding-index`. */
  readonly phase: string;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly elapsedSeconds: number;
  /** Null while it is unknown. */
  readonly remainingSeconds: number | null;
}

/** How far the completed chunks of the log are known to be as they were written. */
export interface ChunkProofView {
  /** Bytes of their files that were not compared with their checksum since they were written or changed. */
  readonly bytesUnproven: number;
  /** Since the chunk that was compared longest ago; null when none was. */
  readonly oldestProofSeconds: number | null;
}

/** Whether what is done to the node is being kept. */
export interface AuditView {
  /** The last entry for a file or stream could not be written there. */
  readonly failing: boolean;
  /** Since the start; counted for each of file and stream. */
  readonly entriesLost: number;
}

export type LogLineLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogLineView {
  /** Grows by one from line to line, from the start of the process on. */
  readonly sequence: number;
  /** ISO 8601, UTC. */
  readonly time: string;
  readonly level: LogLineLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Where an error came from. */
  readonly exception?: string;
}

export interface LogView {
  /** What is logged at all: lines that are less severe are not. */
  readonly level: LogLineLevel | 'off';
  /** Numbers of the oldest line in memory and of the newest one. */
  readonly first: number;
  readonly last: number;
  /** Lines behind `since` that are not in memory any more. */
  readonly missed: number;
  /** In their order. */
  readonly lines: readonly LogLineView[];
}

/**
 * What the node has done since its start, and in about the last 10 seconds: null until two looks lie far enough apart.
 */
export interface ActivityView {
  readonly windowSeconds: number | null;
  readonly appendsPerSecond: number | null;
  readonly eventsWrittenPerSecond: number | null;
  readonly eventsReadPerSecond: number | null;
  readonly bytesWrittenPerSecond: number | null;
  readonly bytesReadPerSecond: number | null;
  readonly requestsPerSecond: number | null;
  /** Interpolated within the buckets of /metrics; null also where nothing was done, or it took longer than any. */
  readonly appendP99Seconds: number | null;
  readonly requestP99Seconds: number | null;
  readonly totals: {
    readonly appends: number;
    readonly eventsWritten: number;
    readonly eventsRead: number;
    readonly bytesWritten: number;
    readonly bytesRead: number;
    readonly requests: number;
  };
}

/**
 * What the node did in the last 24 hours, a step a minute, as far as it has run: kept in memory, by each member for
 * itself.
 */
export interface HistoryView<Line extends string = string> {
  /** Since when it has been measured: the start of the node, or 24 hours ago. */
  readonly since: string;
  readonly stepSeconds: number;
  /** Ends of the steps in Unix milliseconds, rising. */
  readonly times: readonly number[];
  /**
   * As many of each as there are times: means of the step, and p99 of what came in it. Null where nothing was done of
   * which there could be a p99, and where the node slept or its clock was set.
   */
  readonly values: Readonly<Record<Line, readonly (number | null)[]>>;
}

export type ActivityHistoryView = HistoryView<
  | Exclude<keyof ActivityView, 'windowSeconds' | 'totals'>
  /** Of one core. */
  | 'cpuShare'
>;

/** Of the calls for one connector: rates by what became of them. */
export type WebhookHistoryView = HistoryView<'takenPerSecond' | 'skippedPerSecond' | 'refusedPerSecond'>;

/** Of one group: messages sent, how far it lies behind, and what is not acknowledged. */
export type GroupHistoryView = HistoryView<'sentPerSecond' | 'lag' | 'inFlight'>;

/** What became of calls of senders since the start, and lately, as above. */
export interface WebhooksView {
  readonly windowSeconds: number | null;
  /** Those that were called; calls for connectors that do not run are those of ''. */
  readonly connectors: readonly {
    readonly connectorId: string;
    readonly calls: number;
    readonly outcomes: Readonly<Record<string, number>>;
    readonly callsPerSecond: number | null;
    readonly outcomesPerSecond: Readonly<Record<string, number>> | null;
    readonly p99Seconds: number | null;
  }[];
}

/** The disk that holds the data directory. */
export interface DiskView {
  readonly folder: string;
  readonly totalBytes: number;
  readonly freeBytes: number;
  readonly usedBytes: number;
  readonly chunkBytes: number;
  readonly indexBytes: number;
  /** Used by others. */
  readonly otherBytes: number;
}

/** What an operator should do something about. */
export interface NodeWarning {
  /** Stable; made for programs. */
  readonly code: string;
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
  readonly todo: string;
  /** The view of the page that has more on it. */
  readonly view: 'overview' | 'scavenge' | 'auto-scavenge' | 'backups' | 'users' | 'options' | 'log';
}

export interface OverviewView {
  /** ISO 8601, UTC, as all times here. */
  readonly time: string;
  readonly node: {
    readonly version: string;
    readonly instanceId: string;
    readonly state: NodeState;
    readonly address: string;
    readonly isSecure: boolean;
    readonly authentication: 'internal' | 'insecure';
    readonly startedAt: string;
    readonly uptimeSeconds: number;
    readonly isMember: boolean;
  };
  readonly log: {
    /** A position, which goes on at the next chunk where one was not filled. */
    readonly end: number;
    /** Of the chunk files, wherever they lie; of the one that is being written what is written so far. */
    readonly bytes: number;
    readonly lastCommitPosition: number;
    readonly chunks: number;
    readonly indexTables: number;
    readonly indexEntries: number;
    readonly indexEntriesInMemory: number;
    /** Null where the files are objects. */
    readonly bytesUnproven: number | null;
    readonly appendsQueued: number;
    readonly subscriptions: number;
  };
  /** Null where data is not on a disk of the node. */
  readonly disk: DiskView | null;
  readonly activity: ActivityView;
  readonly process: { readonly cpuPercent: number; readonly memoryBytes: number; readonly heapBytes: number };
  readonly connections: number;
  readonly certificates: readonly LoadedCertificate[];
  readonly licence: {
    readonly source: 'built-in' | 'key' | 'none';
    readonly expiresAt: string | null;
    readonly refusal: string | null;
  };
  /** The severest first. */
  readonly warnings: readonly NodeWarning[];
}

export interface LoadedCertificate {
  /** `node`, `intermediate` or `root`. */
  readonly kind: 'node' | 'intermediate' | 'root';
  readonly subject: string;
  readonly serial: string;
  readonly thumbprint: string;
  /** ISO 8601, UTC. */
  readonly notAfter: string;
  readonly daysLeft: number;
}

/** What a reload did. */
export interface ReloadResult {
  /** Options that took effect. Values that are secret are masked. */
  readonly options: readonly { readonly name: string; readonly from: string; readonly to: string }[];
  /** Options whose new value needs a restart. */
  readonly ignoredOptions: readonly string[];
  /** Whether the certificates in force are other ones than before. */
  readonly certificatesChanged: boolean;
  /** Empty without TLS. */
  readonly certificates: readonly LoadedCertificate[];
}

/** PUT `/admin/log/level`, and its answer. */
export interface LogLevelDocument {
  readonly level: LogLineLevel;
}

/** POST `/admin/mergeindexes`. */
export interface MergeIndexesDocument {
  readonly mergeIndexesId: string;
}

/** POST `/admin/node/resign`. */
export interface MessageDocument {
  readonly message: string;
}
