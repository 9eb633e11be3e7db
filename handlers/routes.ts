import { BACKUP_ROUTES } from './backup/backup-routes.ts';
import { BACKUP_CHECK_ROUTES } from './backup/checks.ts';
import { CLUSTER_ROUTES } from './cluster/routes.ts';
import { WEBHOOK_ACTIVITY_ROUTES } from './connectors/connector-activity.ts';
import { CONNECTOR_ROUTES } from './connectors/connectors.ts';
import { branchesOf } from './http/branches.ts';
import type { AppOptions } from './http/context.ts';
import type { Route } from './http/route.ts';
import { ADMIN_ROUTES } from './node/administration.ts';
import { CHUNK_MAP_ROUTES } from './node/chunk-map.ts';
import { NODE_ROUTES } from './node/information.ts';
import { LOG_ROUTES } from './node/node-log.ts';
import { OVERVIEW_ROUTES } from './node/overview-route.ts';
import { openApiRoute } from './openapi/document.ts';
import { SUBSCRIPTION_ROUTES } from './persistent/routes.ts';
import { AUTO_SCAVENGE_ROUTES } from './scavenging/auto-scavenge-routes.ts';
import { ERASURE_ROUTES } from './scavenging/erasure-routes.ts';
import { ATTRIBUTE_INDEX_ROUTES } from './node/attribute-index-routes.ts';
import { REDACT_ROUTES } from './scavenging/redact-routes.ts';
import { SCAVENGE_ROUTES } from './scavenging/scavenge-routes.ts';
import { CHECKPOINT_ROUTES } from './streams/checkpoint-route.ts';
import { DCB_ROUTES } from './streams/dcb-routes.ts';
import { STREAM_NAMES_ROUTES } from './streams/stream-name-search.ts';
import { STREAM_ROUTES } from './streams/routes.ts';
import { PAGE_ROUTES } from './ui/page.ts';
import { USERS_ROUTES } from './users/users.ts';

/** The table of all routes. What a route needs, and which option takes it away, it says itself. */

/** What shows a node from inside. */
const INSPECTION_ROUTES: readonly Route[] = [
  ...CHUNK_MAP_ROUTES,
  ...STREAM_NAMES_ROUTES,
  ...LOG_ROUTES,
  ...OVERVIEW_ROUTES,
  ...WEBHOOK_ACTIVITY_ROUTES,
  ...ERASURE_ROUTES,
];

/** Every path, in the order in which they are tried; the first that matches answers. */
export const ROUTES: readonly Route[] = [
  ...STREAM_ROUTES,
  ...DCB_ROUTES,
  ...CHECKPOINT_ROUTES,
  ...SCAVENGE_ROUTES,
  ...REDACT_ROUTES,
  ...ATTRIBUTE_INDEX_ROUTES,
  ...AUTO_SCAVENGE_ROUTES,
  ...BACKUP_ROUTES,
  ...BACKUP_CHECK_ROUTES,
  ...USERS_ROUTES,
  ...SUBSCRIPTION_ROUTES,
  ...CONNECTOR_ROUTES,
  ...CLUSTER_ROUTES,
  ...ADMIN_ROUTES,
  ...INSPECTION_ROUTES,
  ...NODE_ROUTES,
  openApiRoute(routesFor),
  ...PAGE_ROUTES,
];

/** The paths that a node with these options has. */
export function routesFor(options: AppOptions): readonly Route[] {
  return ROUTES.filter(({ offBy }) => offBy == null || !options[offBy]);
}

/** What holds for a path by how it begins, also where options and missing features have taken it away. */
export const branchAt = branchesOf(ROUTES);
