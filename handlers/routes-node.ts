import { gossip } from './gossip.ts';
import { live, ready, welcome } from './health.ts';
import { info, infoOptions, ping, subsystems } from './info.ts';
import { metrics } from './metrics.ts';
import { NODE_DOCS as DOCS } from './openapi-node.ts';
import { operation } from './route.ts';
import type { Route } from './route.ts';
import { noConnections, stats } from './stats.ts';

const GET = 'GET, OPTIONS';
const LIVE = operation('probe', live, DOCS.live);

/** The paths of health, information and statistics (http-api.md section 4). */
export const NODE_ROUTES: readonly Route[] = [
  { path: '/health/live', methods: 'GET, HEAD, OPTIONS', operations: { GET: LIVE, HEAD: LIVE } },
  { path: '/health/ready', methods: 'GET, HEAD, OPTIONS', operations: { GET: operation('probe', ready, DOCS.ready), HEAD: operation('probe', ready, DOCS.readyHead) } },
  { path: '/ping', methods: GET, operations: { GET: operation('anyone', ping, DOCS.ping) } },
  { path: '/info', methods: GET, operations: { GET: operation('anyone', info, DOCS.info) } },
  { path: '/info/options', methods: GET, operations: { GET: operation('operators', infoOptions, DOCS.options) } },
  { path: '/gossip', methods: GET, operations: { GET: operation('gossip', gossip, DOCS.gossip) } },
  { path: '/metrics', methods: GET, operations: { GET: operation('statistics', metrics, DOCS.metrics) } },
  { path: '/stats', methods: GET, operations: { GET: operation('statistics', stats, DOCS.stats) } },
  { path: '/stats/replication', methods: GET, operations: { GET: operation('statistics', noConnections, DOCS.replication) } },
  { path: '/stats/tcp', methods: GET, operations: { GET: operation('statistics', noConnections, DOCS.tcp) } },
  { path: '/stats/:path+', methods: GET, operations: { GET: operation('statistics', stats, DOCS.branch) } },
  { path: '/sys/subsystems', methods: GET, operations: { GET: operation('operators', subsystems, DOCS.subsystems) } },
  { path: '/', methods: GET, operations: { GET: operation('anyone', welcome, DOCS.welcome) } },
];
