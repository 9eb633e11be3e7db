import { randomUUID } from 'node:crypto';
import * as path from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { isSkuaError } from '../../core/base/errors.ts';
import type { SkuaError } from '../../core/base/errors.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { Log } from '../../core/ports/log.ts';
import { NodeErasureChecks } from '../../core/scavenge/erasure-checks/erasure-checks.ts';
import type { Users } from '../../core/security/api.ts';
import type { RunningSecurity } from '../../core/security/security.ts';
import type { DirectoryStore, StartProgress, Store } from '../../core/store/store.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { createApp } from '../../handlers/app.ts';
import { ROUTES } from '../../handlers/routes.ts';
import type { AppContext, AppFeatures } from '../../handlers/http/context.ts';
import { createGrpc, notReadyGrpc } from '../../handlers/grpc.ts';
import type { Grpc } from '../../handlers/grpc.ts';
import { createStartingApp } from '../../handlers/starting.ts';
import { toResponse } from '../http/send-reply.ts';
import { Disposables } from '../../infra/disposables.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import { nodeLicence, openAutoScavenge } from '../auto-scavenge/open-auto-scavenge.ts';
import type { OpenAutoScavenge } from '../auto-scavenge/open-auto-scavenge.ts';
import { openBackups } from '../backup/node-backups.ts';
import type { OpenBackups } from '../backup/node-backups.ts';
import { backupSettings } from '../config/backup-settings.ts';
import type { BackupSettings } from '../config/backup-settings.ts';
import { isLoopback } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import { logLevelOf } from '../../infra/runtime/config/options.ts';
import { proxySide, TrustedProxies } from '../http/client-address.ts';
import type { ProxySide } from '../http/client-address.ts';
import {
  calledBy,
  certificateOf,
  connectionOf,
  isGone,
  localAddressOf,
  peerOf,
  plainHostOf,
  rawHeadersOf,
  readBody,
  replyShareOf,
  socketOf,
} from '../http/http-request.ts';
import { lastEpoch, type NodeControlParts, Readiness, SingleNode } from './control.ts';
import type { NodeLog } from '../log/logger.ts';
import { Activity, WebhookActivity } from '../metrics/activity-metrics.ts';
import { DayHistory } from '../metrics/day-history.ts';
import { createMetrics } from '../metrics/metrics.ts';
import type { Collector, Metrics } from '../metrics/metrics.ts';
import { cpuSeconds, watchProcess } from '../metrics/process-metrics.ts';
import type { ProcessMetrics } from '../metrics/process-metrics.ts';
import { nodeMetrics } from '../metrics/store-metrics.ts';
import type { OpenMember } from '../cluster/open-member.ts';
import { ClusterNode } from './cluster-node.ts';
import { isMember } from '../config/cluster-settings.ts';
import type { NodeOnObjects } from '../on-objects/open-on-objects.ts';
import { withCommitTimeout } from '../store/commit-timeout.ts';
import { openNode } from '../store/open-node.ts';
import type { LentNode, OpenNodeOptions } from '../store/open-node.ts';
import { listen } from './listen.ts';
import { NodeOverview } from './overview.ts';
import { createReloader } from './reload.ts';
import type { Reloader } from './reload.ts';
import { startSecurity, watchDefaultPasswords, watchInsecure } from './security.ts';
import { OWN_PROCESS } from './node-world.ts';
import type { NodeWorld } from './node-world.ts';
import { allowedHosts, appOptions, placesNamed, storeOptions } from './node-settings.ts';
import { ReplyCompression } from '../http/response-compression.ts';
import type { Fetch, HttpServer } from '../http/server.ts';
import { StatsCollector } from '../metrics/stats-collector.ts';
import { type CertificateSet, daysLeft } from '../tls/certificate-set.ts';
import { nodeCertificates, watchExpiry } from '../tls/node-certificates.ts';
import type { NodeCertificates } from '../tls/node-certificates.ts';
import { startTracing } from '../tracing/tracing.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { VERSION } from '../../infra/runtime/version.ts';
import { openProof } from '../proof/open-hash-chain.ts';
import { openSubscriptions } from '../persistent/open-subscriptions.ts';
import type { OpenSubscriptions } from '../persistent/open-subscriptions.ts';
import { pageFiles } from '../ui/built-page.ts';
import { openWebhooks } from '../webhook/open-webhooks.ts';
import { background } from '../../core/base/background.ts';

interface NodeOptions {
  readonly config: Config;
  readonly log: NodeLog;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onProgress?: (progress: StartProgress) => void;
  /** Default: a process for the node alone. */
  readonly world?: NodeWorld;
}

export interface RunningNode {
  readonly url: string;
  /** The store as it is now: another one after each `reopen`. */
  readonly open: Store;
  /** The same where its files are the node's own; null where they are objects. */
  readonly openDirectory: DirectoryStore | null;
  /** What works on its files; another one after each `reopen`. */
  readonly jobs: Jobs;
  /** As they are now; null where there are none. */
  readonly users: Users | null;
  readonly chunkSizeBytes: number;
  /** Settles only when the node can't go on. */
  readonly failed: Promise<SkuaError>;
  /** Settles when a user with the right to do so has asked for the end. */
  readonly shutdownAsked: Promise<string>;
  /** Of the development certificate; null without one. */
  readonly fingerprint: string | null;
  reload(trigger: string): Promise<unknown>;
  /**
   * Closes the store and all that works on it, does what is asked for in between, and opens it again: one in memory is
   * then empty. Meanwhile, and not longer, requests are answered as by a node that starts; the server goes on, and with
   * it connections that are open. Not for members of a cluster, or a node whose files are objects. After an error the
   * node can only be stopped.
   */
  reopen(between?: () => Promise<void>): Promise<void>;
  /** Ends a scavenge and the requests, and closes the store; everything acknowledged is on disk already. */
  stop(): Promise<void>;
}

/**
 * Puts a node together: certificates, server, storage, jobs, store, users, handlers. The server listens from the
 * beginning, so that health can be asked while the store is being opened. Rejects with what keeps the node from
 * running.
 */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const node = new Node(options);
  try {
    await node.start();
    return node;
  } catch (error) {
    // The error that kept the node from running is thrown, whatever closing fails with.
    await node.stop().catch(() => {});
    throw error;
  }
}

/** What the node needs of what works on its store. How it ends stands in the two stacks. */
interface Part {
  readonly metrics?: Collector;
  /** Works until aborted; resolves when nothing is under way any more. */
  run?(signal: AbortSignal): Promise<void>;
}

/**
 * Two stacks, since the order in which parts are opened is not the one in which they end: the server listens before
 * there is a store, and some parts end in two steps. The stack of what serves is closed first, from the consumers of
 * groups down to the server: all of it works meanwhile on a store that is open, so that every caller that waits has an
 * answer. What is served from follows: nothing asks for it any more. The lowest of each stand for as long as the node
 * does, the others until the store is opened again.
 */
class Node implements RunningNode {
  readonly #options: NodeOptions;
  readonly #values: Values;
  readonly #log: Log;
  readonly #world: NodeWorld;
  readonly #metrics: Metrics;
  #readiness: Readiness;
  readonly #process: ProcessMetrics;
  readonly #stats: StatsCollector;
  readonly #history: DayHistory;
  readonly #control: SingleNode;
  readonly #isMember: boolean;
  readonly #proxies: TrustedProxies;
  readonly #proxySide: ProxySide;
  readonly #audit: AuditTrail | null;
  readonly #serving = new Disposables();
  readonly #servedFrom = new Disposables();
  /** How many of each stack outlast the store. */
  #lasting = { serving: 0, servedFrom: 0 };
  /** The node is to end, and with it what only watches. */
  readonly #ending = new AbortController();
  readonly #directory: string | null;
  readonly #overview: NodeOverview;
  #certificates: NodeCertificates = { mode: 'off' };
  #reloader: Reloader<Values> | null = null;
  #server: HttpServer | null = null;
  #node: LentNode<Store> | null = null;
  #openDirectory: DirectoryStore | null = null;
  readonly #failed = Promise.withResolvers<SkuaError>();
  #backups: OpenBackups | null = null;
  #subscriptions: OpenSubscriptions | null = null;
  #security: RunningSecurity | null = null;
  #fetch: Fetch;
  #grpc: Grpc = notReadyGrpc;

  constructor(options: NodeOptions) {
    const { config, log } = options;
    const { values } = config;
    this.#options = options;
    this.#values = values;
    this.#log = log;
    this.#world = options.world ?? OWN_PROCESS;
    const { machineClock } = this.#world;
    this.#metrics = createMetrics(machineClock);
    this.#readiness = new Readiness(machineClock);
    this.#proxies = new TrustedProxies(values.TrustedProxies);
    this.#proxySide = proxySide(this.#proxies, socketOf);
    this.#isMember = isMember(values, config.given);
    this.#directory = values.MemDb || (values.Storage !== null && !this.#isMember) ? null : path.resolve(values.Db);
    this.#process = watchProcess(this.#metrics, machineClock, this.#directory);
    this.#servedFrom.defer(() => this.#process.close());
    this.#stats = new StatsCollector({
      clock: machineClock,
      metrics: this.#metrics,
      process: this.#process,
      store: () => this.#node?.open ?? null,
      folder: this.#directory,
      periodMs: values.StatsPeriodSec * 1_000,
      onCollected: (stats) => log.stats(stats),
    });
    this.#history = new DayHistory({
      clock: machineClock,
      metrics: this.#metrics,
      cpuSeconds: () => cpuSeconds().total,
      lookups: () => this.#node?.open?.status() ?? null,
      groups: () => this.#subscriptions?.figuresNow() ?? null,
    });
    this.#audit =
      values.AuditLog === null && !values.AuditStream
        ? null
        : new AuditTrail({
            file:
              values.AuditLog === null
                ? null
                : {
                    name: values.AuditLog,
                    sizeBytes: values.LogFileSize,
                    interval: values.LogFileInterval,
                    retention: values.LogFileRetentionCount,
                  },
            clock: machineClock,
            log,
            meter: this.#metrics,
          });
    const webhooks = new WebhookActivity(this.#metrics, machineClock);
    const control: NodeControlParts = {
      version: VERSION,
      instanceId: randomUUID(),
      authenticationType: values.Insecure ? 'insecure' : 'internal',
      host: values.NodeHostAdvertiseAs ?? values.NodeIp,
      port: () => values.NodePortAdvertiseAs || this.#server!.port,
      isSecure: !values.Insecure && !values.DisableTls,
      priority: values.NodePriority,
      options: () => this.#config.views,
      startUpWork: () => this.#readiness.work(),
      stats: () => this.#stats.current(),
      metrics: (accept) => this.#metrics.render(accept),
      reload: () => this.#reloader!.reload('POST /admin/reloadconfig'),
      audit: () => this.#audit?.view ?? null,
      log,
      overview: () => this.#overview.view(),
      history: this.#history,
      webhooks: () => webhooks.view(),
    };
    this.#control = this.#isMember ? new ClusterNode(control) : new SingleNode(control);
    // For a member another one takes over first.
    if (!this.#isMember) background(this.#control.shutdownAsked.then(() => this.#refuseCalls()));
    this.#overview = this.#createOverview(control);
    this.#fetch = this.#startingApp();
  }

  #startingApp(): Fetch {
    const { Insecure, AllowAnonymousEndpointAccess, DisableStatsOnHttp } = this.#values;
    return createStartingApp({
      startUpWork: () => this.#readiness.work(),
      metrics: (accept) => this.#metrics.render(accept),
      allowAnonymousMetrics: Insecure || AllowAnonymousEndpointAccess,
      disableStatsOnHttp: DisableStatsOnHttp,
      allowedHosts: allowedHosts(this.#values),
      plainHostOf,
      toResponse,
    });
  }

  #createOverview({
    version,
    instanceId,
    authenticationType: authentication,
    isSecure,
  }: NodeControlParts): NodeOverview {
    const values = this.#values;
    const { machineClock } = this.#world;
    return new NodeOverview({
      version,
      instanceId,
      authentication,
      isSecure,
      clock: machineClock,
      startedMs: machineClock.nowMs(),
      state: () => this.#control.state,
      address: () => this.#control.address,
      isReachable: !isLoopback(values.NodeIp),
      isMember: this.#isMember,
      open: () => this.open,
      members: () => this.#control.members(),
      files: this.#directory === null ? null : { storage: () => this.#node!.storage, folder: this.#directory },
      isInMemory: values.MemDb,
      activity: new Activity(this.#metrics, machineClock),
      process: () => ({
        cpuPercent: this.#process.cpuPercent(),
        memoryBytes: process.memoryUsage.rss(),
        heapBytes: getHeapStatistics().used_heap_size,
      }),
      connections: () => this.#server?.connections() ?? 0,
      certificates: () => this.#certificatesInForce,
      hasDefaultPasswords: () => this.#hasDefaultPasswords(),
      licence: () => nodeLicence(this.#values, nodeKeys),
      backups: () => backupFacts(this.#backups),
      audit: () => this.#audit?.view ?? null,
      logLevel: () => this.#options.log.level,
      configuration: () => this.#config.warnings,
    });
  }

  get url(): string {
    return this.#server!.url;
  }
  get chunkSizeBytes(): number {
    return this.open.chunkSizeBytes;
  }
  get failed(): Promise<SkuaError> {
    return this.#failed.promise;
  }
  get shutdownAsked(): Promise<string> {
    return this.#control.shutdownAsked;
  }
  get fingerprint(): string | null {
    return this.#certificates.mode === 'dev' ? this.#certificates.fingerprint : null;
  }
  get jobs(): Jobs {
    return this.#node!.jobs;
  }
  get users(): Users | null {
    return this.#security?.users ?? null;
  }
  get open(): Store {
    return this.#node!.open;
  }
  get openDirectory(): DirectoryStore | null {
    return this.#openDirectory;
  }
  /** Null without TLS. */
  get #certificatesInForce(): CertificateSet | null {
    return this.#certificates.mode === 'off' ? null : (this.#reloader?.certificates ?? this.#certificates.set);
  }
  get #config(): Config {
    return (this.#reloader?.config ?? this.#options.config) as Config;
  }

  /** On behalf of a signal; a request is written to the audit where it is answered. */
  async reload(trigger: string): Promise<unknown> {
    try {
      const result = await this.#reloader!.reload(trigger);
      this.#audit?.own('node.reload', {
        details: {
          by: trigger,
          options: result.options.map(({ name }) => name),
          certificatesChanged: result.certificatesChanged,
        },
      });
      return result;
    } catch (error) {
      this.#audit?.own('node.reload', {
        outcome: 'failed',
        code: isSkuaError(error) ? error.code : null,
        details: { by: trigger },
      });
      throw error;
    }
  }

  async start(): Promise<void> {
    const { machineClock, stopGraceMs } = this.#world;
    const backupsAsked = await backupSettings(this.#values);
    this.#certificates = await nodeCertificates(
      this.#options.config,
      machineClock,
      this.#log,
      this.#world.devCertificate,
    );
    const tracing = await startTracing({
      env: this.#options.env,
      version: VERSION,
      instanceId: this.#control.instanceId,
      log: this.#log,
      routes: ROUTES,
      addressOf: this.#proxySide.addressOf,
    });
    this.#servedFrom.defer(() => tracing?.close());
    this.#servedFrom.defer(() => this.#audit?.close());
    background(this.#history.run(this.#ending.signal));
    this.#metrics.collect(
      nodeMetrics(this.#metrics, {
        state: () => this.#control.state,
        store: () => this.#node?.open ?? null,
        startUpWork: () => this.#readiness.work(),
        certificateDaysLeft: () =>
          this.#certificatesInForce === null ? null : daysLeft(this.#certificatesInForce, machineClock.nowMs()),
        connections: () => this.#server?.connections() ?? 0,
      }),
    );
    const server = (this.#server = await this.#listen(tracing));
    this.#serving.defer(async () => {
      if (!(await server.stop(stopGraceMs)))
        this.#log.warn('requests were cut off', { graceSeconds: stopGraceMs / 1000 });
    });
    this.#lasting = { serving: this.#serving.size, servedFrom: this.#servedFrom.size };
    await this.#openParts(backupsAsked);
    this.#audit?.own('node.start', { target: this.url, details: { version: VERSION, pid: process.pid } });
    if (this.#values.Insecure)
      background(
        watchInsecure(this.#values.NodeIp, { clock: machineClock, log: this.#log, signal: this.#ending.signal }),
      );
    else
      background(
        watchDefaultPasswords(() => this.#hasDefaultPasswords(), {
          clock: machineClock,
          log: this.#log,
          signal: this.#ending.signal,
        }),
      );
    if (this.#certificates.mode !== 'off')
      background(
        watchExpiry({
          certificates: () => this.#certificatesInForce!,
          clock: machineClock,
          log: this.#log,
          signal: this.#ending.signal,
        }),
      );
  }

  /** The store, and all that works on it: each thing goes onto the stack of where it belongs as soon as it is open. */
  async #openParts(backupsAsked: BackupSettings): Promise<void> {
    const { dataClock, machineClock } = this.#world;
    const member = this.#isMember ? await this.#openMember() : null;
    const objects = this.#values.Storage === null || member !== null ? null : await this.#openOnObjects();
    const alone = member === null && objects === null ? await openNode(this.#nodeOptions()) : null;
    // A caller that still reads or waits gets the error that the store is closed.
    this.#servedFrom.defer(() => alone?.close());
    const node = (this.#node = member ?? objects ?? alone!);
    const { open } = node;
    const directory = (this.#openDirectory = (member ?? alone)?.open ?? null);
    if (directory !== null) background(directory.failed.then(this.#failed.resolve));
    const store = member?.store ?? open.store;
    const security = (this.#security = this.#values.Insecure
      ? null
      : await startSecurity({
          config: this.#options.config,
          directory: this.#directory,
          store,
          written: member?.written ?? store,
          upToDate: member?.feature.upToDate ?? null,
          log: this.#log,
          meter: this.#metrics,
          clock: machineClock,
        }));
    const proof =
      directory !== null
        ? await openProof({
            values: this.#values,
            open: directory,
            opened: this.#servedFrom,
            log: this.#log,
            meter: this.#metrics,
          })
        : null;
    if (this.#values.AuditStream) this.#audit!.openStream(member?.written ?? store, systemIds);
    this.#servedFrom.defer(() => this.#audit?.closeStream());
    this.#servedFrom.defer(() => {
      if (this.#readiness.work() === null) this.#audit?.own('node.stop');
    });
    if (this.#control instanceof ClusterNode) this.#control.joined(member!.open, member!.membership);
    else this.#control.opened(open, await lastEpoch(store));
    this.#reloader ??= this.#createReloader(member);
    const webhooks = this.#values['Connectors:Enabled']
      ? await openWebhooks(open.store, this.#values, {
          access: security?.access ?? null,
          log: this.#log,
          meter: this.#metrics,
          clock: machineClock,
          commandStore: store,
          opened: this.#servedFrom,
        })
      : null;
    // Before requests are ended: callers that wait for a write then learn what came of it.
    this.#serving.defer(() => webhooks?.drain());
    const scavenges = objects === null ? await this.#openAutoScavenge(member) : { ...objects, orders: null };
    const backups = (this.#backups = this.#serving.use(
      await openBackups({
        settings: backupsAsked,
        node,
        directory,
        autoScavenge: objects === null ? scavenges.autoScavenge : null,
        clock: machineClock,
        log: this.#log,
        meter: this.#metrics,
        // For a backup that a user asked for, the audit has the request.
        onBegun: (target, cause) => {
          if (cause !== 'manual') this.#audit?.own('backup.start', { user: 'system', target, details: { by: cause } });
        },
      }),
    ));
    const stopping = new AbortController();
    let running: Promise<unknown> = Promise.resolve();
    this.#serving.defer(() => running);
    // A client that waits for the end of a scavenge has an answer before connections are closed.
    this.#serving.defer(() => {
      stopping.abort();
      return directory === null ? objects!.endForesight() : directory.scavenger.close();
    });
    this.#serving.defer(() => this.#resign(member));
    const erasure =
      directory !== null
        ? new NodeErasureChecks({
            scavenger: directory.scavenger,
            jobs: node.jobs,
            clock: dataClock,
            ids: systemIds,
            log: this.#log,
          })
        : null;
    this.#serving.defer(() => erasure?.close());
    // What a backup has paused goes on, in the log if nowhere else.
    this.#serving.defer(() => backups.end());
    // Nodes share objects without one that leads. What groups have done can still be written, and told to their
    // consumers.
    const subscriptions = (this.#subscriptions =
      objects === null
        ? this.#serving.use(
            openSubscriptions({
              store: open.store,
              cluster: member === null ? null : { membership: member.membership, log: member.open.log },
              log: this.#log,
              clock: dataClock,
            }),
          )
        : null);
    const parts: readonly (Part | null)[] = [scavenges, member, backups, proof, subscriptions];
    for (const part of parts)
      if (part?.metrics !== undefined) this.#servedFrom.defer(this.#metrics.collect(part.metrics));
    await this.#stats.collect();
    const context = this.#contextOf(store, open, {
      webhooks,
      autoScavenge: scavenges.autoScavenge,
      scavengeOrders: scavenges.orders,
      backups,
      cluster: member?.feature ?? null,
      subscriptions: subscriptions?.groups ?? null,
      erasure,
      page: this.#values.DisableAdminUi ? null : pageFiles(this.#log),
    });
    this.#fetch = createApp(context);
    this.#grpc = createGrpc(context);
    // The others may ask from here on.
    await member?.membership.start();
    subscriptions?.start();
    this.#readiness.ready();
    background(this.#stats.run(stopping.signal));
    running = Promise.all(parts.map((part) => part?.run?.(stopping.signal)));
  }

  #contextOf(store: EventStore, { scavenger }: Store, features: AppFeatures): AppContext {
    const { CommitTimeoutMs: commitTimeoutMs } = this.#values;
    return {
      store: commitTimeoutMs === null ? store : withCommitTimeout(store, commitTimeoutMs, this.#world.machineClock),
      scavenger,
      features,
      security: this.#security,
      node: this.#control,
      options: appOptions(this.#values),
      audit: this.#audit,
      world: { clock: this.#world.machineClock, ids: systemIds, log: this.#log, meter: this.#metrics },
      server: {
        ...this.#proxySide,
        readBody,
        calledBy,
        certificateOf,
        peerOf,
        isGone,
        plainHostOf,
        localAddressOf,
        connectionOf,
        rawHeadersOf,
        replyShareOf,
        toResponse,
        encoder: new ReplyCompression(),
      },
    };
  }

  /** Loaded only where it is needed. */
  async #openMember(): Promise<OpenMember> {
    const { openMember } = await import('../cluster/open-member.ts');
    return openMember({
      values: this.#values,
      node: this.#nodeOptions(),
      instanceId: this.#control.instanceId,
      self: this.#control.address,
      certificates: this.#certificates.mode === 'certificates' ? this.#certificates.set : null,
      log: this.#log,
      meter: this.#metrics,
      opened: this.#servedFrom,
    });
  }

  #nodeOptions(): OpenNodeOptions {
    return {
      db: this.#directory,
      index: this.#values.Index,
      mustExist: false,
      beside: placesNamed(this.#options.config),
      log: this.#log,
      meter: this.#metrics,
      store: this.#storeOptions(),
      clock: this.#world.dataClock,
      collector: this.#world.collector?.() ?? null,
      onProgress: (progress) => this.#progress(progress),
    };
  }

  #storeOptions(): OpenNodeOptions['store'] {
    const { recentIds, zeroAheadBytes } = this.#world;
    const options = storeOptions(this.#options.config);
    return {
      ...options,
      log: {
        ...options.log,
        ...(recentIds !== null && { recentIds }),
        ...(zeroAheadBytes !== null && { zeroAheadBytes }),
      },
    };
  }

  /** Loaded only where it is needed. */
  async #openOnObjects(): Promise<NodeOnObjects> {
    const { openOnObjects } = await import('../on-objects/open-on-objects.ts');
    return openOnObjects({
      values: this.#values,
      hasChunkSize: this.#options.config.given('ChunkSize'),
      log: this.#log,
      meter: this.#metrics,
      opened: this.#servedFrom,
    });
  }

  #openAutoScavenge(member: OpenMember | null): Promise<OpenAutoScavenge> {
    const world = {
      values: this.#values,
      version: VERSION,
      open: this.open,
      clock: this.#world.dataClock,
      ids: systemIds,
      keys: nodeKeys,
      log: this.#log,
      meter: this.#metrics,
      onStarted: (target: string) =>
        this.#audit?.own('scavenge.start', { user: 'system', target, details: { by: 'schedule' } }),
    };
    return (
      member?.openAutoScavenge(world) ??
      openAutoScavenge({
        ...world,
        self: () => this.#control.address,
        isLeader: () => this.#control.state === 'Leader',
      })
    );
  }

  async #hasDefaultPasswords(): Promise<boolean> {
    return (await this.#security?.hasDefaultPasswords()) ?? false;
  }

  #listen(tracing: Tracing | null): Promise<HttpServer> {
    return listen({
      values: this.#values,
      isMember: this.#isMember,
      certificates: this.#certificates,
      proxies: this.#proxies,
      addressOf: this.#proxySide.addressOf,
      tracing,
      world: this.#world,
      log: this.#log,
      metrics: this.#metrics,
      fetch: (request) => this.#fetch(request),
      grpc: (call) => this.#grpc(call),
    });
  }

  #progress(progress: StartProgress): void {
    this.#readiness.update(progress);
    this.#options.onProgress?.(progress);
  }

  #createReloader(member: OpenMember | null): Reloader<Values> {
    const { config, log } = this.#options;
    const certificates = this.#certificates;
    return createReloader<Values>({
      config,
      log,
      certificates:
        certificates.mode !== 'certificates'
          ? {
              skipped: certificates.mode === 'off' ? 'TLS is off' : 'the development certificate is created at startup',
            }
          : {
              inForce: certificates.set,
              load: async (values) =>
                (await import('../tls/load-certificates.ts')).loadConfigured(values, this.#world.machineClock.nowMs()),
              use: (set) => {
                this.#server!.setCertificates(set);
                member?.client.setCertificates(set);
              },
            },
      apply: (values, changed) => {
        if (changed.has('LogLevel')) log.setLevel(logLevelOf(values.LogLevel));
      },
    });
  }

  /** What begins from here on is sent elsewhere; what is under way goes on. */
  #refuseCalls(): void {
    this.#grpc = notReadyGrpc;
  }

  /** Another member leads before this one ends its requests. */
  async #resign(member: OpenMember | null): Promise<void> {
    await member?.membership.leave();
    this.#refuseCalls();
    if (this.#ending.signal.aborted) this.#control.stopping();
  }

  async stop(): Promise<void> {
    if (!this.#isMember) this.#refuseCalls();
    this.#ending.abort();
    this.#servedFrom.defer(() => this.#serving.close());
    await this.#servedFrom.close();
  }

  async reopen(between: () => Promise<void> = async () => {}): Promise<void> {
    if (this.#isMember || this.#values.Storage !== null)
      throw new TypeError('Only a single node with its own files can reopen its store.');
    const settings = await backupSettings(this.#values);
    this.#refuseCalls();
    this.#readiness = new Readiness(this.#world.machineClock);
    this.#fetch = this.#startingApp();
    await this.#serving.close(this.#lasting.serving);
    await this.#server!.interrupt(this.#world.stopGraceMs);
    await this.#servedFrom.close(this.#lasting.servedFrom);
    await between();
    await this.#openParts(settings);
  }
}

/** What warnings are made from. */
function backupFacts(backups: OpenBackups | null) {
  if (backups === null) return null;
  const { place, newest, provenMs } = backups.status();
  return { place, newestMs: newest?.createdMs ?? null, provenMs };
}
