import { timestampText } from '../../core/base/time.ts';
import type {
  AuditView,
  BuildingView,
  ChunkProofView,
  GossipDocument,
  InfoDocument,
  MemberDocument,
  OptionView,
  PingDocument,
  ReadinessDocument,
  StartUpWork,
  WelcomeDocument,
} from '../documents/node.ts';
import { membersFor } from '../http/asked-host.ts';
import type { App, Handler, Reply } from '../http/context.ts';
import { ADMIN_KINDS, JSON_ONLY, negotiate } from '../http/negotiate.ts';
import type { GossipMember, NodeControl } from '../http/node-control.ts';
import { isOpenedInBrowser } from '../http/browsers.ts';
import { ASK_AGAIN, adminJson, adminReply, commonHeaders, document, jsonReply, redirect } from '../http/reply.ts';
import { area, operation } from '../http/route.ts';
import { baseOf } from '../http/url.ts';
import { nodeOf } from '../http/presence.ts';
import { inRoom } from '../http/room.ts';
import { METRIC_HISTORY_DOC } from '../openapi/inspection-paths.ts';
import { NODE_DOCS } from '../openapi/node-paths.ts';
import { noConnections, stats } from './statistics.ts';

const NOT_STORED = { ...commonHeaders(''), 'cache-control': 'no-store' };
const JSON_HEADERS = { ...NOT_STORED, 'content-type': 'application/json; charset=utf-8' };
/** Seconds after which to look again while a node starts. */
const RETRY_AFTER = { 'retry-after': '5' };

/**
 * `/health/live`: 204 once the node has started, until then 503; always empty. What only keeps it from serving, such as
 * a bucket that does not answer, says `/health/ready`: a restart would not help.
 */
export const live: Handler = (_call, app) => liveReply(app.node?.isStarting !== true);

export function liveReply(isStarted: boolean): Reply {
  if (isStarted) return { status: 204, statusText: 'No Content', headers: NOT_STORED, body: null };
  return {
    status: 503,
    statusText: 'Server Is Not Ready',
    headers: { ...NOT_STORED, ...RETRY_AFTER, 'content-length': '0' },
    body: null,
  };
}

/**
 * `/health/ready`: whether requests can be served, and if not, how far the start has come; of one that serves, how much
 * of its log is scrubbed.
 */
export const ready: Handler = (_call, app) => {
  const isStopping = app.node?.state === 'ShuttingDown';
  return readyReply(isStopping ? 'stopping' : null, workOf(app), {
    log: app.node?.chunkProofs() ?? null,
    audit: app.node?.audit() ?? null,
    building: (app.node?.attributeIndexes() ?? [])
      .filter(({ state }) => state === 'building')
      .map(({ name, coveredTo, logEnd }) => ({ index: name, coveredTo, logEnd })),
  });
};

/** What a node that serves says of itself; what is null is not there. */
interface ReadyDetails {
  readonly log: ChunkProofView | null;
  readonly audit: AuditView | null;
  /** Attribute indexes. */
  readonly building: readonly BuildingView[];
}

/** What `/health/ready` says; `ending` in place of `ready` for a node that goes away. */
export function readyReply(
  ending: 'stopping' | null,
  work: StartUpWork | null,
  { log, audit, building }: ReadyDetails = { log: null, audit: null, building: [] },
): Reply {
  const isReady = ending === null && work === null;
  const body: ReadinessDocument = isReady
    ? {
        status: 'ready',
        ...(log !== null && { log }),
        ...(audit !== null && { audit }),
        ...(building.length > 0 && { building }),
      }
    : ending !== null
      ? { status: ending }
      : { status: 'starting', ...work };
  const text = `${JSON.stringify(body, null, 2)}\n`;
  if (isReady) return { status: 200, statusText: 'OK', headers: JSON_HEADERS, body: text };
  return { status: 503, statusText: 'Server Is Not Ready', headers: { ...JSON_HEADERS, ...RETRY_AFTER }, body: text };
}

/** Without a node around them (in functions) the handlers are there when they are asked. */
function workOf(app: App): StartUpWork | null {
  return app.node?.startUpWork() ?? null;
}

/** `GET /`: where a newcomer finds things; a browser is redirected to the page. */
const welcome: Handler = (call, app) => {
  const base = baseOf(call);
  if (app.features.page != null && isOpenedInBrowser(call.request.headers))
    return redirect(call, `${base}/ui`, 'Moved', 'no-store');
  const { disableStatsOnHttp, disableGossipOnHttp, version } = app.options;
  const node =
    app.node === null
      ? {}
      : {
          ready: `${base}/health/ready`,
          info: `${base}/info`,
          ...(!disableStatsOnHttp && { stats: `${base}/stats`, metrics: `${base}/metrics` }),
          ...(!disableGossipOnHttp && { gossip: `${base}/gossip` }),
        };
  const body: WelcomeDocument = {
    name: 'Skua',
    version,
    links: {
      all: `${base}/streams/%24all`,
      stream: `${base}/streams/{stream}`,
      events: `${base}/streams/{stream}/{event}/forward/{count}`,
      metadata: `${base}/streams/{stream}/metadata`,
      live: `${base}/health/live`,
      ...node,
      openapi: `${base}/openapi.json`,
    },
    hint: 'POST an array of events as application/vnd.eventstore.events+json to a stream to create it. GET with Accept: text/event-stream follows it.',
  };
  return {
    status: 200,
    statusText: 'OK',
    headers: { ...commonHeaders(''), 'content-type': 'application/json; charset=utf-8' },
    body: `${JSON.stringify(body, null, 2)}\n`,
  };
};

/** GET `/ping`. The last two members mean nothing; clients of the reference find them there. */
const ping: Handler = (call) => {
  const text = 'Ping request successfully handled';
  return adminReply(
    call,
    negotiate(call, ADMIN_KINDS),
    { text, msgTypeId: 123, label: 'Http' } satisfies PingDocument,
    text,
  );
};

/** GET `/info`. */
export const info: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  return adminJson(call, 200, {
    dbVersion: node.version,
    esVersion: node.version,
    state: node.state.toLowerCase(),
    features: { projections: false, userManagement: app.security !== null, atomPub: !app.options.disableAtomPub },
    authentication: { type: node.authenticationType, properties: null },
  } satisfies InfoDocument);
};

/** GET `/info/options`: every option, with the members of both generations, and behind them what is ours. */
const infoOptions: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  return adminJson(
    call,
    200,
    nodeOf(call, app).options.map(
      ({
        name,
        description,
        group,
        value,
        configurationSource,
        deprecationMessage,
        possibleValues,
        schema,
        defaultValue,
        isSecret,
        isReloadable,
        commandLine,
        environment,
      }): OptionView => ({
        name,
        description,
        group,
        value,
        possibleValues,
        configurationSource,
        deprecationMessage,
        schema: { type: schema.type },
        defaultValue,
        isSecret,
        isReloadable,
        commandLine,
        environment,
      }),
    ),
  );
};

/** GET `/sys/subsystems`: the reference runs projections as one; there are none here. */
const subsystems: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  nodeOf(call, app);
  return adminJson(call, 200, []);
};

/** GET `/gossip`: the members of the cluster as this node knows them. */
const gossip: Handler = (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const node = nodeOf(call, app);
  const [member] = membersFor(call, app, [node.member()]);
  const view: GossipDocument = {
    members: membersFor(call, app, node.members()).map((one) => memberView(node, one, app)),
    serverIp: member!.host,
    serverPort: member!.port,
  };
  const text = chosen.kind === 'text' ? `${view.members.map(memberLine).join('\n')}\n` : JSON.stringify(view, null, 2);
  return document(call, text, chosen.contentType, ASK_AGAIN);
};

/** A member as it is sent; ports of protocols that we do not speak are 0. */
function memberView({ version }: NodeControl, member: GossipMember, app: App): MemberDocument {
  const { asMember } = member;
  const nowMs = asMember?.heardMs ?? app.world.clock.nowMs();
  const wholeMs = Math.floor(nowMs);
  return {
    instanceId: member.instanceId,
    timeStamp: timestampText(wholeMs, Math.floor((nowMs - wholeMs) * 10_000)),
    state: member.state,
    isAlive: asMember?.isAlive ?? true,
    internalTcpIp: member.host,
    internalTcpPort: 0,
    internalSecureTcpPort: 0,
    externalTcpIp: member.host,
    externalTcpPort: 0,
    externalSecureTcpPort: 0,
    httpEndPointIp: member.host,
    httpEndPointPort: member.port,
    lastCommitPosition: member.lastCommitPosition,
    writerCheckpoint: member.writerCheckpoint,
    chaserCheckpoint: member.chaserCheckpoint,
    epochPosition: member.epochPosition,
    epochNumber: member.epochNumber,
    epochId: member.epochId,
    nodePriority: member.nodePriority,
    isReadOnlyReplica: asMember?.isReadOnlyReplica ?? false,
    esVersion: asMember?.version ?? version,
    ...(asMember !== undefined && {
      appliedCommit: asMember.appliedCommit,
      scavengeId: asMember.scavengeId,
      bucketSilentMs: asMember.bucketSilentMs,
    }),
  };
}

function memberLine(member: MemberDocument): string {
  return `${member.instanceId} ${member.state} ${member.httpEndPointIp}:${member.httpEndPointPort} writer ${member.writerCheckpoint} chaser ${member.chaserCheckpoint} epoch ${member.epochNumber}@${member.epochPosition}:${member.epochId} priority ${member.nodePriority} at ${member.timeStamp}`;
}

/** GET `/metrics`: the text of Prometheus, or OpenMetrics where the request accepts it. */
const metrics: Handler = async (call, app) => {
  const { contentType, body } = await nodeOf(call, app).metrics(call.request.headers.get('accept'));
  return document(call, body, contentType, ASK_AGAIN);
};

/** GET `/metrics/history`: what charts of metrics begin with. */
const metricHistory: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  return jsonReply(call, nodeOf(call, app).history.metrics());
};

const GET = 'GET, OPTIONS';
const STATISTICS = 'disableStatsOnHttp';
const LIVE = operation('probe', 'here', live, NODE_DOCS.live);

/** The paths of health, information and statistics. */
export const NODE_ROUTES = area({ tag: 'Node' }, [
  { path: '/health/live', methods: 'GET, HEAD, OPTIONS', operations: { GET: LIVE } },
  {
    path: '/health/ready',
    methods: 'GET, HEAD, OPTIONS',
    operations: { GET: operation('probe', 'here', ready, NODE_DOCS.ready) },
  },
  { path: '/ping', methods: GET, operations: { GET: operation('anyone', 'here', ping, NODE_DOCS.ping) } },
  { path: '/info', methods: GET, operations: { GET: operation('anyone', 'here', info, NODE_DOCS.info) } },
  {
    path: '/info/options',
    methods: GET,
    operations: { GET: operation('operators', 'here', inRoom(infoOptions), NODE_DOCS.options) },
  },
  {
    path: '/gossip',
    offBy: 'disableGossipOnHttp',
    methods: GET,
    operations: { GET: operation('gossip', 'here', gossip, NODE_DOCS.gossip) },
  },
  {
    path: '/metrics',
    offBy: STATISTICS,
    methods: GET,
    operations: { GET: operation('statistics', 'here', inRoom(metrics), NODE_DOCS.metrics) },
  },
  {
    path: '/metrics/history',
    offBy: STATISTICS,
    methods: GET,
    operations: { GET: operation('statistics', 'here', inRoom(metricHistory), METRIC_HISTORY_DOC) },
  },
  {
    path: '/stats',
    offBy: STATISTICS,
    methods: GET,
    operations: { GET: operation('statistics', 'here', inRoom(stats), NODE_DOCS.stats) },
  },
  {
    path: '/stats/replication',
    offBy: STATISTICS,
    methods: GET,
    operations: { GET: operation('statistics', 'here', noConnections, NODE_DOCS.replication) },
  },
  {
    path: '/stats/tcp',
    offBy: STATISTICS,
    methods: GET,
    operations: { GET: operation('statistics', 'here', noConnections, NODE_DOCS.tcp) },
  },
  {
    path: '/stats/:path+',
    offBy: STATISTICS,
    methods: GET,
    operations: { GET: operation('statistics', 'here', inRoom(stats), NODE_DOCS.branch) },
  },
  {
    path: '/sys/subsystems',
    methods: GET,
    operations: { GET: operation('operators', 'here', subsystems, NODE_DOCS.subsystems) },
  },
  {
    path: '/',
    offBy: 'disableAdminUi',
    methods: GET,
    operations: { GET: operation('anyone', 'here', welcome, NODE_DOCS.welcome) },
  },
]);
