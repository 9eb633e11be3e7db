import { SkuaError } from '../../core/base/errors.ts';
import type { AttributeIndexDocument } from '../../handlers/documents/attribute-indexes.ts';
import type { ChunkMapView } from '../../core/log/chunk-table/chunk-table.ts';
import type {
  AuditView,
  ChunkProofView,
  LogLineLevel,
  LogView,
  NodeState,
  OptionView,
  OverviewView,
  ReloadResult,
  StartUpWork,
  WebhooksView,
} from '../../handlers/documents/node.ts';
import type { GossipMember, LogQuery, NodeControl, NodeHistory, StatsTree } from '../../handlers/http/node-control.ts';

export const FAKE_INSTANCE_ID = '6f1c8f4e-2b0d-4f3a-9c57-0d4c1a2b3e4f';

const FAKE_STEPS = { since: '2031-04-02T09:14:00.000Z', stepSeconds: 60, times: [1_932_887_700_000] };

/** A node around the handlers that remembers what it was told and shows what a test gave it. */
export class FakeNode implements NodeControl {
  readonly version = '0.1.0';
  readonly instanceId = FAKE_INSTANCE_ID;
  state: NodeState = 'Leader';
  authenticationType: 'internal' | 'insecure' = 'internal';
  options: OptionView[] = [
    fakeOption('ChunkSize', '268435456', 'integer'),
    fakeOption('DefaultAdminPassword', '********', 'string', 'Environment Variables'),
    fakeOption('MemDb', 'false', 'boolean'),
  ];
  isStarting = false;
  work: StartUpWork | null = null;
  proofs: ChunkProofView | null = null;
  indexes: readonly AttributeIndexDocument[] = [];
  auditNow: AuditView | null = null;
  tree: StatsTree = {
    proc: {
      id: 4711,
      cpu: 1.5,
      drive: { '/data': { usage: '40%', usedBytes: 4000, totalBytes: 10_000, availableBytes: 6000 } },
    },
    sys: { freeMem: 1024 },
    es: { checksum: 100 },
  };
  logLevel: LogView['level'] = 'info';
  chunks: ChunkMapView = {
    version: 'aabbccdd-1',
    chunkSize: 65_536,
    logEnd: 70_000,
    chunks: [
      {
        file: 'chunk-000000.000001',
        start: 0,
        end: 0,
        startPosition: 0,
        endPosition: 65_536,
        bytes: 4_096,
        dataBytes: 3_000,
        isOngoing: false,
        isScavenged: true,
        isCold: false,
        records: 12,
      },
      {
        file: 'chunk-000001.000000',
        start: 1,
        end: 1,
        startPosition: 65_536,
        endPosition: 131_072,
        bytes: 65_792,
        dataBytes: 4_464,
        isOngoing: true,
        isScavenged: false,
        isCold: false,
        records: null,
      },
    ],
  };
  metricsText = '# TYPE eventstore_up gauge\neventstore_up 1\n';
  reloadResult: ReloadResult = { options: [], ignoredOptions: [], certificatesChanged: false, certificates: [] };
  /** When set, `reload` rejects with it. */
  reloadError: SkuaError | null = null;
  mergeIndexesId = '2f0d6c2e-7d0a-4a83-9a39-5b1c1d0e9f10';
  /** What was called, in order, with its argument. */
  readonly calls: string[] = [];
  #priority = 0;

  member(): GossipMember {
    return {
      instanceId: this.instanceId,
      state: this.state,
      host: '127.0.0.1',
      port: 2113,
      isSecure: false,
      lastCommitPosition: 900,
      writerCheckpoint: 1000,
      chaserCheckpoint: 1000,
      epochPosition: 0,
      epochNumber: 0,
      epochId: '3a5a1de2-8f65-4a5b-8f56-0ff1a8d2c1aa',
      nodePriority: this.#priority,
    };
  }

  members(): readonly GossipMember[] {
    return [this.member()];
  }
  startUpWork(): StartUpWork | null {
    return this.work;
  }
  chunkProofs(): ChunkProofView | null {
    return this.proofs;
  }
  attributeIndexes(): readonly AttributeIndexDocument[] {
    return this.indexes;
  }
  audit(): AuditView | null {
    return this.auditNow;
  }
  stats(): StatsTree {
    return this.tree;
  }

  chunkMap(since: string | null): ChunkMapView {
    return since === this.chunks.version ? { ...this.chunks, chunks: null } : this.chunks;
  }

  async metrics(accept: string | null): Promise<{ readonly contentType: string; readonly body: string }> {
    this.calls.push(`metrics ${accept ?? ''}`);
    return { contentType: 'text/plain; version=0.0.4; charset=utf-8', body: this.metricsText };
  }

  webhooksNow: WebhooksView = {
    windowSeconds: 10,
    connectors: [
      {
        connectorId: 'parcels',
        calls: 5,
        outcomes: { accepted: 4, unauthorized: 1 },
        callsPerSecond: 0.5,
        outcomesPerSecond: { accepted: 0.4, unauthorized: 0.1 },
        p99Seconds: 0.01,
      },
    ],
  };
  webhooks(): WebhooksView {
    return this.webhooksNow;
  }

  readonly history: NodeHistory = {
    activity: () => ({
      ...FAKE_STEPS,
      values: {
        appendsPerSecond: [1],
        eventsWrittenPerSecond: [2],
        eventsReadPerSecond: [3],
        bytesWrittenPerSecond: [4],
        bytesReadPerSecond: [5],
        requestsPerSecond: [6],
        appendP99Seconds: [0.007],
        requestP99Seconds: [null],
        cpuShare: [0.08],
      },
    }),
    metrics: () => ({ ...FAKE_STEPS, values: { 'eventstore_io_events_total{activity="read"}': [3] } }),
    connector: (id) => ({
      ...FAKE_STEPS,
      values: { takenPerSecond: [id === 'parcels' ? 0.4 : null], skippedPerSecond: [0], refusedPerSecond: [0.1] },
    }),
    group: (stream, group) => ({
      ...FAKE_STEPS,
      values: { sentPerSecond: [stream.length], lag: [group.length], inFlight: [null] },
    }),
  };

  async overview(): Promise<OverviewView> {
    return {
      time: '2031-04-02T09:15:30.000Z',
      node: {
        version: this.version,
        instanceId: this.instanceId,
        state: this.state,
        address: '127.0.0.1:2113',
        isSecure: true,
        authentication: 'internal',
        startedAt: '2031-04-02T09:00:00.000Z',
        uptimeSeconds: 930,
        isMember: false,
      },
      log: {
        end: 1_000,
        bytes: 1_128,
        lastCommitPosition: 900,
        chunks: 1,
        indexTables: 0,
        indexEntries: 0,
        indexEntriesInMemory: 3,
        bytesUnproven: null,
        appendsQueued: 0,
        subscriptions: 0,
      },
      disk: {
        folder: '/data',
        totalBytes: 10,
        freeBytes: 4,
        usedBytes: 6,
        chunkBytes: 3,
        indexBytes: 2,
        otherBytes: 1,
      },
      activity: {
        windowSeconds: null,
        appendsPerSecond: null,
        eventsWrittenPerSecond: null,
        eventsReadPerSecond: null,
        bytesWrittenPerSecond: null,
        bytesReadPerSecond: null,
        requestsPerSecond: null,
        appendP99Seconds: null,
        requestP99Seconds: null,
        totals: { appends: 1, eventsWritten: 2, eventsRead: 3, bytesWritten: 4, bytesRead: 5, requests: 6 },
      },
      process: { cpuPercent: 1.5, memoryBytes: 100, heapBytes: 50 },
      connections: 2,
      certificates: [
        {
          kind: 'node',
          subject: 'CN=node1',
          serial: '0A',
          thumbprint: 'AB',
          notAfter: '2031-07-02T00:00:00.000Z',
          daysLeft: 90,
        },
      ],
      licence: { source: 'built-in', expiresAt: null, refusal: null },
      warnings: [
        { code: 'no-backup', severity: 'warning', message: 'There is none.', todo: 'Make one.', view: 'backups' },
      ],
    };
  }

  log({ count, level, since }: LogQuery): LogView {
    this.calls.push(`log ${count} ${level} ${since}`);
    const lines = [
      { sequence: 3, time: '2031-04-02T09:15:30.000Z', level: 'warn', message: 'low space', fields: { bytes: 5 } },
      {
        sequence: 4,
        time: '2031-04-02T09:15:31.000Z',
        level: 'error',
        message: 'failed',
        fields: {},
        exception: 'Error: No.',
      },
    ] as const;
    return { level: this.logLevel, first: 3, last: 4, missed: since === null ? 0 : Math.max(0, 2 - since), lines };
  }

  setLogLevel(level: LogLineLevel): void {
    this.calls.push(`setLogLevel ${level}`);
    this.logLevel = level;
  }

  shutdown(): void {
    this.calls.push('shutdown');
  }

  async reload(): Promise<ReloadResult> {
    this.calls.push('reload');
    if (this.reloadError !== null) throw this.reloadError;
    return this.reloadResult;
  }

  mergeIndexes(): string {
    this.calls.push('mergeIndexes');
    return this.mergeIndexesId;
  }

  setPriority(priority: number): void {
    this.calls.push(`setPriority ${priority}`);
    this.#priority = priority;
  }

  resign(): string {
    this.calls.push('resign');
    return 'This node is the only member of its cluster. It stays the leader.';
  }
}

export function fakeOption(
  name: string,
  value: string,
  type: OptionView['schema']['type'],
  configurationSource = '<DEFAULT>',
): OptionView {
  return {
    name,
    description: `The ${name}.`,
    group: 'Database Options',
    value,
    configurationSource,
    deprecationMessage: null,
    possibleValues: null,
    schema: { type },
    defaultValue: value,
    isSecret: value === '********',
    isReloadable: false,
    commandLine: `--${name.toLowerCase()}`,
    environment: `SERVER_${name.toUpperCase()}`,
  };
}
